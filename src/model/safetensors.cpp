#include "model/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/bfloat16.h"
#include "base/fail.h"
#include "model/safetensors_header.h"

namespace sol {

// Files are little-endian and mapped as they are.
static_assert(std::endian::native == std::endian::little);

std::string_view to_string(DType type) {
  switch (type) {
    case DType::f32:
      return "F32";
    case DType::f16:
      return "F16";
    case DType::bf16:
      return "BF16";
    case DType::f64:
      return "F64";
    case DType::i64:
      return "I64";
    case DType::i32:
      return "I32";
    case DType::i16:
      return "I16";
    case DType::i8:
      return "I8";
    case DType::u8:
      return "U8";
    case DType::boolean:
      return "BOOL";
  }
  fail("unknown element type number {}", static_cast<int>(type));
}

size_t size_of(DType type) {
  switch (type) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f16:
    case DType::bf16:
    case DType::i16:
      return 2;
    case DType::i8:
    case DType::u8:
    case DType::boolean:
      return 1;
  }
  fail("unknown element type number {}", static_cast<int>(type));
}

namespace {

template <typename Stored, typename Out, typename Convert>
std::vector<Out> convert(const TensorView& tensor, Convert&& element) {
  std::vector<Out> out(tensor.bytes.size() / sizeof(Stored));
  for (size_t i = 0; i < out.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, tensor.bytes.data() + i * sizeof(Stored), sizeof(Stored));
    out[i] = element(stored);
  }
  return out;
}

// Levenshtein distance, for suggestions.
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

int64_t TensorView::count() const {
  return static_cast<int64_t>(bytes.size() / size_of(type));
}

std::vector<float> TensorView::to_floats() const {
  switch (type) {
    case DType::f32:
      return convert<float, float>(*this, [](float x) { return x; });
    case DType::f16:
      return convert<uint16_t, float>(*this, half_to_float);
    case DType::bf16:
      return convert<bf16, float>(*this, [](bf16 x) { return to_float(x); });
    case DType::f64:
      return convert<double, float>(*this, [](double x) { return static_cast<float>(x); });
    default:
      fail("tensor {}: holds no floating-point numbers", describe());
  }
}

std::optional<int64_t> TensorView::first_not_finite() const {
  const auto first = [&]<typename Stored>(Stored mask) -> std::optional<int64_t> {
    for (int64_t i = 0; i < count(); ++i) {
      Stored bits;
      std::memcpy(&bits, bytes.data() + static_cast<size_t>(i) * sizeof(bits), sizeof(bits));
      if ((bits & mask) == mask) return i;  // all exponent bits are set
    }
    return std::nullopt;
  };
  if (type == DType::f64) return first(uint64_t{0x7ff0000000000000u});
  if (type == DType::f32) return first(uint32_t{0x7f800000u});
  if (type == DType::bf16) return first(uint16_t{0x7f80u});
  if (type == DType::f16) return first(uint16_t{0x7c00u});
  fail("tensor {}: holds no floating-point numbers", describe());
}

std::vector<int64_t> TensorView::to_ints() const {
  const auto widen = [](auto x) { return static_cast<int64_t>(x); };
  switch (type) {
    case DType::i64:
      return convert<int64_t, int64_t>(*this, widen);
    case DType::i32:
      return convert<int32_t, int64_t>(*this, widen);
    case DType::i16:
      return convert<int16_t, int64_t>(*this, widen);
    case DType::i8:
      return convert<int8_t, int64_t>(*this, widen);
    case DType::u8:
    case DType::boolean:
      return convert<uint8_t, int64_t>(*this, widen);
    default:
      fail("tensor {}: holds no integers", describe());
  }
}

std::string TensorView::describe() const {
  std::string text = fmt::format("{} {} [", name, to_string(type));
  for (size_t i = 0; i < shape.size(); ++i) text += fmt::format("{}{}", i ? ", " : "", shape[i]);
  return text + (file.empty() ? "]" : "] of " + file);
}

