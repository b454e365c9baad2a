// Reading and writing safetensors files, single or sharded with an index.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mapped_file.h"

namespace sol {

enum class DType { f32, f16, bf16, f64, i64, i32, i16, i8, u8, boolean };
std::string_view to_string(DType type);  // as in the file: "F32", "BF16", ...
size_t size_of(DType type);

// A tensor inside a mapped file; valid as long as the object it came from.
struct TensorView {
  std::string name;
  DType type = DType::f32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  // row-major, little-endian, aligned to the element size
  std::string file = {};             // where it lies; empty for tensors in memory

  int64_t count() const;                 // number of elements
  std::vector<float> to_floats() const;  // F32, F16, BF16 and F64 only, else Error
  std::vector<int64_t> to_ints() const;  // integer types and boolean only, else Error
  // The first infinite element or NaN; nothing where all are finite. Floating-point types only.
  std::optional<int64_t> first_not_finite() const;
  std::string describe() const;  // "name BF16 [4096, 256] of model.safetensors"
};

// The largest magnitude that a weight may have: rounded to BF16, or made of codes and scales, every
// weight up to it stays finite.
inline constexpr float largest_weight = 0x1p127f;

// All tensors of one file or of a sharded set. Every header length, offset, shape and dtype is
// checked against the file's size before use: truncated, oversized, overlapping, reversed or
// wrapping entries are Errors that name file and tensor.
class TensorStore {
 public:
  // One .safetensors file.
  static TensorStore open_file(const std::filesystem::path& path);
  // DIR/model.safetensors, or the shards that DIR/model.safetensors.index.json names.
  static TensorStore open_directory(const std::filesystem::path& dir);
  // Tensors that lie in memory which `owner` keeps alive. Throws Error for a name that occurs twice
  // and for bytes that disagree with type and shape.
  static TensorStore in_memory(std::vector<TensorView> tensors, std::shared_ptr<const void> owner);

  // The same tensors in memory of their own.
  TensorStore copy() const;

  bool has(const std::string& name) const;
  const TensorView& get(const std::string& name) const;  // throws Error naming the nearest names
  const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::vector<std::filesystem::path>& files() const { return files_; }

 private:
  std::vector<std::string> add_file(
      const std::filesystem::path& path);  // returns its tensors' names
  std::shared_ptr<const void> owner_;
  std::vector<std::shared_ptr<MappedFile>> mapped_;
  std::vector<std::shared_ptr<std::vector<std::byte>>> copies_;  // of tensors that lie unaligned
  std::vector<std::filesystem::path> files_;
  std::map<std::string, TensorView> tensors_;
  std::map<std::string, std::string> metadata_;
};

// Bytes of the files that open_directory reads, and of no others in the directory. Throws Error
// where it would not find them; a shard that is missing counts as nothing.
uint64_t stored_bytes(const std::filesystem::path& dir);

// A tensor to be written; `bytes` must hold count * size_of(type) bytes.
struct TensorToWrite {
  std::string name;
  DType type;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

// Writes atomically (base/file_io.h). Throws Error for a full disk, duplicate names or a size that
// disagrees with the shape; nothing is left behind then.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata = {});

// As write_safetensors, with one entry more in the metadata: "checksum", a hash over all tensors
// and all other metadata, for files whose damage would not show in what they are used for.
void write_checked_safetensors(const std::filesystem::path& path,
                               std::span<const TensorToWrite> tensors,
                               const std::map<std::string, std::string>& metadata = {});

// Throws Error naming the file where a file that write_checked_safetensors wrote has changed since
// or has no checksum.
void require_checksum(const TensorStore& store);

// A tensor whose bytes are made when it is its turn, so that a large file never lies in memory as a
// whole. `make` fills all of the bytes it is given.
struct TensorToMake {
  std::string name;
  DType type;
  std::vector<int64_t> shape;
  std::function<void(std::span<std::byte>)> make;
};

// As write_safetensors. What `make` throws leaves nothing behind either.
void make_safetensors(const std::filesystem::path& path, std::span<const TensorToMake> tensors,
                      const std::map<std::string, std::string>& metadata = {});

}  // namespace sol
