// Products with compressed out_major weights.
#include "kernels/isa/compressed_products.h"
#include "kernels/isa/compressed_row.h"
#include "kernels/isa/fixed_point.h"
#include "kernels/isa/nibbles.h"
#include "kernels/isa/prefetch.h"

namespace sol::kernels::SOL_ISA_NAME {
namespace {

constexpr int kBlockGroups = kFixedInputs / kGroup;
constexpr int kChunkBlocks = kFixedChunk / kFixedInputs;

// All groups of a block, or the first few.
inline int groups_in(All) {
  return kBlockGroups;
}
inline int groups_in(First groups) {
  return groups.n;
}

struct Int8Blocks {
  static constexpr int kBytes = kFixedInputs;
  struct Inputs {
    alignas(64) int16_t numbers[kFixedInputs];
    void set_to(const int16_t (&given)[kFixedInputs]) {
      __builtin_memcpy(numbers, given, sizeof(numbers));
    }
  };
  struct Codes {
    WideCodes group[kBlockGroups];
  };
  template <typename Groups>
  static Codes load(const std::byte* p, Groups groups) {
    Codes codes{};
    for (int g = 0; g < groups_in(groups); ++g) codes.group[g] = load_codes(p + g * kGroup);
    return codes;
  }
  static DotSum multiply(const Inputs& x, const Codes& codes) {
    DotSum sum;
    for (int g = 0; g < kBlockGroups; ++g)
      add_products(sum, load_wide(x.numbers + g * kGroup), codes.group[g]);
    return sum;
  }
  // Bytes to a block's scales from the begin of a row of n weights, and to those of the next one.
  static constexpr int kScaleBytes = 0;
  static int64_t scales_at(int, int) { return 0; }
  // What lanes' sums are multiplied by.
  template <typename Groups>
  static Vec scale(const std::byte*, Groups, Vec x_scale) {
    return x_scale;
  }
  static float row_scale(const std::byte* row, int n) { return Int8Rows::row_scale(row, n); }
};

struct Int4Blocks {
  static constexpr int kBytes = kFixedInputs / 2;
  using Inputs = NibbleInputs;
  template <typename Groups>
  static Nibbles load(const std::byte* p, Groups groups) {
    return load_nibbles(p, groups);
  }
  static DotSum multiply(const Inputs& x, const Nibbles& codes) { return products(x, codes); }
  static constexpr int kScaleBytes = kBlockGroups * int{sizeof(bf16)};
  static int64_t scales_at(int n, int block) {
    return int64_t{groups_of(n)} * Int4Rows::kGroupBytes + int64_t{block} * kScaleBytes;
  }
  template <typename Groups>
  static Vec scale(const std::byte* scales, Groups groups, Vec x_scale) {
    return spread(reinterpret_cast<const bf16*>(scales), groups) * x_scale;
  }
  static float row_scale(const std::byte*, int) { return 1.0f; }  // exact to multiply by
};

inline void keep_apart(int64_t& a, int64_t& b) {
  asm("" : "+r"(a), "+r"(b));
}

// A chunk of one row of x.
template <typename Blocks>
struct FixedRow {
  typename Blocks::Inputs block[kChunkBlocks];
  float scale[kChunkBlocks];

  void set_to(const float* x, int n) {
    for (int b = 0; b * kFixedInputs < n; ++b)
      set_block(b, x + b * kFixedInputs, smaller(kFixedInputs, n - b * kFixedInputs));
  }

