// write_safetensors: the writing half of safetensors.h.
#include <algorithm>
#include <set>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/json.h"
#include "model/safetensors.h"
#include "model/safetensors_header.h"

namespace sol {
namespace {

// Data starts at a multiple of this in the file, and so in a mapped one.
constexpr size_t kDataAlignment = 64;

// The order in which tensors are written: widest elements first, as the format's own writer does;
// then every tensor is aligned.
template <typename Tensor>
std::vector<const Tensor*> in_file_order(std::span<const Tensor> tensors,
                                         const std::string& where) {
  std::vector<const Tensor*> order;
  std::set<std::string_view> names;
  for (const Tensor& tensor : tensors) {
    if (tensor.name == "__metadata__" || !names.insert(tensor.name).second)
      fail("{}: cannot write tensor \"{}\": the name is reserved or used twice", where,
           tensor.name);
    order.push_back(&tensor);
  }
  std::ranges::sort(order, [](const Tensor* a, const Tensor* b) {
    const size_t wide_a = size_of(a->type), wide_b = size_of(b->type);
    return wide_a != wide_b ? wide_a > wide_b : a->name < b->name;
  });
  return order;
}

uint64_t bytes_of(const TensorToWrite& tensor, const std::string& where) {
  uint64_t bytes = 0;
  if (!tensor_bytes(tensor.shape, tensor.type, bytes) || bytes != tensor.bytes.size())
    fail("{}: cannot write tensor \"{}\": {} bytes disagree with its shape and dtype", where,
         tensor.name, tensor.bytes.size());
  return bytes;
}

uint64_t bytes_of(const TensorToMake& tensor, const std::string& where) {
  uint64_t bytes = 0;
  if (!tensor_bytes(tensor.shape, tensor.type, bytes))
    fail("{}: cannot write tensor \"{}\": its shape overflows", where, tensor.name);
  return bytes;
}

template <typename Tensor>
std::string header_text(std::span<const Tensor* const> order,
                        const std::map<std::string, std::string>& metadata,
                        const std::string& where) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t position = 0;
  for (const Tensor* tensor : order) {
    const uint64_t end = position + bytes_of(*tensor, where);
    header[tensor->name] = {{"dtype", std::string(to_string(tensor->type))},
                            {"shape", tensor->shape},
                            {"data_offsets", {position, end}}};
    position = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    fail("{}: cannot write a tensor name or metadata that is not UTF-8", where);
  }
  const size_t start = sizeof(uint64_t) + text.size();
  text.resize(text.size() + (kDataAlignment - start % kDataAlignment) % kDataAlignment, ' ');
  if (text.size() > max_header_bytes)
    fail("{}: cannot write: the header would have {} bytes, more than the format's {}", where,
         text.size(), max_header_bytes);
  return text;
}

void write_header(AtomicFile& file, const std::string& text) {
  const uint64_t size = text.size();
  file.write(std::as_bytes(std::span(&size, 1)));
  file.write(text);
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata) {
  const auto order = in_file_order(tensors, path.string());
  const std::string header = header_text<TensorToWrite>(order, metadata, path.string());
  AtomicFile file(path);
  write_header(file, header);
  for (const TensorToWrite* tensor : order) file.write(tensor->bytes);
  file.commit();
}

void make_safetensors(const std::filesystem::path& path, std::span<const TensorToMake> tensors,
                      const std::map<std::string, std::string>& metadata) {
  const auto order = in_file_order(tensors, path.string());
  const std::string header = header_text<TensorToMake>(order, metadata, path.string());
  AtomicFile file(path);
  write_header(file, header);
  std::vector<std::byte> bytes;
  for (const TensorToMake* tensor : order) {
    bytes.resize(bytes_of(*tensor, path.string()));
    tensor->make(bytes);
    file.write(bytes);
  }
  file.commit();
}

}  // namespace sol
