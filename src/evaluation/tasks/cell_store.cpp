#include "base/fail.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "evaluation/tasks/experiment.h"

namespace sol {
namespace {

constexpr int cell_format = 1;
// Answers of a whole task in words may be long.
constexpr uint64_t cell_limit = uint64_t{1} << 30;

}  // namespace

std::filesystem::path CellStore::path(const Json& identity) const {
  return dir_ / (hash_128(to_text(identity)) + ".json");
}

bool CellStore::load(const Json& identity, TaskCell& cell) const {
  const std::filesystem::path file = path(identity);
  if (!path_exists(file)) return false;
  const Json json = read_json(file, cell_limit);
  const std::string where = file.string();
  if (json_get<int>(json, "format_version", where) != cell_format || !json.contains("identity") ||
      json.at("identity") != identity || !json.contains("documents") ||
      !json.at("documents").is_array())
    fail("{}: is not the result that its name says; remove it", where);
  std::vector<DocumentResult> documents;
  for (const Json& document : json.at("documents"))
    documents.push_back(document_result_from_json(
        cell.kind, document, fmt::format("{} document {}", where, documents.size())));
  cell.documents = std::move(documents);
  cell.seconds = json_get<double>(json, "seconds", where);
  cell.resumed = true;
  return true;
}

void CellStore::save(const Json& identity, const TaskCell& cell) const {
  Json documents = Json::array();
  for (const DocumentResult& document : cell.documents)
    documents.push_back(to_json(cell.kind, document));
  ensure_writable_directory(dir_);
  write_file_atomically(path(identity), to_text({{"kind", "sol task cell"},
                                                 {"format_version", cell_format},
                                                 {"identity", identity},
                                                 {"seconds", cell.seconds},
                                                 {"documents", std::move(documents)}}) +
                                            "\n");
}

}  // namespace sol
