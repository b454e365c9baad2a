#include "kernels/matmul_widened.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <vector>

#include "base/threads.h"
#include "kernels/compressed.h"
#include "kernels/int8_scales.h"
#include "kernels/matmul_bf16.h"
#include "kernels/matmul_dnnl.h"
#include "kernels/rounded_rows.h"

namespace sol::kernels {
namespace {

constexpr int64_t kPanelBytes = 1 << 20;
// Panels are whole groups of codes and whole cache lines of y.
constexpr int kPanelGrain = 64;
static_assert(kPanelGrain % kCodeGroup == 0);

// A panel of in_major weights takes a short piece of every row, too short for the processor's own
// prefetching to follow.
void prefetch_piece(const WeightView& w, int64_t row, int begin, int count) {
  if (row >= w.in) return;
  const std::byte* piece =
      static_cast<const std::byte*>(w.data) + row * w.stride + code_bytes(w.type, begin);
  const int64_t bytes = code_bytes(w.type, count);
  for (int64_t b = 0; b < bytes; b += 64) __builtin_prefetch(piece + b);
}

// Outputs [begin, begin + count) of w as a matrix of `type` in memory that this thread keeps.
WeightView widen_panel(const WeightView& w, int begin, int count, ElementType type) {
  thread_local std::vector<float> memory;  // of floats for their alignment
  const size_t bytes = static_cast<size_t>(w.in) * static_cast<size_t>(count) * size_of(type);
  memory.resize((bytes + sizeof(float) - 1) / sizeof(float));
  std::byte* panel = reinterpret_cast<std::byte*>(memory.data());
  const Kernels& k = kernels();
  const bool by_output = w.layout == Layout::out_major;
  const int rows = by_output ? count : w.in, columns = by_output ? w.in : count;
  const int64_t panel_row = static_cast<int64_t>(columns) * size_of(type);
  for (int r = 0; r < rows; ++r) {
    if (by_output) {
      k.widen_summands(w, begin + r, 0, w.in, type, panel + r * panel_row);
      continue;
    }
    constexpr int kRowsAhead = 8;
    prefetch_piece(w, r + kRowsAhead, begin, count);
    k.widen_summands(w, r, begin, begin + count, type, panel + r * panel_row);
  }
  return {panel,    type == ElementType::f32 ? WeightType::f32 : WeightType::bf16,
          w.layout, w.in,
          count,    columns};
}

}  // namespace

bool widened_matmul(const float* x, int64_t x_stride, int rows, const WeightView& w, float* y,
                    int64_t y_stride, ElementType type) {
  if (!dnnl_multiplies(type)) return false;
  const bool narrow = type == ElementType::bf16;
  // As much as stays in cache, and something for each thread.
  const int64_t fitting = kPanelBytes / (int64_t{w.in} * size_of(type)) / kPanelGrain * kPanelGrain;
  const int64_t shares = int64_t{thread_count()} * kPanelGrain;
  const int64_t share = (w.out + shares - 1) / shares * kPanelGrain;
  const int outputs = static_cast<int>(std::max<int64_t>(std::min(fitting, share), kPanelGrain));
  // Panels hold codes of int8, which bf16 holds exactly; their scales multiply y or, by channel, x.
  const bool codes = w.type == WeightType::int8;
  if (codes) {
    const CodeInputs inputs = code_inputs(x, x_stride, rows, w);
    x = inputs.rows;
    x_stride = inputs.stride;
  }
  const auto unit = narrow ? fastest_unit(rows) : std::nullopt;
  std::optional<NarrowRows> own;
  if (unit) own.emplace(*unit, x, x_stride, rows, w, std::span<const int>());
  const bf16* rounded = narrow && !own ? rounded_rows(x, x_stride, rows, w.in, w.in) : nullptr;
  // Each thread makes panels of its own and multiplies with them: they stay in its cache.
  std::atomic<bool> fast = true;
  parallel_for((w.out + outputs - 1) / outputs, [&](int64_t p) {
    const int begin = static_cast<int>(p) * outputs;
    const WeightView panel = widen_panel(w, begin, std::min(outputs, w.out - begin), type);
    if (own) return own->multiply(panel, 0, panel.out, y + begin, y_stride);
    const bool done = narrow ? dnnl_matmul_rounded(rounded, rows, panel, y + begin, y_stride)
                             : dnnl_matmul(x, x_stride, rows, panel, y + begin, y_stride);
    if (!done) fast = false;
  });
  if (!fast) return false;
  if (codes) scale_outputs(y, y_stride, rows, w);
  return true;
}

}  // namespace sol::kernels
