// The arithmetic of the frozen model on plain pointers, one table of functions per instruction set.
// reference.cpp is the readable definition; every other set must agree with it (tests/kernels).
// All functions are single-threaded and work on the range they are given; the engine splits the
// work.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bfloat16.h"
#include "base/cpu.h"

namespace sol::kernels {

enum class ElementType : uint8_t { f32, bf16 };
inline int size_of(ElementType t) {
  return t == ElementType::f32 ? 4 : 2;
}

// How a matrix is stored. int8 and int4 rows hold codes and scales (compressed.h); the weight is
// their product, which float32 holds exactly.
enum class WeightType : uint8_t { f32, bf16, int8, int4 };

// A weight matrix with `in` inputs and `out` outputs: y = x · W.
//   out_major: row o holds the weights of one output, as in the file.
//   in_major:  row i holds the weights of one input channel, so that a dropped channel is memory
//              that is never read.
enum class Layout : uint8_t { out_major, in_major };
struct WeightView {
  const void* data = nullptr;
  WeightType type = WeightType::f32;
  Layout layout = Layout::out_major;
  int in = 0, out = 0;
  int64_t stride = 0;  // from row to row: in elements, in bytes where compressed
};

// Keys or values of one layer and key head: token j lies at
//   blocks[j / block_tokens] + offset (bytes) + (j % block_tokens) * dim elements.
struct CacheView {
  const std::byte* const* blocks = nullptr;
  int64_t offset = 0;
  int block_tokens = 0;
  int dim = 0;
  ElementType type = ElementType::f32;
};

// What is kept of a page's keys, per dimension: minimum and maximum, or mean and variance.
enum class PageSummary { extrema, moments };

// Page summaries of one layer and key head: page p lies at
//   blocks[p / block_pages] + offset (bytes) + (p % block_pages) * 2 * dim elements,
// its minimum (mean) [dim], then its maximum (variance) [dim].
struct PagesView {
  const std::byte* const* blocks = nullptr;
  int64_t offset = 0;
  int block_pages = 0;
  int dim = 0;
  ElementType type = ElementType::f32;
  PageSummary summary = PageSummary::extrema;
};

// Decoded tokens attend part by part: a part is the cached tokens [n * kPartTokens,
// (n + 1) * kPartTokens). Boundaries are counted from position 0, so that how parts are spread over
// threads and which rows are worked together changes no result.
inline constexpr int kPartTokens = 256;
inline constexpr int kPartRows = 64;  // most rows of one call

// Most inputs of an integer product: 127 * 127 times as many still fit 32 bits.
inline constexpr int kMostIntegerInputs = 1 << 17;

// Tokens of one part whose keys and values each lie contiguously, [count][dim], and who attends to
// them: row r where bit r is set.
struct AttendPiece {
  const void* keys;
  const void* values;
  int position;  // of the first token, from the part's begin
  int count;
  uint64_t rows;
};

// The pieces of the caller's next call, whose keys and values are sent for while the present ones
// are worked on; may be none.
struct NextPieces {
  const AttendPiece* pieces = nullptr;
  int count = 0;
};

// One query head of one decoded token: its query [dim], and where its partial result goes: the
// weighted sum of values [dim], the largest score, the sum of the weights exp(score - largest).
struct AttendRow {
  const float* q;
  float* partial;
};

struct Kernels {
  Isa isa;

  // Products. Of compressed in_major weights out_begin is a multiple of kCodeGroup (compressed.h),
  // and so is out_end unless it is the last output. With compressed weights inputs are rounded to
  // 16 bits below the largest of their block (compressed.h), sums within a block are exact, and
  // blocks' sums are added in their order, so that all that is said of sums below holds, bit for
  // bit, on every instruction set; an input that is not finite makes all that depends on its block
  // NaN.

  // y[o] for o in [out_begin, out_end) of y = x·W, W out_major, every input used.
  // Each y[o] is summed in an order that depends on `in` only, never on the range.
  void (*matvec_out_major)(const WeightView& w, const float* x, int out_begin, int out_end,
                           float* y);

  // The same for `rows` rows of x (x_stride apart) into rows of y, the weights read once for
  // several rows; each row's y is bit for bit what the function above gives.
  void (*matmul_out_major)(const WeightView& w, const float* x, int64_t x_stride, int rows,
                           int out_begin, int out_end, float* y, int64_t y_stride);

