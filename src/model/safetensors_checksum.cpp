// Checksums of whole safetensors files: the part of safetensors.h for files that must not be
// damaged unnoticed.
#include <fmt/ranges.h>

#include "base/fail.h"
#include "base/hash.h"
#include "model/safetensors.h"

namespace sol {
namespace {

constexpr const char* checksum_key = "checksum";

// Over both in the order of their names. Lengths are part of it, so that no two contents look
// alike.
template <typename Tensor>
std::string checksum_of(const std::map<std::string, std::string>& metadata,
                        const std::map<std::string, Tensor>& tensors) {
  Hash128 hash;
  for (const auto& [key, value] : metadata) {
    if (key == checksum_key) continue;
    hash.add(fmt::format("{} {} {}\n{}", key.size(), key, value.size(), value));
  }
  for (const auto& [name, tensor] : tensors) {
    hash.add(fmt::format("{} {} {} {}\n", name.size(), name, to_string(tensor.type),
                         fmt::join(tensor.shape, " ")));
    hash.add(tensor.bytes);
  }
  return hash.hexadecimal();
}

}  // namespace

void write_checked_safetensors(const std::filesystem::path& path,
                               std::span<const TensorToWrite> tensors,
                               const std::map<std::string, std::string>& metadata) {
  std::map<std::string, TensorToWrite> by_name;
  for (const TensorToWrite& tensor : tensors) by_name.emplace(tensor.name, tensor);
  std::map<std::string, std::string> all = metadata;
  all[checksum_key] = checksum_of(metadata, by_name);
  write_safetensors(path, tensors, all);
}

void require_checksum(const TensorStore& store) {
  const std::string where = store.files().empty() ? "a set of tensors" : store.files()[0].string();
  const auto saved = store.metadata().find(checksum_key);
  if (saved == store.metadata().end())
    fail("{}: has no checksum: another program has written it", where);
  if (saved->second != checksum_of(store.metadata(), store.tensors()))
    fail("{}: its checksum is wrong: the file is damaged or was changed by another program", where);
}

}  // namespace sol
