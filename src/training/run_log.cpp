#include "training/run_log.h"

#include <cstring>
#include <fstream>
#include <string>

#include "base/fail.h"
#include "base/file_io.h"
#include "training/metrics_events.h"

namespace sol {

void RunLog::begin(int64_t lines, const Json& run) {
  std::string kept;
  if (lines > 0) {
    kept = read_file(path_);
    size_t end = 0;
    for (int64_t i = 0; i < lines; ++i) {
      end = kept.find('\n', end);
      if (end == std::string::npos)
        fail("{}: has {} lines, but the checkpoint knows of {} collections; restore the log",
             path_.string(), i, lines);
      ++end;
    }
    kept.resize(end);
  }
  write_file_atomically(path_, kept);
  events_.reset();
  if (lines == 0) remove_event_files(dir_);
  write_file_atomically(dir_ / "run.json", to_text(run, 1) + "\n");
}

void RunLog::append(const CollectionMetrics& metrics) {
  std::ofstream out(path_, std::ios::app);
  out << to_text(to_json(metrics)) << '\n';
  out.close();
  if (!out) fail("{}: cannot be written: {}", path_.string(), std::strerror(errno));
  if (!events_) events_.emplace(dir_, metrics.collection);
  events_->append(metrics.collection, metric_scalars(metrics), metric_histograms(metrics));
}

}  // namespace sol
