// write_safetensors: the writing half of safetensors.h.
#include <algorithm>
#include <set>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/json.h"
#include "model/safetensors.h"
#include "model/safetensors_header.h"

namespace sol {

void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata) {
  const std::string where = path.string();
  std::vector<const TensorToWrite*> order;
  std::set<std::string_view> names;
  for (const TensorToWrite& tensor : tensors) {
    if (tensor.name == "__metadata__" || !names.insert(tensor.name).second)
      fail("{}: cannot write tensor \"{}\": the name is reserved or used twice", where,
           tensor.name);
    uint64_t bytes = 0;
    if (!tensor_bytes(tensor.shape, tensor.type, bytes) || bytes != tensor.bytes.size())
      fail("{}: cannot write tensor \"{}\": {} bytes disagree with its shape and dtype", where,
           tensor.name, tensor.bytes.size());
    order.push_back(&tensor);
  }
  // Widest elements first, as the format's own writer does: then every tensor is aligned.
  std::ranges::sort(order, [](const TensorToWrite* a, const TensorToWrite* b) {
    const size_t wide_a = size_of(a->type), wide_b = size_of(b->type);
    return wide_a != wide_b ? wide_a > wide_b : a->name < b->name;
  });

  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t position = 0;
  for (const TensorToWrite* tensor : order) {
    const uint64_t end = position + tensor->bytes.size();
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
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > max_header_bytes)
    fail("{}: cannot write: the header would have {} bytes, more than the format's {}", where,
         text.size(), max_header_bytes);

  AtomicFile file(path);
  const uint64_t header_size = text.size();
  file.write(std::as_bytes(std::span(&header_size, 1)));
  file.write(text);
  for (const TensorToWrite* tensor : order) file.write(tensor->bytes);
  file.commit();
}

}  // namespace sol
