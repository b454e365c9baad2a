#include "training/run_history.h"

#include "base/fail.h"
#include "base/file_io.h"
#include "text/byte_source.h"

namespace sol {
namespace {

namespace fs = std::filesystem;

Json find_record(const fs::path& dir) {
  if (const fs::path own = dir / "run.json"; path_exists(own)) return read_json(own);
  for (const fs::path& controller : {dir, dir / "checkpoint" / "controller"}) {
    const fs::path path = controller / "controller.json";
    if (!path_exists(path)) continue;
    const Json json = read_json(path);
    if (json.is_object() && json.contains("training")) return json["training"];
  }
  return nullptr;
}

}  // namespace

std::vector<CollectionMetrics> read_training_log(const fs::path& dir) {
  const fs::path path = dir / "train.jsonl";
  LineReader lines(open_byte_source(path));
  std::vector<CollectionMetrics> collections;
  std::string line;
  while (lines.next(line)) {
    if (!line.ends_with('\n')) break;
    line.pop_back();
    const std::string where = fmt::format("{}, line {}", path.string(), lines.line_number());
    collections.push_back(metrics_from_json(parse_json(line, where), where));
    if (const size_t n = collections.size();
        n > 1 && collections[n - 1].collection <= collections[n - 2].collection)
      fail("{}: collection {} follows collection {}; a log has each once, in order", where,
           collections[n - 1].collection, collections[n - 2].collection);
  }
  if (collections.empty()) fail("{}: no collection is recorded", path.string());
  return collections;
}

RunHistory read_run_history(const fs::path& dir) {
  if (!path_exists(dir)) fail("{}: no such directory", dir.string());
  if (!path_exists(dir / "train.jsonl"))
    fail("{}: is no training run (train.jsonl is missing)", dir.string());
  return {read_training_log(dir), find_record(dir)};
}

}  // namespace sol
