#include "engine/pack_weights.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/fail.h"
#include "base/threads.h"

namespace sol {

using kernels::ElementType;
using kernels::WeightType;

namespace {

// Elements [begin, begin + n) of a tensor as floats.
void read_elements(const TensorView& tensor, int64_t begin, int n, float* out) {
  const std::byte* data = tensor.bytes.data() + begin * static_cast<int64_t>(size_of(tensor.type));
  switch (tensor.type) {
    case DType::f32:
      std::memcpy(out, data, sizeof(float) * static_cast<size_t>(n));
      return;
    case DType::bf16:
      kernels::kernels().load(data, ElementType::bf16, n, out);
      return;
    case DType::f16:
      for (int i = 0; i < n; ++i) {
        uint16_t bits;
        std::memcpy(&bits, data + int64_t{2} * i, sizeof(bits));
        out[i] = half_to_float(bits);
      }
      return;
    default:
      fail("tensor {}: weights must be F32, F16 or BF16", tensor.describe());
  }
}

void write_row(const float* x, int n, WeightType type, std::byte* out) {
  const kernels::Kernels& k = kernels::kernels();
  if (kernels::is_compressed(type))
    k.compress_row(x, n, type, out);
  else
    k.store(x, n, type == WeightType::f32 ? ElementType::f32 : ElementType::bf16, out);
}

// largest_weight as F32 and BF16, and what F16 has of finite weights.
constexpr uint32_t largest_f32 = std::bit_cast<uint32_t>(largest_weight);
constexpr uint16_t largest_bf16 = largest_f32 >> 16, largest_f16 = 0x7bff;
static_assert(largest_f32 == uint32_t{largest_bf16} << 16);

// Whether any of `count` elements is larger than `largest` or NaN, whose magnitudes' bits are the
// larger numbers. Written so that compilers vectorise it.
template <typename Word>
bool any_larger(const std::byte* data, int64_t count, Word largest) {
  constexpr Word magnitude = std::numeric_limits<Word>::max() / 2;
  Word found = 0;
  for (int64_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, data + i * static_cast<int64_t>(sizeof(Word)), sizeof(Word));
    found |= static_cast<Word>((word & magnitude) > largest);
  }
  return found != 0;
}

}  // namespace

void require_finite(const TensorView& tensor) {
  constexpr int64_t chunk = 1 << 16;
  const int64_t count = tensor.count();
  std::atomic<int64_t> bad{-1};
  parallel_for((count + chunk - 1) / chunk, [&](int64_t c) {
    const int64_t begin = c * chunk, n = std::min(chunk, count - begin);
    const std::byte* data =
        tensor.bytes.data() + begin * static_cast<int64_t>(size_of(tensor.type));
    bool larger = false;
    if (tensor.type == DType::f32) larger = any_larger(data, n, largest_f32);
    if (tensor.type == DType::bf16) larger = any_larger(data, n, largest_bf16);
    if (tensor.type == DType::f16) larger = any_larger(data, n, largest_f16);
    if (larger) bad.store(begin);
  });
  if (bad < 0) return;
  float value = 0;
  int64_t i = bad;
  for (read_elements(tensor, i, 1, &value); std::abs(value) <= largest_weight;)
    read_elements(tensor, ++i, 1, &value);
  fail(
      "tensor {} holds {} at element {}, not finite or too large: the model file is damaged or its "
      "training diverged; get another copy of it",
      tensor.describe(), value, i);
}

void pack_rows(const TensorView& matrix, WeightType type, std::byte* out) {
  const int columns = static_cast<int>(matrix.shape[1]);
  const int64_t bytes = kernels::row_bytes(type, columns);
  parallel_for(matrix.shape[0], [&](int64_t r) {
    thread_local std::vector<float> row;
    row.resize(static_cast<size_t>(columns));
    read_elements(matrix, r * columns, columns, row.data());
    write_row(row.data(), columns, type, out + r * bytes);
  });
}

void pack_channels(std::span<const TensorView* const> matrices, WeightType type, std::byte* out) {
  const TensorView& first = *matrices.front();
  const int outputs = static_cast<int>(first.shape[0]), in = static_cast<int>(first.shape[1]);
  const int64_t width = static_cast<int64_t>(matrices.size()) * outputs;
  const int64_t bytes = kernels::row_bytes(type, static_cast<int>(width));
  // As many channels at a time as fill a cache line of the file's rows.
  constexpr int kTile = 32;
  parallel_for((in + kTile - 1) / kTile, [&](int64_t t) {
    const int begin = static_cast<int>(t) * kTile, count = std::min(kTile, in - begin);
    thread_local std::vector<float> rows;
    rows.resize(static_cast<size_t>(kTile * width));
    for (size_t m = 0; m < matrices.size(); ++m) {
      float* column = rows.data() + m * static_cast<size_t>(outputs);
      for (int64_t o = 0; o < outputs; ++o) {
        float piece[kTile];
        read_elements(*matrices[m], o * in + begin, count, piece);
        for (int i = 0; i < count; ++i) column[i * width + o] = piece[i];
      }
    }
    for (int i = 0; i < count; ++i)
      write_row(rows.data() + i * width, static_cast<int>(width), type, out + (begin + i) * bytes);
  });
}

}  // namespace sol
