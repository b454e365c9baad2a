// TensorStore::open_directory: a model's single file, or its shards.
#include <map>
#include <set>
#include <string>
#include <system_error>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/json.h"
#include "model/safetensors.h"

namespace sol {
namespace {

constexpr const char* single_name = "model.safetensors";
constexpr const char* index_name = "model.safetensors.index.json";

// Says what lies there instead, since a directory with weights under another name looks right at
// first sight. Another variant is never picked up by guessing: it may hold other numbers.
[[noreturn]] void fail_without_weights(const std::filesystem::path& dir) {
  std::error_code error;
  if (!std::filesystem::is_directory(dir, error)) fail("{}: not a directory", dir.string());
  std::string others;
  for (const auto& entry : std::filesystem::directory_iterator(dir, error)) {
    const std::filesystem::path name = entry.path().filename();
    if (name.extension() == ".safetensors" || name.extension() == ".bin" ||
        name.extension() == ".gguf" || name.extension() == ".pth")
      others += (others.empty() ? "" : ", ") + name.string();
  }
  if (others.empty()) fail("{}: there is neither {} nor {}", dir.string(), single_name, index_name);
  fail("{}: there is neither {} nor {}; it has {}, which must be converted or renamed to be used",
       dir.string(), single_name, index_name, others);
}

// A shard's name comes from a file that may be hostile: it must not lead out of the directory.
void check_shard_name(const std::string& name, const std::string& where) {
  const std::filesystem::path path(name);
  if (name.empty() || path.filename() != path || path.extension() != ".safetensors")
    fail("{}: \"{}\" is not the name of a .safetensors file in this directory", where, name);
}

// The shard of each tensor.
std::map<std::string, std::string> read_index(const std::filesystem::path& dir) {
  const std::filesystem::path path = dir / index_name;
  if (!path_exists(path)) fail_without_weights(dir);
  const std::string where = path.string();
  const Json index = read_json(path);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object() ||
      index["weight_map"].empty())
    fail("{}: has no \"weight_map\" object naming the shards", where);
  std::map<std::string, std::string> shard_of;
  for (const auto& [tensor, shard] : index["weight_map"].items()) {
    if (!shard.is_string()) fail("{}: the shard of tensor \"{}\" must be a string", where, tensor);
    check_shard_name(shard.get<std::string>(), where);
    shard_of[tensor] = shard.get<std::string>();
  }
  return shard_of;
}

std::set<std::string> names_of_shards(const std::map<std::string, std::string>& shard_of) {
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : shard_of) shards.insert(shard);
  return shards;
}

}  // namespace

uint64_t stored_bytes(const std::filesystem::path& dir) {
  const std::set<std::string> names = path_exists(dir / single_name)
                                          ? std::set<std::string>{single_name}
                                          : names_of_shards(read_index(dir));
  uint64_t bytes = 0;
  for (const std::string& name : names) {
    std::error_code error;
    const uint64_t size = std::filesystem::file_size(dir / name, error);
    if (!error) bytes += size;
  }
  return bytes;
}

TensorStore TensorStore::open_directory(const std::filesystem::path& dir) {
  if (path_exists(dir / single_name)) return open_file(dir / single_name);
  const std::map<std::string, std::string> shard_of = read_index(dir);
  const std::string where = (dir / index_name).string();

  // Every tensor must lie where the index says: a mixture of two downloads shows here.
  TensorStore store;
  for (const std::string& shard : names_of_shards(shard_of)) {
    const std::filesystem::path path = dir / shard;
    if (!path_exists(path))
      fail("{}: names the shard {}, which is missing in {}", where, shard, dir.string());
    for (const std::string& tensor : store.add_file(path)) {
      const auto listed = shard_of.find(tensor);
      if (listed == shard_of.end())
        fail("{}: the shard {} holds tensor \"{}\", which the index does not name", where, shard,
             tensor);
      if (listed->second != shard)
        fail("{}: tensor \"{}\" should be in the shard {} but is in {}", where, tensor,
             listed->second, shard);
    }
  }
  for (const auto& [tensor, shard] : shard_of)
    if (!store.has(tensor))
      fail("{}: tensor \"{}\" should be in the shard {}, which does not have it", where, tensor,
           shard);
  return store;
}

}  // namespace sol
