#include "model/torch_checkpoint.h"

#include <optional>

#include "base/fail.h"
#include "model/pickle.h"
#include "model/zip_archive.h"

namespace sol {
namespace {

// The archive's entries lie in one folder that is called after the file.
class Entries {
 public:
  Entries(const ZipArchive& archive, std::string where)
      : archive_(archive), where_(std::move(where)) {
    for (const auto& [name, content] : archive.entries())
      if (name.ends_with("/data.pkl")) folder_ = name.substr(0, name.size() - 8);
    if (folder_.empty()) fail("{}: not a checkpoint of PyTorch: it has no data.pkl", where_);
    if (const auto order = find("byteorder"); order && text(*order) != "little")
      fail("{}: its numbers are not little-endian", where_);
  }

  std::span<const std::byte> get(const std::string& name) const {
    const auto found = find(name);
    if (!found) fail("{}: {}{} is missing", where_, folder_, name);
    return *found;
  }

 private:
  std::optional<std::span<const std::byte>> find(const std::string& name) const {
    const auto found = archive_.entries().find(folder_ + name);
    if (found == archive_.entries().end()) return std::nullopt;
    return found->second;
  }
  static std::string_view text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  const ZipArchive& archive_;
  std::string where_, folder_;
};

// The place of a tensor's last element, or nothing when that overflows.
std::optional<int64_t> last_element(const PickleTensor& tensor) {
  int64_t last = tensor.offset;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    int64_t step = 0;
    if (__builtin_mul_overflow(tensor.shape[i] - 1, tensor.strides[i], &step) ||
        __builtin_add_overflow(last, step, &last))
      return std::nullopt;
  }
  return last;
}

TorchCheckpoint::Tensor materialise(const PickleTensor& tensor, const Entries& entries,
                                    const std::string& where) {
  const PickleStorage& storage = tensor.storage;
  const auto bytes = entries.get("data/" + storage.key);
  const int64_t held = static_cast<int64_t>(bytes.size() / size_of(storage.type));
  if (held < storage.count)
    fail("{}: its storage has {} elements instead of {}", where, held, storage.count);
  if (tensor.shape.size() != tensor.strides.size() || tensor.shape.size() > 8)
    fail("{}: shape and strides do not fit each other", where);
  int64_t count = 1;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] < 1 || tensor.strides[i] < 0)
      fail("{}: a size or stride is not positive", where);
    // No tensor here repeats its elements, so it has no more of them than its storage.
    if (tensor.shape[i] > storage.count / count) fail("{}: larger than its storage", where);
    count *= tensor.shape[i];
  }
  const auto last = last_element(tensor);
  if (tensor.offset < 0 || !last || *last >= storage.count)
    fail("{}: reaches beyond its storage", where);

  // An entry may begin anywhere in the file; numbers are read where they are aligned.
  const std::vector<std::byte> copy(
      bytes.begin(),
      bytes.begin() + static_cast<std::ptrdiff_t>(storage.count) * size_of(storage.type));
  const std::vector<float> all = TensorView{where, storage.type, {storage.count}, copy}.to_floats();
  TorchCheckpoint::Tensor out{tensor.shape, {}};
  out.values.reserve(static_cast<size_t>(count));
  std::vector<int64_t> index(tensor.shape.size());
  for (int64_t n = 0; n < count; ++n) {
    int64_t at = tensor.offset;
    for (size_t i = 0; i < index.size(); ++i) at += index[i] * tensor.strides[i];
    out.values.push_back(all[static_cast<size_t>(at)]);
    for (size_t i = index.size(); i-- > 0;) {
      if (++index[i] < tensor.shape[i]) break;
      index[i] = 0;
    }
  }
  return out;
}

// What of the settings JSON can hold: numbers, texts and lists of them.
Json to_json(const PickleValue& value, int depth) {
  if (const auto* flag = value.as<bool>()) return *flag;
  if (const auto* number = value.as<int64_t>()) return *number;
  if (const auto* number = value.as<double>()) return *number;
  if (const auto* text = value.as<std::string>()) return *text;
  const auto* list = value.as<PickleList>();
  if (!list || depth == 0) return nullptr;
  Json out = Json::array();
  for (const PickleValue* item : list->items) out.push_back(to_json(*item, depth - 1));
  return out;
}

}  // namespace

TorchCheckpoint read_torch_checkpoint(const std::filesystem::path& path) {
  const std::string where = path.string();
  const ZipArchive archive(path);
  const Entries entries(archive, where);
  const Pickle pickle(entries.get("data.pkl"), where + ": data.pkl");
  const auto* state = pickle.root().as<PickleDict>();
  if (!state) fail("{}: holds no dictionary", where);
  TorchCheckpoint out;
  if (const PickleValue* settings = state->find("cfg"))
    if (const auto* dict = settings->as<PickleDict>())
      for (const auto& [key, value] : dict->items)
        if (const auto* name = key->as<std::string>()) out.settings[*name] = to_json(*value, 3);
  for (const char* name : {"policy_state_dict", "state_dict"})
    if (const PickleValue* nested = state->find(name)) {
      state = nested->as<PickleDict>();
      if (!state) fail("{}: {} is no dictionary", where, name);
      break;
    }
  for (const auto& [key, value] : state->items) {
    const auto* name = key->as<std::string>();
    const auto* tensor = value->as<PickleTensor>();
    if (!name || !tensor)
      fail("{}: not a state_dict: {} is no tensor", where,
           name ? *name : "an entry without a name");
    out.state[*name] = materialise(*tensor, entries, where + ": " + *name);
  }
  if (out.state.empty()) fail("{}: holds no tensors", where);
  return out;
}

}  // namespace sol
