// The k largest of n floats, exactly: floats become integers of the same order, and the threshold
// between kept and dropped is searched by halving, among fewer and fewer candidates.
#include "kernels/isa/functions.h"
#include "kernels/isa/simd.h"

namespace sol::kernels::SOL_ISA_NAME {
namespace {

constexpr int32_t kLowest = -0x7fffffff - 1;

int whole_vectors(int n) {
  return (n + kWidth - 1) / kWidth * kWidth;
}

struct Bounds {
  int32_t low, high;
};

// Keys of x[n], filled up to whole vectors with copies of nothing (kLowest), and their extremes.
Bounds make_keys(const float* x, int n, bool magnitude, int32_t* keys) {
  Keys low{}, high{};
  const auto convert = [&]<bool kMagnitude>() {
    const auto at = [&](int i, auto part) {
      const Vec v = load(x + i, part);
      return kMagnitude ? magnitude_keys(v) : value_keys(v);
    };
    int i = 0;
    if (n >= kWidth) low = high = at(0, All{});
    for (; i + kWidth <= n; i += kWidth) {
      const Keys k = at(i, All{});
      store(keys + i, k);
      low = min(low, k);
      high = max(high, k);
    }
    if (i < n) store(keys + i, at(i, First{n - i}));
  };
  magnitude ? convert.template operator()<true>() : convert.template operator()<false>();

  Bounds found{keys[0], keys[0]};
  const auto include = [&](int32_t k) {
    found.low = k < found.low ? k : found.low;
    found.high = k > found.high ? k : found.high;
  };
  if (n >= kWidth) {
    int32_t lanes[2][kWidth];
    store(lanes[0], low);
    store(lanes[1], high);
    for (int l = 0; l < kWidth; ++l) {
      include(lanes[0][l]);
      include(lanes[1][l]);
    }
  }
  for (int i = n / kWidth * kWidth; i < n; ++i) include(keys[i]);
  for (int i = n; i < whole_vectors(n); ++i) keys[i] = kLowest;
  return found;
}

int count_above(const int32_t* keys, int n, int32_t t) {
  int count = 0;
  for (int i = 0; i < n; i += kWidth) count += __builtin_popcount(greater(load_keys(keys + i), t));
  return count;
}

// Keys in (low, high], moved to `to`; their number. Fills up to whole vectors with kLowest.
int copy_between(const int32_t* keys, int n, int64_t low, int32_t high, int32_t* to) {
  int count = 0;
  for (int i = 0; i < n; i += kWidth) {
    const Keys k = load_keys(keys + i);
    const uint32_t above_low = low < kLowest ? 0xffffu : greater(k, static_cast<int32_t>(low));
    const uint32_t bits = above_low & ~greater(k, high);
    compress(to + count, k, bits);
    count += __builtin_popcount(bits);
  }
  for (int i = count; i < whole_vectors(count); ++i) to[i] = kLowest;
  return count;
}

float float_of(int64_t key) {
  const int32_t k = static_cast<int32_t>(key);
  const int32_t bits = k ^ ((k >> 31) & 0x7fffffff);
  float x;
  __builtin_memcpy(&x, &bits, sizeof(x));
  return x;
}

// A key between low and high, both excluded. Halfway in value, which halves the number of
// candidates when values are spread evenly; halfway in key, which always ends, after some tries or
// where values are not finite.
int64_t between(int64_t low, int64_t high, int tries) {
  if (tries < 8 && low >= kLowest) {
    const float middle = 0.5f * float_of(low) + 0.5f * float_of(high);
    if (__builtin_isfinite(middle)) {
      int32_t bits;
      __builtin_memcpy(&bits, &middle, sizeof(bits));
      const int64_t key = bits ^ ((bits >> 31) & 0x7fffffff);
      if (key > low && key < high) return key;
    }
  }
  return low + (high - low) / 2;
}

struct Threshold {
  int32_t key;
  int above;  // this many keys are greater
};

// The smallest threshold with fewer than `keep` keys above it, or one with exactly `keep`.
Threshold find_threshold(const int32_t* keys, int n, int keep, const Bounds& bounds,
                         int32_t* spare) {
  // More than `low` are at least keep, more than `high` are fewer.
  int64_t low = static_cast<int64_t>(bounds.low) - 1, high = bounds.high;
  int above_low = n, above_high = 0;
  int base = 0;  // keys that are greater than every candidate
  for (int tries = 0; high - low > 1; ++tries) {
    if (n > 4 * kWidth && (above_low - above_high) * 4 <= n) {
      n = copy_between(keys, n, low, static_cast<int32_t>(high), spare);
      keys = spare;
      base = above_high;
    }
    const int64_t t = between(low, high, tries);
    const int above = base + count_above(keys, n, static_cast<int32_t>(t));
    if (above == keep) return {static_cast<int32_t>(t), above};
    (above > keep ? low : high) = t;
    (above > keep ? above_low : above_high) = above;
  }
  return {static_cast<int32_t>(high), above_high};
}

}  // namespace

void mark_largest(const float* x, int n, int keep, bool magnitude, bool keep_ties, uint64_t* marks,
                  int32_t* scratch) {
  int32_t* keys = scratch;
  const Bounds bounds = make_keys(x, n, magnitude, keys);
  const Threshold threshold =
      find_threshold(keys, n, keep, bounds, scratch + whole_vectors(n) + kWidth);

  for (int w = 0; w < (n + 63) / 64; ++w) marks[w] = 0;
  for (int i = 0; i < n; i += kWidth) {
    const uint64_t bits = greater(load_keys(keys + i), threshold.key);
    marks[i / 64] |= bits << (i % 64);
  }
  int ties = keep - threshold.above;
  if (ties == 0) return;
  for (int i = 0; i < n && (keep_ties || ties > 0); ++i) {
    if (keys[i] != threshold.key) continue;
    marks[i / 64] |= uint64_t{1} << (i % 64);
    --ties;
  }
}

}  // namespace sol::kernels::SOL_ISA_NAME
