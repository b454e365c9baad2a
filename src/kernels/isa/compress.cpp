// Making compressed rows; see reference_compressed.cpp, which this equals bit for bit.
#include "kernels/isa/compressed_row.h"
#include "kernels/isa/functions.h"

namespace sol::kernels::SOL_ISA_NAME {
namespace {

float round_to_bf16(float x) {
  bf16 stored[kWidth];
  store(stored, set(x));
  float lanes[kWidth];
  store(lanes, load(stored));
  return lanes[0];
}

void write_scale(bf16* to, float scale) {
  bf16 stored[kWidth];
  store(stored, set(scale));
  to->bits = stored[0].bits;
}

void compress_int8(const float* x, int n, std::byte* row) {
  Vec most = zero();
  for_vectors(n, [&](int i, auto part) { most = max(most, abs(load(x + i, part))); });
  const float scale = round_to_bf16(reduce_max(most) / static_cast<float>(kLargestInt8));
  if (scale > 0) {
    const Vec limit = set(static_cast<float>(kLargestInt8));
    for_vectors(n, [&](int i, auto part) {
      const Vec code = round(load(x + i, part) / set(scale));
      float lanes[kWidth];
      store(lanes, min(limit, max(zero() - limit, code)));
      for (int l = 0; l < kWidth && i + l < n; ++l)
        row[i + l] = static_cast<std::byte>(static_cast<int8_t>(lanes[l]));
    });
  }
  write_scale(reinterpret_cast<bf16*>(row + static_cast<int64_t>(groups_of(n)) * kGroup), scale);
}

struct Pair {
  Vec first, second;
};

float dot(const Pair& a, const Pair& b) {
  return reduce_add(fma(a.second, b.second, fma(a.first, b.first, zero())));
}

struct Best {
  float scale = 0, error = kInfinity, refined = 0;
  Pair code{zero(), zero()};
};

// The number of middles between neighbouring values that lie below x, and the value it stands for.
void nearest(Vec x, Vec& code, Vec& value) {
  code = zero();
  value = set(static_cast<float>(kInt4Values[0]));
  for (int c = 0; c + 1 < 16; ++c) {
    const float middle = 0.5f * static_cast<float>(kInt4Values[c] + kInt4Values[c + 1]);
    const Mask above = less(set(middle), x);
    code = select(above, set(static_cast<float>(c + 1)), code);
    value = select(above, set(static_cast<float>(kInt4Values[c + 1])), value);
  }
}

// What weights and errors are multiplied by before they are squared.
float measure_of(float largest) {
  const float magnitude = largest < 0 ? -largest : largest;
  if (magnitude > kLargestSquared) return 1.0f / kErrorUnit;
  return magnitude < kSmallestSquared ? kErrorUnit : 1.0f;
}

Pair operator*(const Pair& x, float factor) {
  return {x.first * set(factor), x.second * set(factor)};
}

void consider(const Pair& x, int count, float scale, float measure, Best& best) {
  scale = round_to_bf16(scale);
  if (!(scale > 0 || scale < 0)) return;
  const Vec inverse = set(1.0f / scale), factor = set(scale);
  Pair code, value, difference;
  nearest(x.first * inverse, code.first, value.first);
  nearest(x.second * inverse, code.second, value.second);
  if (count < kWidth) value.first = keep(value.first, First{count});
  if (count < kGroup)
    value.second = count > kWidth ? keep(value.second, First{count - kWidth}) : zero();
  difference.first = negative_fma(factor, value.first, x.first);
  difference.second = negative_fma(factor, value.second, x.second);
  difference = difference * measure;
  const float error = dot(difference, difference);
  if (error < best.error)
    best = {scale, error, dot(x * measure, value) / dot(value, value) / measure, code};
}

void compress_int4(const float* x, int n, std::byte* row) {
  bf16* scales = reinterpret_cast<bf16*>(row + static_cast<int64_t>(groups_of(n)) * kGroup / 2);
  for (int g = 0; g < groups_of(n); ++g) {
    const int begin = g * kGroup, count = smaller(kGroup, n - begin);
    Pair group;
    load_pair(x + begin, count, group.first, group.second);
    const float high = reduce_max(max(zero(), max(group.first, group.second)));
    const float low = -reduce_max(max(zero(), max(zero() - group.first, zero() - group.second)));
    const float largest = high >= -low ? high : low, measure = measure_of(largest);
    Best best;
    const int8_t ends[] = {kInt4Values[0], kInt4Values[15]};
    for (const int8_t end : ends)
      for (const float factor : kScaleFactors)
        consider(group, count, largest / static_cast<float>(end) * factor, measure, best);
    for (int i = 0; i < kScaleRefinements; ++i) consider(group, count, best.refined, measure, best);
    float low_codes[kWidth], high_codes[kWidth];
    store(low_codes, best.code.first);
    store(high_codes, best.code.second);
    for (int b = 0; b < kWidth; ++b)
      row[begin / 2 + b] = static_cast<std::byte>(static_cast<int>(low_codes[b]) |
                                                  static_cast<int>(high_codes[b]) << 4);
    write_scale(scales + g, best.scale);
  }
}

}  // namespace

void compress_row(const float* x, int n, WeightType type, std::byte* row) {
  const int64_t bytes = type == WeightType::int8
                            ? static_cast<int64_t>(groups_of(n)) * kGroup + 2
                            : static_cast<int64_t>(groups_of(n)) * (kGroup / 2 + 2);
  const int64_t padded = (bytes + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
  for (int64_t i = 0; i < padded; ++i) row[i] = std::byte{0};
  if (type == WeightType::int8)
    compress_int8(x, n, row);
  else
    compress_int4(x, n, row);
}

}  // namespace sol::kernels::SOL_ISA_NAME
