#include "engine/cpu_weights.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/fail.h"
#include "base/threads.h"

namespace sol {

using kernels::ElementType;
using kernels::Layout;
using kernels::WeightView;

namespace {

float element(const TensorView& tensor, int64_t i) {
  const std::byte* data = tensor.bytes.data();
  if (tensor.type == DType::f32) {
    float x;
    std::memcpy(&x, data + i * 4, 4);
    return x;
  }
  uint16_t bits;
  std::memcpy(&bits, data + i * 2, 2);
  return tensor.type == DType::bf16 ? to_float(bf16{bits}) : half_to_float(bits);
}

// Whether all exponent bits of any of `count` elements are set. Written so that compilers vectorise
// it.
template <typename Word>
bool any_exponent_full(const std::byte* data, int64_t count, Word mask) {
  Word found = 0;
  for (int64_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, data + i * static_cast<int64_t>(sizeof(Word)), sizeof(Word));
    found |= static_cast<Word>((word & mask) == mask);
  }
  return found != 0;
}

void require_finite(const TensorView& tensor) {
  constexpr int64_t chunk = 1 << 16;
  const int64_t count = tensor.count();
  std::atomic<int64_t> bad{-1};
  parallel_for((count + chunk - 1) / chunk, [&](int64_t c) {
    const int64_t begin = c * chunk, n = std::min(chunk, count - begin);
    const std::byte* data =
        tensor.bytes.data() + begin * static_cast<int64_t>(size_of(tensor.type));
    bool full = false;
    if (tensor.type == DType::f32) full = any_exponent_full<uint32_t>(data, n, 0x7f800000u);
    if (tensor.type == DType::bf16) full = any_exponent_full<uint16_t>(data, n, 0x7f80u);
    if (tensor.type == DType::f16) full = any_exponent_full<uint16_t>(data, n, 0x7c00u);
    if (full) bad.store(begin);
  });
  if (bad < 0) return;
  int64_t i = bad;
  while (std::isfinite(element(tensor, i))) ++i;
  fail(
      "tensor {} holds {} at element {}: the model file is damaged or its training diverged; "
      "get another copy of it",
      tensor.describe(), element(tensor, i), i);
}

std::vector<float> vector_of(const TensorView& tensor) {
  require_finite(tensor);
  return tensor.to_floats();
}

}  // namespace

Precision resolve_precision(Precision requested, const LlamaWeights& weights) {
  if (requested != Precision::automatic) return requested;
  const bool stored = weights.layers.front().gate->type == DType::bf16;
  return stored && cpu_multiplies_bf16() && current_isa() == Isa::avx512 ? Precision::bf16
                                                                         : Precision::f32;
}

void CpuWeights::Free::operator()(void* p) const {
  std::free(p);
}

void* CpuWeights::allocate(size_t bytes) {
  void* p = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (!p) throw std::bad_alloc();
  storage_.emplace_back(p);
  return p;
}

WeightView CpuWeights::matrix(const TensorView& tensor) {
  require_finite(tensor);
  const int out = static_cast<int>(tensor.shape[0]), in = static_cast<int>(tensor.shape[1]);
  WeightView view{tensor.bytes.data(), type_, Layout::out_major, in, out, in};
  parameters += static_cast<uint64_t>(tensor.count());
  const bool suits = (type_ == ElementType::f32 && tensor.type == DType::f32) ||
                     (type_ == ElementType::bf16 && tensor.type == DType::bf16);
  const bool aligned = reinterpret_cast<uintptr_t>(view.data) % kernels::size_of(type_) == 0;
  if (suits && aligned) return view;  // in place, from the mapped file
  const int element_bytes = kernels::size_of(type_);
  std::byte* copy =
      static_cast<std::byte*>(allocate(static_cast<size_t>(tensor.count()) * element_bytes));
  parallel_for(out, [&](int64_t o) {
    for (int64_t i = 0; i < in; ++i) {
      const float x = element(tensor, o * in + i);
      const int64_t at = o * in + i;
      if (type_ == ElementType::f32) {
        reinterpret_cast<float*>(copy)[at] = x;
      } else {
        reinterpret_cast<bf16*>(copy)[at] = to_bf16(x);
      }
    }
  });
  view.data = copy;
  return view;
}

WeightView CpuWeights::transposed_pair(const TensorView& gate, const TensorView& up) {
  require_finite(gate);
  require_finite(up);
  const int out = static_cast<int>(gate.shape[0]), in = static_cast<int>(gate.shape[1]);
  parameters += static_cast<uint64_t>(gate.count() + up.count());
  const int64_t stride = 2 * static_cast<int64_t>(out);
  std::byte* data = static_cast<std::byte*>(
      allocate(static_cast<size_t>(in) * static_cast<size_t>(stride) * kernels::size_of(type_)));
  // Tiles keep both the rows read and the rows written in cache.
  constexpr int tile = 64;
  parallel_for((in + tile - 1) / tile, [&](int64_t t) {
    const int64_t i_begin = t * tile, i_end = std::min<int64_t>(in, i_begin + tile);
    for (const TensorView* tensor : {&gate, &up}) {
      const int64_t column = tensor == &gate ? 0 : out;
      for (int64_t o = 0; o < out; ++o) {
        for (int64_t i = i_begin; i < i_end; ++i) {
          const float x = element(*tensor, o * in + i);
          const int64_t at = i * stride + column + o;
          if (type_ == ElementType::f32) {
            reinterpret_cast<float*>(data)[at] = x;
          } else {
            reinterpret_cast<bf16*>(data)[at] = to_bf16(x);
          }
        }
      }
    }
  });
  return {data, type_, Layout::in_major, in, 2 * out, stride};
}

CpuWeights::CpuWeights(const LlamaConfig& config, TensorStore store, Precision precision)
    : store_(std::move(store)),
      type_(precision == Precision::bf16 ? ElementType::bf16 : ElementType::f32) {
  const LlamaWeights found = find_llama_weights(config, store_);
  embedding = matrix(*found.embedding);
  head = found.head == found.embedding ? embedding : matrix(*found.head);
  final_norm = vector_of(*found.final_norm);
  parameters += final_norm.size();
  for (const LlamaLayerWeights& layer : found.layers) {
    CpuLayer& out = layers.emplace_back();
    out.input_norm = vector_of(*layer.input_norm);
    out.post_norm = vector_of(*layer.post_norm);
    parameters += out.input_norm.size() + out.post_norm.size();
    out.q = matrix(*layer.q);
    out.k = matrix(*layer.k);
    out.v = matrix(*layer.v);
    out.o = matrix(*layer.o);
    out.gate_up = transposed_pair(*layer.gate, *layer.up);
    out.down = matrix(*layer.down);
  }
  const auto bytes = [](const WeightView& w) {
    return static_cast<uint64_t>(w.in) * static_cast<uint64_t>(w.out) * kernels::size_of(w.type);
  };
  const CpuLayer& first = layers.front();
  layer_bytes_without_gate_up =
      bytes(first.q) + bytes(first.k) + bytes(first.v) + bytes(first.o) + bytes(first.down);
  gate_up_row_bytes = static_cast<uint64_t>(first.gate_up.out) * kernels::size_of(type_);
  head_bytes = bytes(head);
}

}  // namespace sol
