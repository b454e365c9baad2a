// Products of int8 weights with rows that are codes too. Sums are exact, so neither the order nor
// the number of rows worked together changes a bit.
#include "kernels/isa/channels.h"
#include "kernels/isa/compressed_row.h"
#include "kernels/isa/functions.h"
#include "kernels/isa/prefetch.h"

namespace sol::kernels::SOL_ISA_NAME {
namespace {

// --- out_major ---

// O outputs of R rows, from `output` on, `step` apart.
template <int R, int O>
void dot_tile(const WeightView& w, const int8_t* x, int64_t x_stride, const float* x_scale,
              int output, int step, float* y, int64_t y_stride) {
  const std::byte* row[O];
  DotSum sum[O][R];
  for (int o = 0; o < O; ++o) row[o] = row_at(w, output + o * step);
  for_code_groups<Int8Rows>(groups_of(w.in), [&](int g, auto line) {
    WideCodes codes[R];
    for (int r = 0; r < R; ++r) codes[r] = load_codes(x + r * x_stride + g * kGroup);
    for (int o = 0; o < O; ++o) {
      const std::byte* at = row[o] + static_cast<int64_t>(g) * kGroup;
      if constexpr (R == 1 && line.begins) send_for(at);
      const WideCodes weights = load_codes(at);
      for (int r = 0; r < R; ++r) add_products(sum[o][r], codes[r], weights);
    }
  });
  for (int o = 0; o < O; ++o) {
    const float scale = Int8Rows::row_scale(row[o], w.in);
    for (int r = 0; r < R; ++r)
      y[r * y_stride + output + o * step] =
          static_cast<float>(total(sum[o][r])) * (x_scale[r] * scale);
  }
}

template <int R, int O>
void dot_rows(const WeightView& w, const int8_t* x, int64_t x_stride, const float* x_scale,
              int out_begin, int out_end, float* y, int64_t y_stride) {
  for_streams<O>(out_begin, out_end, [&]<int Outputs>(int o, int step) {
    dot_tile<R, Outputs>(w, x, x_stride, x_scale, o, step, y, y_stride);
  });
}

// --- in_major ---

// Sums that a pass over the weights adds to: they stay in cache. The longer the pieces of rows, the
// better prefetching works.
constexpr int kSums = 16384;

// R rows of x, C channels from number k on, `outputs` outputs from a group on.
template <int R, int C>
void add_channels(const Channels& channels, int k, const int8_t* x, int64_t x_stride, int group,
                  int outputs, int32_t* sums, int64_t sums_stride) {
  const std::byte *row[C], *ahead[C];
  int32_t factors[R][C / 2];
  for (int c = 0; c < C; ++c) {
    // Beyond the last channel x is zero.
    row[c] = row_at(channels.w, channels.at(smaller(k + c, channels.n - 1)));
    ahead[c] = row_at(channels.w, channels.at(smaller(k + C + c, channels.n - 1)));
  }
  for (int r = 0; r < R; ++r) {
    const int8_t* at = x + r * x_stride + k;
    for (int c = 0; c < C; c += 2)
      factors[r][c / 2] =
          (at[c] & 0xffff) | static_cast<int32_t>(static_cast<uint32_t>(at[c + 1]) << 16);
  }
  for (int c = 0; c < C; ++c) send_for_begin(ahead[c], int64_t{group} * kGroup, outputs);
  for_code_groups<Int8Rows>(groups_of(outputs), [&](int g, auto line) {
    const int64_t offset = static_cast<int64_t>(group + g) * kGroup;
    ColumnSums sum[R];
    for (int r = 0; r < R; ++r)
      sum[r] = k == 0 ? no_columns() : load_columns(sums + r * sums_stride + g * kGroup);
    for (int c = 0; c < C; c += 2) {
      if constexpr (line.begins) {
        send_for(row[c] + offset);
        send_for(row[c + 1] + offset);
      }
      const CodePairs pairs = load_pairs(row[c] + offset, row[c + 1] + offset);
      for (int r = 0; r < R; ++r) add_products(sum[r], pairs, factors[r][c / 2]);
    }
    for (int r = 0; r < R; ++r) store_columns(sums + r * sums_stride + g * kGroup, sum[r]);
  });
}

template <int R, int C>
void stream(const Channels& channels, const int8_t* x, int64_t x_stride, const float* x_scale,
            int out_begin, int out_end, float* y, int64_t y_stride) {
  static_assert(kGroup % C == 0);  // x is padded to whole groups
  constexpr int kPiece = kSums / R;
  alignas(64) int32_t sums[kSums];
  for (int o = out_begin; o < out_end; o += kPiece) {
    const int outputs = smaller(kPiece, out_end - o);
    for (int k = 0; k < channels.n; k += C)
      add_channels<R, C>(channels, k, x, x_stride, o / kGroup, outputs, sums, kPiece);
    for (int r = 0; r < R; ++r) {
      for (int g = 0; g * kGroup < outputs; ++g) {
        Vec first, second;
        columns_as_floats(load_columns(sums + r * kPiece + g * kGroup), first, second);
        store_pair(y + r * y_stride + o + g * kGroup, outputs - g * kGroup, first * set(x_scale[r]),
                   second * set(x_scale[r]));
      }
    }
  }
}

}  // namespace

void quantise_row(const float* x, int n, int8_t* codes, float* scale) {
  constexpr float kSmallestNormal = 0x1p-126f;
  Vec most = zero(), check = zero();
  for_vectors(n, [&](int i, auto part) {
    const Vec v = load(x + i, part);
    most = max(most, abs(v));
    check = fma(v, zero(), check);  // NaN where v is not finite
  });
  const float largest = reduce_max(most) / static_cast<float>(kLargestInt8);
  *scale = reduce_add(check) != 0.0f ? __builtin_nanf("") : largest;
  if (!(*scale >= kSmallestNormal)) {
    if (*scale < kSmallestNormal) *scale = 0.0f;
    for (int i = 0; i < n; ++i) codes[i] = 0;
    return;
  }
  // At most 127 by construction: the largest divided by a 127th of itself.
  for_vectors(n, [&](int i, auto part) {
    store_codes(codes + i, round(load(x + i, part) / set(*scale)), part);
  });
}

void integer_out_major(const WeightView& w, const int8_t* x, int64_t x_stride, const float* x_scale,
                       int rows, int out_begin, int out_end, float* y, int64_t y_stride) {
  for_groups<4>(rows, [&]<int R>(int r) {
    dot_rows<R, R == 1 ? kMatvecRows : kCodeTileOutputs>(
        w, x + r * x_stride, x_stride, x_scale + r, out_begin, out_end, y + r * y_stride, y_stride);
  });
}

void integer_in_major(const WeightView& w, const int8_t* x, int64_t x_stride, const float* x_scale,
                      int rows, const int* channels, int n, int out_begin, int out_end, float* y,
                      int64_t y_stride) {
  const Channels listed{w, channels, channels ? n : w.in};
  for_groups<4>(rows, [&]<int R>(int r) {
    stream<R, R == 1 ? 8 : 4>(listed, x + r * x_stride, x_stride, x_scale + r, out_begin, out_end,
                              y + r * y_stride, y_stride);
  });
}

}  // namespace sol::kernels::SOL_ISA_NAME
