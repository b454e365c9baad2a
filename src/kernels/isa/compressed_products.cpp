// Products with compressed weights: the same chains of fused multiply-adds as with uncompressed
// ones (products.cpp), of codes where the row's one scale stays outside, else of scale * code,
// which float32 holds exactly.
#include "kernels/isa/compressed_products.h"

#include "kernels/isa/channels.h"
#include "kernels/isa/compressed_row.h"
#include "kernels/isa/prefetch.h"

namespace sol::kernels::SOL_ISA_NAME {
namespace {

// Scales are widened before use, so that they can be multiplied straight from memory: those of this
// many groups of an out_major row at a time, and of this many of an in_major one. The latter is how
// much of a row is read at once: the longer, the better prefetching works (a quarter faster than
// with 128 groups, measured).
constexpr int kChunk = 128;
constexpr int kPieceGroups = 512;

// O outputs of R rows.
template <int R, int O, typename Codes>
void dot_tile(const Codes& codes, const WeightView& w, const float* x, int64_t x_stride, int output,
              float* y, int64_t y_stride) {
  static_assert(R <= 4);
  const std::byte* row[O];
  Vec sum[O][4];
  for (int o = 0; o < O; ++o) {
    row[o] = row_at(w, output + o);
    for (int r = 0; r < 4; ++r) sum[o][r] = zero();
  }
  alignas(64) float scale[O][kChunk];
  const int groups = groups_of(w.in);
  for (int begin = 0; begin < groups; begin += kChunk) {
    const int count = smaller(kChunk, groups - begin);
    for (int o = 0; o < O; ++o) Codes::load_scales(row[o], w.in, begin, count, scale[o]);
    for_code_groups<Codes>(count, [&](int g, auto line) {
      const int i = (begin + g) * kGroup;
      Vec first[R], second[R];
      for (int r = 0; r < R; ++r) load_pair(x + r * x_stride + i, w.in - i, first[r], second[r]);
      for (int o = 0; o < O; ++o) {
        const std::byte* at = row[o] + static_cast<int64_t>(begin + g) * Codes::kGroupBytes;
        // The rows lie one after the other: the next O of them follow.
        if constexpr (R == 1 && line.begins) send_for_next_row(at + O * w.stride);
        Vec low, high;
        codes.load_group(at, &scale[o][g], low, high);
        for (int r = 0; r < R; ++r) {
          sum[o][r] = fma(first[r], low, sum[o][r]);
          sum[o][r] = fma(second[r], high, sum[o][r]);
        }
      }
    });
  }
  for (int o = 0; o < O; ++o) {
    float sums[4];
    reduce_add4(sum[o][0], sum[o][1], sum[o][2], sum[o][3], sums);
    const float outside = Codes::row_scale(row[o], w.in);
    for (int r = 0; r < R; ++r) y[r * y_stride + o] = sums[r] * outside;
  }
}

template <int R, int O, typename Codes>
void dot_rows(const Codes& codes, const WeightView& w, const float* x, int64_t x_stride, int begin,
              int end, float* y, int64_t y_stride) {
  int o = begin;
  for (; o + O <= end; o += O) dot_tile<R, O>(codes, w, x, x_stride, o, y + o, y_stride);
  for (; o < end; ++o) dot_tile<R, 1>(codes, w, x, x_stride, o, y + o, y_stride);
}

// Adds C channels' rows to R rows of y, groups [begin, begin + count) of which `outputs` are real.
// While they are worked on, the same part of the rows that follow is fetched.
template <int R, int C, typename Codes>
void add_channels(const Codes& codes, const std::byte* const (&row)[C],
                  const std::byte* const (&ahead)[C], const float (&x)[R][C],
                  const float (&scale)[C][kPieceGroups], bool first_channels, int begin,
                  int outputs, float* y, int64_t y_stride) {
  for_code_groups<Codes>(groups_of(outputs), [&](int g, auto line) {
    const int64_t offset = static_cast<int64_t>(begin + g) * Codes::kGroupBytes;
    const int left = outputs - g * kGroup;
    Vec low[R], high[R];
    for (int r = 0; r < R; ++r) {
      if (first_channels)
        low[r] = high[r] = zero();
      else
        load_pair(y + r * y_stride + g * kGroup, left, low[r], high[r]);
    }
    for (int c = 0; c < C; ++c) {
      if constexpr (line.begins) send_for_next_row(ahead[c] + offset);
      Vec first, second;
      codes.load_group(row[c] + offset, &scale[c][g], first, second);
      for (int r = 0; r < R; ++r) {
        low[r] = fma(set(x[r][c]), first, low[r]);
        high[r] = fma(set(x[r][c]), second, high[r]);
      }
    }
    for (int r = 0; r < R; ++r) store_pair(y + r * y_stride + g * kGroup, left, low[r], high[r]);
  });
}

template <int R, int C, typename Codes>
void add_channels_at(const Codes& codes, const Channels& channels, int k, const float* x,
                     int64_t x_stride, int begin, int outputs, float* y, int64_t y_stride) {
  const WeightView& w = channels.w;
  const std::byte *row[C], *ahead[C];
  float factor[R][C];
  alignas(64) float scale[C][kPieceGroups];
  for (int c = 0; c < C; ++c) {
    const int channel = channels.at(k + c);
    row[c] = row_at(w, channel);
    ahead[c] = row_at(w, channels.at(smaller(k + C + c, channels.n - 1)));
    const float outside = Codes::row_scale(row[c], w.out);
    for (int r = 0; r < R; ++r) factor[r][c] = x[r * x_stride + channel] * outside;
    Codes::load_scales(row[c], w.out, begin, groups_of(outputs), scale[c]);
  }
  add_channels<R, C>(codes, row, ahead, factor, scale, k == 0, begin, outputs,
                     y + static_cast<int64_t>(begin) * kGroup, y_stride);
}

// The piece of y that channels add to stays in cache between passes.
template <int R, int C, typename Codes>
void stream(const Codes& codes, const Channels& channels, const float* x, int64_t x_stride,
            int out_begin, int out_end, float* y, int64_t y_stride) {
  constexpr int kPiece = kPieceGroups * kGroup;
  for (int o = out_begin; o < out_end; o += kPiece) {
    const int outputs = smaller(kPiece, out_end - o);
    int k = 0;
    for (; k + C <= channels.n; k += C)
      add_channels_at<R, C>(codes, channels, k, x, x_stride, o / kGroup, outputs, y, y_stride);
    for (; k < channels.n; ++k)
      add_channels_at<R, 1>(codes, channels, k, x, x_stride, o / kGroup, outputs, y, y_stride);
  }
}

}  // namespace

void matmul_out_major_compressed(const WeightView& w, const float* x, int64_t x_stride, int rows,
                                 int out_begin, int out_end, float* y, int64_t y_stride) {
  with_codes(w.type, [&]<typename Codes>(const Codes& codes) {
    for_groups<4>(rows, [&]<int R>(int r) {
      dot_rows<R, R == 1 ? kMatvecRows : kCodeTileOutputs>(
          codes, w, x + r * x_stride, x_stride, out_begin, out_end, y + r * y_stride, y_stride);
    });
  });
}

void stream_channels_compressed(const WeightView& w, const float* x, int64_t x_stride, int rows,
                                const int* channels, int n, int out_begin, int out_end, float* y,
                                int64_t y_stride) {
  const Channels listed{w, channels, n};
  with_codes(w.type, [&]<typename Codes>(const Codes& codes) {
    const auto run = [&]<int R, int C>() {
      stream<R, C>(codes, listed, x, x_stride, out_begin, out_end, y, y_stride);
    };
    switch (rows) {
      case 1:
        run.template operator()<1, kMatvecRows>();
        break;
      case 2:
        run.template operator()<2, 4>();
        break;
      case 3:
        run.template operator()<3, 4>();
        break;
      case 4:
        run.template operator()<4, 4>();
        break;
      default:
        break;
    }
  });
}

namespace {

template <bool kScaled>
void widen(const WeightView& w, int64_t row, int begin, int end, ElementType type, void* out) {
  if (!holds_codes(w.type)) {
    with_type(w.type, [&]<typename T>(const T*) {
      const T* from = static_cast<const T*>(w.data) + row * w.stride + begin;
      with_type(type, [&]<typename To>(const To*) {
        To* to = static_cast<To*>(out);
        for_vectors(end - begin,
                    [&](int i, auto part) { store(to + i, load(from + i, part), part); });
      });
    });
    return;
  }
  const int columns = w.layout == Layout::out_major ? w.in : w.out;
  const std::byte* stored = row_at(w, row);
  with_codes(w.type, [&]<typename Codes>(const Codes& codes) {
    const Vec outside = set(Codes::row_scale(stored, columns));
    with_type(type, [&]<typename To>(const To*) {
      To* to = static_cast<To*>(out) - begin;
      float scale[kChunk];
      for (int o = begin; o < end; o += kChunk * kGroup) {
        const int outputs = smaller(kChunk * kGroup, end - o), group = o / kGroup;
        Codes::load_scales(stored, columns, group, groups_of(outputs), scale);
        for (int g = 0; g * kGroup < outputs; ++g) {
          Vec first, second;
          codes.load_group(stored + static_cast<int64_t>(group + g) * Codes::kGroupBytes, &scale[g],
                           first, second);
          To* at = to + o + g * kGroup;
          const int left = outputs - g * kGroup;
          if constexpr (kScaled && Codes::kScaleOutside) {
            first = first * outside;
            second = second * outside;
          } else if constexpr (Codes::kScaleOutside) {
            if (left >= kGroup) {
              store_exact(at, first, second);
              continue;
            }
          }
          store_pair(at, left, first, second);
        }
      }
    });
  });
}

}  // namespace

void widen_row(const WeightView& w, int64_t row, int begin, int end, ElementType type, void* out) {
  widen<true>(w, row, begin, end, type, out);
}

void widen_summands(const WeightView& w, int64_t row, int begin, int end, ElementType type,
                    void* out) {
  widen<false>(w, row, begin, end, type, out);
}

}  // namespace sol::kernels::SOL_ISA_NAME
