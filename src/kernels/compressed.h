// Compressed rows of weights (docs/formats.md, "Compressed rows"): codes and their scales lie in
// one contiguous row, so that a row that is not needed is memory that is never read.
//
//   int8: ceil(n / 32) * 32 codes in -127..127, then the row's scale
//   int4: per group of 32 weights 16 bytes, byte b holding the codes of weights b (low half) and
//         16 + b (high half), then one scale per group; the weight is scale * kInt4Values[code]
//
// Products sum whole numbers: inputs become 16-bit ones that share a scale in each block. An input
// is multiplied by the weight's scale before that where W is in_major; where it is out_major,
// int8's scale multiplies the sum, int4's the sum of its group.
//
// Scales are bf16. A row is padded with zero bytes to a multiple of kRowAlignment.
#pragma once

#include <cstddef>
#include <string_view>

#include "kernels/kernels.h"

namespace sol::kernels {

inline constexpr int kCodeGroup = 32;
inline constexpr int kRowAlignment = 16;  // a load of 16 codes never crosses a cache line
inline constexpr int kLargestInt8 = 127;

// Blocks of inputs that share a scale: of so many inputs in a row (out_major), of so many channels,
// counted from channel 0, for each group of outputs (in_major).
inline constexpr int kFixedInputs = 128;
inline constexpr int kFixedChannels = 16;
// Inputs of an out_major product are summed, and their sums rounded, this many at a time.
inline constexpr int kFixedChunk = 8192;
inline constexpr int kLargestFixed = 32639;  // the largest with two signed bytes
// A block without anything as large counts as zero.
inline constexpr float kSmallestFixed = 0x1p-100f;

// What 4-bit codes stand for. Values and their asymmetry are those that minimise the error of
// normally distributed weights in groups of 32, each with its best scale of either sign (Lloyd's
// algorithm); evenly spaced values have a quarter more error.
alignas(16) inline constexpr int8_t kInt4Values[16] = {-127, -99, -78, -61, -47, -35, -23, -12,
                                                       -2,   10,  22,  35,  49,  64,  82,  105};

// Scales are smaller: times any code's value they are finite.
inline constexpr float kScaleLimit = 0x1p121f;

// Scales that are tried for a group of 4-bit codes, times the one that maps the largest weight to
// an end of the values, and how often the best of them is improved by least squares.
// Not inline: a symbol that the linker shares between files could come from one with instructions
// that the machine lacks.
constexpr float kScaleFactors[] = {0.92f, 0.96f, 1.0f, 1.04f, 1.08f};
inline constexpr int kScaleRefinements = 2;
// Where the largest weight of a group is beyond these, squares leave float32's range: weights and
// errors are first divided or multiplied by the unit, a power of two, which changes no comparison.
inline constexpr float kLargestSquared = 0x1p60f, kSmallestSquared = 0x1p-40f;
inline constexpr float kErrorUnit = 0x1p80f;

std::string_view to_string(WeightType type);  // "f32", "bf16", "int8", "int4"

constexpr bool is_compressed(WeightType type) {
  return type == WeightType::int8 || type == WeightType::int4;
}

// Bytes of one row of n weights.
int64_t row_bytes(WeightType type, int n);
// Bytes from the start of a compressed row to its first scale.
int64_t code_bytes(WeightType type, int n);
// What WeightView::stride is when rows lie one after the other.
int64_t dense_stride(WeightType type, int n);
// Bytes of the whole matrix, rows one after the other.
int64_t matrix_bytes(const WeightView& w);

// Index of the first scale of a compressed row that is not finite or not within kScaleLimit, or -1.
int first_bad_scale(const std::byte* row, WeightType type, int n);
// Index of the first code of a compressed row that stands for nothing, int8's -128, or -1: products
// need not agree on it.
int first_bad_code(const std::byte* row, WeightType type, int n);

}  // namespace sol::kernels