 private:
  void set_block(int b, const float* x, int n) {
    alignas(64) int16_t numbers[kFixedInputs] = {};
    scale[b] = to_fixed_point(x, n, numbers);
    block[b].set_to(numbers);
  }
};

// O outputs of R rows, from `output` on, `step` apart. With `add` to what earlier chunks of inputs
// gave.
template <int R, int O, typename Blocks>
void dot_tile(const WeightView& w, const FixedRow<Blocks>* x, int chunk, bool add, int output,
              int step, float* y, int64_t y_stride) {
  const std::byte* row[O];
  Vec sum[O][4];
  for (int o = 0; o < O; ++o) {
    row[o] = row_at(w, output + o * step);
    for (int r = 0; r < 4; ++r) sum[o][r] = zero();
  }
  // Where the block's codes and scales are in each row. Kept as they are (keep_apart), or the
  // compiler makes pointers of all their sums, more than there are registers.
  int64_t codes_at = int64_t{chunk} * kChunkBlocks * Blocks::kBytes;
  int64_t scales_at = Blocks::scales_at(w.in, chunk * kChunkBlocks);
  const int groups = groups_of(smaller(kFixedChunk, w.in - chunk * kFixedChunk));
  // Behind the chunk's codes come those of the row that the stream has next.
  const int64_t code_bytes = int64_t{groups} * Blocks::kBytes / kBlockGroups;
  const int64_t codes_end = codes_at + code_bytes, to_next_row = w.stride - code_bytes;
  const auto add_block = [&](int b, auto part) {
    keep_apart(codes_at, scales_at);
    const int64_t ahead = codes_at + kSentAhead < codes_end ? codes_at : codes_at + to_next_row;
    Vec x_scale[R];
    for (int r = 0; r < R; ++r) x_scale[r] = set(x[r].scale[b]);
    for (int o = 0; o < O; ++o) {
      if constexpr (R == 1)
        for (int line = 0; line < Blocks::kBytes; line += 64) send_for(row[o], ahead + line);
      const auto codes = Blocks::load(row[o] + codes_at, part);
      for (int r = 0; r < R; ++r)
        sum[o][r] = fma(as_floats(Blocks::multiply(x[r].block[b], codes)),
                        Blocks::scale(row[o] + scales_at, part, x_scale[r]), sum[o][r]);
    }
    codes_at += Blocks::kBytes;
    scales_at += Blocks::kScaleBytes;
  };
  if constexpr (R == 1) {
    static_assert(kChunkBlocks * Blocks::kScaleBytes <= kSentAhead, "no scale is sent for later");
    for (int o = 0; o < O; ++o)
      send_for_begin(row[o], w.stride + scales_at, groups * Blocks::kScaleBytes / kBlockGroups);
  }
  int b = 0;
  for (; (b + 1) * kBlockGroups <= groups; ++b) add_block(b, All{});
  if (b * kBlockGroups < groups) add_block(b, First{groups - b * kBlockGroups});
  for (int o = 0; o < O; ++o) {
    float sums[4];
    reduce_add4(sum[o][0], sum[o][1], sum[o][2], sum[o][3], sums);
    const float outside = Blocks::row_scale(row[o], w.in);
    for (int r = 0; r < R; ++r) {
      float& to = y[r * y_stride + output + o * step];
      to = add ? to + sums[r] * outside : sums[r] * outside;
    }
  }
}

template <int R, typename Blocks>
void dot_rows(const WeightView& w, const float* x, int64_t x_stride, int begin, int end, float* y,
              int64_t y_stride) {
  constexpr int kOutputs = R == 1 ? kMatvecRows : kCodeTileOutputs;
  FixedRow<Blocks> fixed[R];
  for (int chunk = 0; chunk * kFixedChunk < w.in; ++chunk) {
    const int first = chunk * kFixedChunk;
    for (int r = 0; r < R; ++r)
      fixed[r].set_to(x + r * x_stride + first, smaller(kFixedChunk, w.in - first));
    for_streams<kOutputs>(begin, end, [&]<int O>(int o, int step) {
      dot_tile<R, O, Blocks>(w, fixed, chunk, chunk > 0, o, step, y, y_stride);
    });
  }
}

template <typename Blocks>
void dot_all(const WeightView& w, const float* x, int64_t x_stride, int rows, int begin, int end,
             float* y, int64_t y_stride) {
  for_groups<4>(rows, [&]<int R>(int r) {
    dot_rows<R, Blocks>(w, x + r * x_stride, x_stride, begin, end, y + r * y_stride, y_stride);
  });
}

}  // namespace

void matmul_out_major_compressed(const WeightView& w, const float* x, int64_t x_stride, int rows,
                                 int out_begin, int out_end, float* y, int64_t y_stride) {
  if (w.type == WeightType::int8)
    dot_all<Int8Blocks>(w, x, x_stride, rows, out_begin, out_end, y, y_stride);
  else
    dot_all<Int4Blocks>(w, x, x_stride, rows, out_begin, out_end, y, y_stride);
}

}  // namespace sol::kernels::SOL_ISA_NAME