  // Rows of y[o] for o in [out_begin, out_end) of the sum over the listed channels
  // c = channels[0..n) of x[c] * W[c][o], W in_major, summed in ascending list order; rows of W of
  // channels that are not listed are never read. channels == nullptr means 0..in-1. Each y[o] is a
  // plain chain of fused multiply-adds in list order, whatever `rows` is, so dropping a channel
  // equals multiplying it by zero, bit for bit but for the sign of a sum that is zero. The weights
  // are read once for several rows.
  void (*matmul_in_major)(const WeightView& w, const float* x, int64_t x_stride, int rows,
                          const int* channels, int n, int out_begin, int out_end, float* y,
                          int64_t y_stride);

  // Integer products: int8 weights times rows of x that are codes too (quantise_row), summed
  // exactly in 32 bits, so that order, rows and instruction set change no bit. Rows of x are padded
  // with zeros to a multiple of kCodeGroup (compressed.h). `in` is at most kMostIntegerInputs.

  // Codes of n values: scale = max|x| / 127 in float32, codes[i] = round_half_even(x[i] / scale).
  // All zero, and so is the scale, where max|x| / 127 is below the smallest normal number; all zero
  // with the scale NaN where an x is not finite.
  void (*quantise_row)(const float* x, int n, int8_t* codes, float* scale);

  // y[r][o] = float(Σ_i x[r][i] * code(o, i)) * (x_scale[r] * scale(o)), W out_major.
  void (*integer_out_major)(const WeightView& w, const int8_t* x, int64_t x_stride,
                            const float* x_scale, int rows, int out_begin, int out_end, float* y,
                            int64_t y_stride);

  // y[r][o] = float(Σ_k x[r][k] * code(channels[k], o)) * x_scale[r], W in_major: its scales belong
  // to channels and are part of what x stands for. channels == nullptr means k itself, n = in; else
  // n is at least 1.
  void (*integer_in_major)(const WeightView& w, const int8_t* x, int64_t x_stride,
                           const float* x_scale, int rows, const int* channels, int n,
                           int out_begin, int out_end, float* y, int64_t y_stride);

  // Elements [begin, end) of one row of a matrix as float32, or rounded to bf16. `begin` is a
  // multiple of kCodeGroup where the weights are compressed.
  void (*widen_row)(const WeightView& w, int64_t row, int begin, int end, ElementType type,
                    void* out);

  // The same of what products sum: codes of int8, without their scale.
  void (*widen_summands)(const WeightView& w, int64_t row, int begin, int end, ElementType type,
                         void* out);

  // One row of n finite weights as codes and scales (compressed.h): row_bytes(type, n) bytes.
  void (*compress_row)(const float* x, int n, WeightType type, std::byte* row);

  // out = x / sqrt(mean(x²) + eps) * weight, over n elements (mean in float32).
  void (*rms_norm)(const float* x, const float* weight, float eps, int n, float* out);

  // Rotary embedding, half-split layout, in place on `heads` vectors of `dim`: cos, sin [dim / 2].
  void (*rotary)(float* x, int heads, int dim, const float* cos, const float* sin);

  // out[i] = silu(gate[i]) * up[i].
  void (*silu_mul)(const float* gate, const float* up, int n, float* out);

  // x += y.
  void (*add)(float* x, const float* y, int n);

  // Fake quantisation of one token's z[n] in place (paper, "Quantizer"): a = max(max|z|, 1e-8),
  // s = a / (2^(bits-1) - 1), z = clamp(round_half_even(z / s)) * s, float32 division. bits >= 16:
  // none.
  void (*fake_quantise)(float* z, int n, int bits);

  // Stores n floats as the cache's or an operand's type (bf16: round to nearest even).
  void (*store)(const float* x, int n, ElementType type, void* out);
  // Loads n stored elements as floats.
  void (*load)(const void* x, ElementType type, int n, float* out);

  // Page extrema from `count` stored keys of `dim` at `keys` (contiguous): minimum then maximum,
  // each [dim], written in the same type (exact).
  void (*page_extrema)(const void* keys, ElementType type, int count, int dim, void* minmax);

  // Likewise mean then variance (of the whole page, not of a sample), rounded to the type.
  void (*page_moments)(const void* keys, ElementType type, int count, int dim, void* moments);

