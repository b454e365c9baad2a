// Products with weight matrices: one row at memory speed, several rows with the weights reused.
#include "kernels/isa/channels.h"
#include "kernels/isa/compressed_products.h"
#include "kernels/isa/functions.h"
#include "kernels/isa/prefetch.h"
#include "kernels/isa/tile.h"

namespace sol::kernels::SOL_ISA_NAME {
namespace {

// As for_vectors; `line` tells body(i, part, line) where 64 bytes of elements begin, counted from
// the first; not for what is left over at the end.
template <typename T, typename Body>
void for_lines(int n, const Body& body) {
  constexpr int kLine = 64 / sizeof(T);
  int i = 0;
  for (; i + kLine <= n; i += kLine) {
    body(i, All{}, NewLine{});
    if constexpr (kLine > kWidth) body(i + kWidth, All{}, SameLine{});
  }
  for_vectors(n - i, [&](int k, auto part) { body(i + k, part, SameLine{}); });
}

// --- out_major: dot products, lane by lane ---

// O outputs of R rows, the outputs' weights at w, w + stride, ...
template <int R, int O, typename T>
void dot_tile(const float* x, int64_t x_stride, const T* w, int64_t stride, int in, float* y,
              int64_t y_stride) {
  static_assert(R <= 4);
  Vec sum[O][4];
  for (int o = 0; o < O; ++o)
    for (int r = 0; r < 4; ++r) sum[o][r] = zero();
  for_vectors(in, [&](int i, auto part) {
    Vec row[R];
    for (int r = 0; r < R; ++r) row[r] = load(x + r * x_stride + i, part);
    for (int o = 0; o < O; ++o) {
      const Vec weight = load(w + o * stride + i, part);
      for (int r = 0; r < R; ++r) sum[o][r] = fma(row[r], weight, sum[o][r]);
    }
  });
  for (int o = 0; o < O; ++o) {
    float sums[4];
    reduce_add4(sum[o][0], sum[o][1], sum[o][2], sum[o][3], sums);
    for (int r = 0; r < R; ++r) y[r * y_stride + o] = sums[r];
  }
}

// O outputs of one row, `step` apart in y and `stride` elements in w.
template <int O, typename T>
void dot_row(const float* x, const T* w, int64_t stride, int in, float* y, int step) {
  Vec sum[O];
  for (int o = 0; o < O; ++o) sum[o] = zero();
  for_lines<T>(in, [&](int i, auto part, auto line) {
    const Vec row = load(x + i, part);
    for (int o = 0; o < O; ++o) {
      const T* at = w + o * stride + i;
      if constexpr (line.begins) send_for(at);
      sum[o] = fma(row, load(at, part), sum[o]);
    }
  });
  if constexpr (O % 4 == 0) {
    for (int o = 0; o < O; o += 4) {
      float sums[4];
      reduce_add4(sum[o], sum[o + 1], sum[o + 2], sum[o + 3], sums);
      for (int i = 0; i < 4; ++i) y[(o + i) * step] = sums[i];
    }
  } else {
    for (int o = 0; o < O; ++o) y[o * step] = reduce_add(sum[o]);
  }
}

template <int R, typename T>
void dot_rows(const float* x, int64_t x_stride, const WeightView& w, int begin, int end, float* y,
              int64_t y_stride) {
  int o = begin;
  for (; o + kDotTileOutputs <= end; o += kDotTileOutputs)
    dot_tile<R, kDotTileOutputs>(x, x_stride, row_of<T>(w, o), w.stride, w.in, y + o, y_stride);
  for (; o < end; ++o)
    dot_tile<R, 1>(x, x_stride, row_of<T>(w, o), w.stride, w.in, y + o, y_stride);
}

// --- in_major: chains over channels ---

// Adds C channels' rows to R rows of y, from `begin` on; `next` are the rows that follow.
template <int R, int C, typename T>
void add_channels(const T* const (&row)[C], const T* const (&next)[C], const float (&x)[R][C],
                  bool first, int begin, int end, float* y, int64_t y_stride) {
  for (int c = 0; c < C; ++c)
    send_for_begin(next[c] + begin, 0, (end - begin) * int64_t{sizeof(T)});
  for_lines<T>(end - begin, [&](int i, auto part, auto line) {
    const int o = begin + i;
    Vec weight[C];
    for (int c = 0; c < C; ++c) {
      if constexpr (line.begins) send_for(row[c] + o);
      weight[c] = load(row[c] + o, part);
    }
    for (int r = 0; r < R; ++r) {
      Vec sum = first ? zero() : load(y + r * y_stride + o, part);
      for (int c = 0; c < C; ++c) sum = fma(set(x[r][c]), weight[c], sum);
      store(y + r * y_stride + o, sum, part);
    }
  });
}

template <int R, int C, typename T>
void add_channels_at(const Channels& channels, int k, const float* x, int64_t x_stride, int begin,
                     int end, float* y, int64_t y_stride) {
  const T *row[C], *next[C];
  float factor[R][C];
  for (int c = 0; c < C; ++c) {
    const int channel = channels.at(k + c);
    row[c] = row_of<T>(channels.w, channel);
    next[c] = row_of<T>(channels.w, channels.at(smaller(k + C + c, channels.n - 1)));
    for (int r = 0; r < R; ++r) factor[r][c] = x[r * x_stride + channel];
  }
  add_channels(row, next, factor, k == 0, begin, end, y, y_stride);
}

// R rows, the weights streamed along the outputs, C channels at a time; the piece of y that they
// add to, 32 KB of one row or 16 KB of each of several, stays in cache between passes.
template <int R, int C, typename T>
void stream_channels(const Channels& channels, const float* x, int64_t x_stride, int out_begin,
                     int out_end, float* y, int64_t y_stride) {
  constexpr int kPiece = R == 1 ? 8192 : 4096;
  for (int begin = out_begin; begin < out_end; begin += kPiece) {
    const int end = smaller(begin + kPiece, out_end);
    int k = 0;
    for (; k + C <= channels.n; k += C)
      add_channels_at<R, C, T>(channels, k, x, x_stride, begin, end, y, y_stride);
    for (; k < channels.n; ++k)
      add_channels_at<R, 1, T>(channels, k, x, x_stride, begin, end, y, y_stride);
  }
}

// Many rows: a block of the weights is widened once and used by all of them. It is as wide as rows
// of the weights must be read for memory's speed, and kept as panels that are as wide as the
// register tile.
constexpr int kBlockChannels = 128, kPanelVectors = 4, kPanelOutputs = kPanelVectors * kWidth;
constexpr int kPanels = 4, kBlockOutputs = kPanels * kPanelOutputs;
using Panel = float[kBlockChannels][kPanelOutputs];

template <typename T>
void widen_block(const WeightView& w, int channel, int channels, int out, int outputs,
                 Panel (&block)[kPanels]) {
  for (int k = 0; k < channels; ++k) {
    const T* row = row_of<T>(w, channel + k) + out;
    // The columns beyond the last output are computed with whatever the block held, and not stored.
    for_vectors(outputs, [&](int o, auto part) {
      store(&block[o / kPanelOutputs][k][o % kPanelOutputs], load(row + o, part));
    });
  }
}

// R rows times one panel, of which `outputs` columns are real.
template <int R>
void multiply_panel(const float* const (&row)[R], bool first_channels, int channels,
                    const Panel& panel, int outputs, float* y, int64_t y_stride) {
  for (int v = 0; v < kPanelVectors && v * kWidth < outputs; v += kTileVectors) {
    Vec sum[R][kTileVectors];
    for (int u = 0; u < kTileVectors; ++u) {
      const int o = (v + u) * kWidth, left = outputs - o;
      for (int r = 0; r < R; ++r) {
        const float* at = y + r * y_stride + o;
        sum[r][u] = first_channels || left <= 0 ? zero()
                    : left >= kWidth            ? load(at)
                                                : load(at, First{left});
      }
    }
    tile(row, channels, panel[0] + v * kWidth, kPanelOutputs, sum);
    for (int u = 0; u < kTileVectors; ++u) {
      const int o = (v + u) * kWidth, left = outputs - o;
      for (int r = 0; r < R && left > 0; ++r) {
        float* at = y + r * y_stride + o;
        if (left >= kWidth)
          store(at, sum[r][u]);
        else
          store(at, sum[r][u], First{left});
      }
    }
  }
}

template <typename T>
void multiply_blocks(const WeightView& w, const float* x, int64_t x_stride, int rows, int out_begin,
                     int out_end, float* y, int64_t y_stride) {
  alignas(64) Panel block[kPanels] = {};
  for (int o = out_begin; o < out_end; o += kBlockOutputs) {
    const int outputs = smaller(kBlockOutputs, out_end - o);
    for (int k = 0; k < w.in; k += kBlockChannels) {
      const int channels = smaller(kBlockChannels, w.in - k);
      widen_block<T>(w, k, channels, o, outputs, block);
      for (int p = 0; p * kPanelOutputs < outputs; ++p) {
        const int begin = p * kPanelOutputs;
        for_row_groups(rows, [&]<int R>(int first) {
          const float* row[R];
          for (int r = 0; r < R; ++r) row[r] = x + (first + r) * x_stride + k;
          multiply_panel<R>(row, k == 0, channels, block[p], outputs - begin,
                            y + first * y_stride + o + begin, y_stride);
        });
      }
    }
  }
}

}  // namespace

void matvec_out_major(const WeightView& w, const float* x, int out_begin, int out_end, float* y) {
  if (holds_codes(w.type)) {
    matmul_out_major_compressed(w, x, 0, 1, out_begin, out_end, y, 0);
    return;
  }
  with_type(w.type, [&]<typename T>(const T*) {
    for_streams<kMatvecRows>(out_begin, out_end, [&]<int O>(int o, int step) {
      dot_row<O>(x, row_of<T>(w, o), step * w.stride, w.in, y + o, step);
    });
  });
}

void matmul_out_major(const WeightView& w, const float* x, int64_t x_stride, int rows,
                      int out_begin, int out_end, float* y, int64_t y_stride) {
  if (holds_codes(w.type)) {
    matmul_out_major_compressed(w, x, x_stride, rows, out_begin, out_end, y, y_stride);
    return;
  }
  if (rows == 1) return matvec_out_major(w, x, out_begin, out_end, y);
  // Outputs in blocks whose weights stay in the second-level cache while all rows pass over them.
  constexpr int64_t kBlockBytes = 512 * 1024;
  const int64_t row_bytes = static_cast<int64_t>(w.in) * (w.type == WeightType::f32 ? 4 : 2);
  int block = static_cast<int>(kBlockBytes / (row_bytes + 1)) / kDotTileOutputs * kDotTileOutputs;
  if (block < kDotTileOutputs) block = kDotTileOutputs;
  with_type(w.type, [&]<typename T>(const T*) {
    for (int begin = out_begin; begin < out_end; begin += block) {
      const int end = smaller(begin + block, out_end);
      int r = 0;
      for (; r + kDotTileRows <= rows; r += kDotTileRows)
        dot_rows<kDotTileRows, T>(x + r * x_stride, x_stride, w, begin, end, y + r * y_stride,
                                  y_stride);
      if constexpr (kDotTileRows > 2) {
        for (; r + 2 <= rows; r += 2)
          dot_rows<2, T>(x + r * x_stride, x_stride, w, begin, end, y + r * y_stride, y_stride);
      }
      for (; r < rows; ++r) matvec_out_major(w, x + r * x_stride, begin, end, y + r * y_stride);
    }
  });
}

void matmul_in_major(const WeightView& w, const float* x, int64_t x_stride, int rows,
                     const int* channels, int n, int out_begin, int out_end, float* y,
                     int64_t y_stride) {
  if (!channels) n = w.in;
  if (n == 0) {
    for (int r = 0; r < rows; ++r)
      for (int o = out_begin; o < out_end; ++o) y[r * y_stride + o] = 0;
    return;
  }
  if (holds_codes(w.type))
    return stream_channels_compressed(w, x, x_stride, rows, channels, n, out_begin, out_end, y,
                                      y_stride);
  // More than four rows share weights that are widened once; of listed channels the weights are
  // read again for every four.
  if (!channels && rows > 4)
    return with_type(w.type, [&]<typename T>(const T*) {
      multiply_blocks<T>(w, x, x_stride, rows, out_begin, out_end, y, y_stride);
    });
  for (int r = 0; r < rows; r += 4) {
    const float* from = x + r * x_stride;
    float* to = y + r * y_stride;
    const int count = smaller(4, rows - r);
    with_type(w.type, [&]<typename T>(const T*) {
      const auto stream = [&]<int R, int C>() {
        stream_channels<R, C, T>({w, channels, n}, from, x_stride, out_begin, out_end, to,
                                 y_stride);
      };
      switch (count) {
        case 1:
          return stream.template operator()<1, kMatvecRows>();
        case 2:
          return stream.template operator()<2, 4>();
        case 3:
          return stream.template operator()<3, 4>();
        default:
          return stream.template operator()<4, 4>();
      }
    });
  }
}

}  // namespace sol::kernels::SOL_ISA_NAME