std::vector<std::string> TensorStore::add_file(const std::filesystem::path& path) {
  auto file = std::make_shared<MappedFile>(path);
  const std::span<const std::byte> bytes = file->bytes();
  const std::string where = path.string();
  uint64_t header_size = 0;
  if (bytes.size() < sizeof(header_size))
    fail("{}: not a safetensors file: it has only {} bytes", where, bytes.size());
  std::memcpy(&header_size, bytes.data(), sizeof(header_size));
  if (header_size > max_header_bytes)
    fail("{}: not a safetensors file: its header would have {} bytes, more than the {} allowed",
         where, header_size, max_header_bytes);
  if (header_size > bytes.size() - sizeof(header_size))
    fail("{}: truncated: its header has {} bytes, the file only {}", where, header_size,
         bytes.size());
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + sizeof(header_size),
                              header_size);
  const std::span<const std::byte> data = bytes.subspan(sizeof(header_size) + header_size);
  SafetensorsHeader header = parse_safetensors_header(text, data.size(), where);

  std::vector<std::string> names;
  for (HeaderEntry& entry : header.tensors) {
    std::span<const std::byte> content = data.subspan(entry.begin, entry.end - entry.begin);
    // Old writers did not pad the header. Whoever reads elements in place may rely on alignment.
    if (reinterpret_cast<uintptr_t>(content.data()) % size_of(entry.type) != 0) {
      copies_.push_back(std::make_shared<std::vector<std::byte>>(content.begin(), content.end()));
      content = *copies_.back();
    }
    names.push_back(entry.name);
    const auto [it, added] = tensors_.try_emplace(entry.name);
    if (!added) fail("{}: tensor \"{}\" is also in another shard", where, entry.name);
    it->second = {std::move(entry.name), entry.type, std::move(entry.shape), content, where};
  }
  metadata_.merge(header.metadata);
  mapped_.push_back(std::move(file));
  files_.push_back(path);
  return names;
}

TensorStore TensorStore::in_memory(std::vector<TensorView> tensors,
                                   std::shared_ptr<const void> owner) {
  TensorStore store;
  store.owner_ = std::move(owner);
  for (TensorView& tensor : tensors) {
    uint64_t bytes = 0;
    if (!tensor_bytes(tensor.shape, tensor.type, bytes) || bytes != tensor.bytes.size()) {
      fail("tensor {}: lies in {} bytes of memory", tensor.describe(), tensor.bytes.size());
    }
    const std::string name = tensor.name;
    if (!store.tensors_.emplace(name, std::move(tensor)).second) {
      fail("tensor {} is given twice", name);
    }
  }
  return store;
}

TensorStore TensorStore::copy() const {
  auto memory = std::make_shared<std::vector<std::vector<std::byte>>>();
  std::vector<TensorView> copies;
  for (const auto& [name, tensor] : tensors_) {
    const auto& bytes = memory->emplace_back(tensor.bytes.begin(), tensor.bytes.end());
    copies.push_back(tensor);
    copies.back().bytes = bytes;
  }
  return in_memory(std::move(copies), memory);
}

TensorStore TensorStore::open_file(const std::filesystem::path& path) {
  TensorStore store;
  store.add_file(path);
  return store;
}

bool TensorStore::has(const std::string& name) const {
  return tensors_.count(name) != 0;
}

const TensorView& TensorStore::get(const std::string& name) const {
  const auto it = tensors_.find(name);
  if (it != tensors_.end()) return it->second;
  std::vector<std::pair<size_t, std::string>> nearest;
  for (const auto& [other, view] : tensors_)
    nearest.emplace_back(edit_distance(name, other), other);
  std::ranges::sort(nearest);
  std::string names;
  for (size_t i = 0; i < std::min<size_t>(3, nearest.size()); ++i)
    names += (i ? ", " : "; the nearest names are ") + nearest[i].second;
  fail("{}: there is no tensor \"{}\"{}",
       files_.size() == 1 ? files_[0].string()
       : files_.empty()   ? "no file"
                          : files_[0].parent_path().string(),
       name, names);
}

}  // namespace sol