  // score[h * stride + p] for the `heads` queries at q ([heads][dim]) that share these keys and
  // pages p in [first, first + count), float32. Of extrema: Σ_d max(q_d, 0)·max_d + min(q_d,
  // 0)·min_d (paper, "Quest masking"; docs/arithmetic.md). Of moments: Σ_d q_d·mean_d +
  // q_d²·variance_d / (2√dim), the logarithm of the mean of exp(q·k / √dim) over keys so
  // distributed, times √dim.
  void (*page_scores)(const float* q, int heads, const PagesView& pages, int first, int count,
                      float* score, int64_t stride);

  // Marks the `keep` largest of x[n]: bit i of marks[(n + 63) / 64]. Ties go to the lower index;
  // with keep_ties everything that ties with the last kept one is kept too. By value (-0 equals 0,
  // NaN below everything) or by magnitude (NaN above everything). The same on every instruction
  // set. `scratch`: mark_largest_scratch(n) integers.
  void (*mark_largest)(const float* x, int n, int keep, bool magnitude, bool keep_ties,
                       uint64_t* marks, int32_t* scratch);

  // Attention of at most kPartRows rows over one part: scores q·k * scale, weights relative to the
  // row's largest score in the part, weighted sum of values. A row's pieces ascend by position and
  // do not overlap; nor do the first `shared` pieces, whose positions come before all others'. A
  // token is read from memory once for all of its rows and not at all without any (a value that is
  // not finite may reach a row of the same call that has its token unselected). `scratch`:
  // attend_part_scratch floats. A row's result depends on its own tokens only; that of a row
  // without tokens is zeros with largest = -infinity.
  void (*attend_part)(const AttendRow* rows, int row_count, int dim, ElementType type,
                      const AttendPiece* pieces, int piece_count, int shared,
                      const NextPieces& next, float scale, float* scratch);

  // One row's attention from its partial results, `parts` of them, stride apart, in their order:
  // out[dim].
  void (*merge_parts)(const float* partials, int parts, int64_t stride, int dim, float* out);

  // Causal attention of `rows` consecutive positions first_position.. of `heads` query heads that
  // share one key head, over all cached tokens 0..first_position + row (the rows' own keys are in
  // the cache already). q and out: row r, head h at (r * row_stride + h * dim). `scratch`: at least
  // attend_causal_scratch(rows, heads, first_position + rows, dim) floats. Each row's result does
  // not depend on how positions were grouped into calls (a value that is not finite may reach
  // earlier rows of its call).
  void (*attend_causal)(const float* q, int64_t row_stride, int rows, int heads, int first_position,
                        const CacheView& keys, const CacheView& values, float scale, float* scratch,
                        float* out);

  // One step of a running softmax over tiles of keys. Row r of `rows` (stride apart) holds q·k of
  // `keys` keys, a multiple of 16, of which it sees the first seen + r / heads (none at least, all
  // at most). They become weights exp(q·k * scale - largest), rounded to bf16, at the row's
  // beginning, zero where the row sees nothing. largest[r] and total[r] (-infinity and 0 at first)
  // are kept up to date, and out[r * dim ..] is scaled to the new largest score.
  void (*softmax_step)(float* scores, int64_t stride, int rows, int keys, int seen, int heads,
                       float scale, float* largest, float* total, float* out, int dim);

  // log Σ exp(x) over n, and Σ p·x for the entropy: entropy = logsumexp - dot. Two results.
  void (*log_sum_exp)(const float* x, int n, float* log_sum_exp, float* expected_x);

  // LayerNorm with bias (eps inside the root), exact-erf GELU in place, both for the policy
  // network.
  void (*layer_norm)(const float* x, const float* weight, const float* bias, float eps, int n,
                     float* out);
  void (*gelu)(float* x, int n);

  // The largest of `count` integers, a multiple of 128, read as fast as we know how to read memory:
  // what benchmarks call the memory's speed.
  int32_t (*largest_of)(const int32_t* x, int64_t count);
};

inline constexpr int attend_part_scratch = 4 * kPartTokens;  // rows that are worked together
int mark_largest_scratch(int n);
int64_t attend_causal_scratch(int rows, int heads, int tokens, int dim);

const Kernels& kernels();             // of current_isa()
const Kernels& kernels_for(Isa isa);  // must be in supported_isas()

}  // namespace sol::kernels
