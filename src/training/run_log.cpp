#include "training/run_log.h"

#include <algorithm>

#include "base/file_io.h"
#include "base/output_file.h"
#include "training/metrics_events.h"

namespace sol {

std::vector<int64_t> RunLog::begin(int64_t collection, const Json& run) {
  const std::vector<int64_t> kept = lines_.begin("collection", collection);
  events_.reset();
  if (collection == 0) remove_event_files(dir_);
  write_file_atomically(dir_ / "run.json", to_text(run, 1) + "\n");
  std::vector<int64_t> missing;
  for (int64_t number = 1; number <= collection; ++number)
    if (!std::ranges::binary_search(kept, number)) missing.push_back(number);
  return missing;
}

void RunLog::refuse_other_log(const std::filesystem::path& dir,
                              const std::vector<std::filesystem::path>& data) {
  require_replaceable(path(dir), {"the log of a training run", "{\"collection\":"}, data);
}

void RunLog::append(const CollectionMetrics& metrics) {
  lines_.append(to_json(metrics));
  if (!events_) events_.emplace(dir_, metrics.collection);
  events_->append(metrics.collection, metric_scalars(metrics), metric_histograms(metrics));
}

}  // namespace sol
