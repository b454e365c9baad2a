// Making model directories and hostile files for the tests.
#pragma once

#include <bit>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/file_io.h"
#include "base/json.h"
#include "model/safetensors.h"
#include "support.h"

namespace sol::test {

// A safetensors file with this header text, then `data_size` zero bytes.
inline std::string safetensors_bytes(const std::string& header, size_t data_size) {
  const uint64_t size = header.size();
  std::string bytes(sizeof(size), '\0');
  std::memcpy(bytes.data(), &size, sizeof(size));
  return bytes + header + std::string(data_size, '\0');
}

inline std::filesystem::path golden(const std::string& name) {
  return test_data() / "golden" / name;
}

// The tensors of a store, to be changed and written again.
struct EditableTensors {
  struct Tensor {
    DType type;
    std::vector<int64_t> shape;
    std::vector<std::byte> bytes;
  };
  std::map<std::string, Tensor> tensors;

  explicit EditableTensors(const TensorStore& store) {
    for (const auto& [name, view] : store.tensors())
      tensors[name] = {view.type, view.shape, {view.bytes.begin(), view.bytes.end()}};
  }
  void rename(const std::string& from, const std::string& to) {
    auto node = tensors.extract(from);
    ASSERT_FALSE(node.empty()) << from;
    node.key() = to;
    tensors.insert(std::move(node));
  }
  void write(const std::filesystem::path& path) const {
    std::vector<TensorToWrite> list;
    for (const auto& [name, tensor] : tensors)
      list.push_back({name, tensor.type, tensor.shape, tensor.bytes});
    write_safetensors(path, list);
  }
};

}  // namespace sol::test
