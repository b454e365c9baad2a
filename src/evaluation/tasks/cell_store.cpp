#include "base/fail.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "evaluation/tasks/experiment.h"

namespace sol {
namespace {

constexpr int cell_format = 1;
// Answers of a whole task in words may be long.
constexpr uint64_t cell_limit = uint64_t{1} << 30;

constexpr const char* finished = ".json";
constexpr const char* begun = ".part.json";

// False where there is no such file.
bool read(const std::filesystem::path& file, const Json& identity, bool whole, TaskCell& cell) {
  if (!path_exists(file)) return false;
  const Json json = read_json(file, cell_limit);
  const std::string where = file.string();
  const auto documents_fit = [&](size_t count) {
    const auto all = identity.at("documents").get<size_t>();
    return whole ? count == all : count <= all;
  };
  if (json_get<int>(json, "format_version", where) != cell_format || !json.contains("identity") ||
      json.at("identity") != identity || !json.contains("documents") ||
      !json.at("documents").is_array() || !documents_fit(json.at("documents").size()))
    fail("{}: is not the result that its name says; remove it", where);
  std::vector<DocumentResult> documents;
  for (const Json& document : json.at("documents"))
    documents.push_back(document_result_from_json(
        cell.kind, document, fmt::format("{} document {}", where, documents.size())));
  cell.documents = std::move(documents);
  cell.seconds = json_get<double>(json, "seconds", where);
  return true;
}

void write(const std::filesystem::path& file, const Json& identity, const TaskCell& cell) {
  Json documents = Json::array();
  for (const DocumentResult& document : cell.documents)
    documents.push_back(to_json(cell.kind, document));
  ensure_writable_directory(file.parent_path());
  write_file_atomically(file, to_text({{"kind", "sol task cell"},
                                       {"format_version", cell_format},
                                       {"identity", identity},
                                       {"seconds", cell.seconds},
                                       {"documents", std::move(documents)}}) +
                                  "\n");
}

}  // namespace

std::filesystem::path CellStore::path(const Json& identity, const char* ending) const {
  return dir_ / (hash_128(to_text(identity)) + ending);
}

bool CellStore::load(const Json& identity, TaskCell& cell) const {
  cell.resumed = read(path(identity, finished), identity, true, cell);
  return cell.resumed;
}

bool CellStore::load_part(const Json& identity, TaskCell& cell) const {
  return read(path(identity, begun), identity, false, cell);
}

void CellStore::save(const Json& identity, const TaskCell& cell) const {
  write(path(identity, finished), identity, cell);
  std::error_code ignored;  // a part that stays is never looked at
  std::filesystem::remove(path(identity, begun), ignored);
}

void CellStore::save_part(const Json& identity, const TaskCell& cell) const {
  write(path(identity, begun), identity, cell);
}

}  // namespace sol
