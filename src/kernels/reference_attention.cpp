// The readable definition of everything around attention.
#include <bit>
#include <functional>
#include <limits>
#include <vector>

#include "kernels/reference_math.h"

namespace sol::kernels::reference {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <typename T>
const T* cached_token(const CacheView& cache, int token, const T*) {
  const std::byte* block = cache.blocks[token / cache.block_tokens] + cache.offset;
  return reinterpret_cast<const T*>(block) +
         static_cast<int64_t>(token % cache.block_tokens) * cache.dim;
}

// Unsigned integers that order as |x| does; a NaN orders above infinity.
uint32_t magnitude_key(float x) {
  return std::bit_cast<uint32_t>(x) & 0x7fffffffu;
}

// Unsigned integers that order as floats do, with -0 equal to +0 and every NaN lowest: a page whose
// score is not a number is the last to be kept.
uint32_t value_key(float x) {
  if (std::isnan(x)) return 0;
  const uint32_t u = std::bit_cast<uint32_t>(x == 0 ? 0.0f : x);
  return u & 0x80000000u ? ~u : u | 0x80000000u;
}

// A weight in a softmax, x <= 0; what would be subnormal counts as nothing.
float weight_exp(float x) {
  return x < -87.0f ? 0.0f : std::exp(x);
}

// One row of one part; score: one float per token of the part, by position.
template <typename T>
void attend_row(const AttendRow& row, uint64_t bit, int dim, const AttendPiece* pieces,
                int piece_count, float scale, float* score, const T*) {
  std::fill(score, score + kPartTokens, -kInfinity);
  float largest = -kInfinity;
  for (const AttendPiece* piece = pieces; piece < pieces + piece_count; ++piece) {
    if (!(piece->rows & bit)) continue;
    for (int j = 0; j < piece->count; ++j) {
      const T* key = static_cast<const T*>(piece->keys) + static_cast<int64_t>(j) * dim;
      float& s = score[piece->position + j];
      s = dot(row.q, key, dim) * scale;
      largest = std::max(largest, s);
    }
  }
  // While every score is -infinity there is nothing to be relative to.
  const float base = largest == -kInfinity ? 0.0f : largest;
  for (int j = 0; j < kPartTokens; ++j) score[j] = weight_exp(score[j] - base);

  std::fill(row.partial, row.partial + dim, 0.0f);
  for (const AttendPiece* piece = pieces; piece < pieces + piece_count; ++piece) {
    if (!(piece->rows & bit)) continue;
    for (int j = 0; j < piece->count; ++j) {
      const T* value = static_cast<const T*>(piece->values) + static_cast<int64_t>(j) * dim;
      const float weight = score[piece->position + j];
      for (int d = 0; d < dim; ++d)
        row.partial[d] = std::fma(weight, to_float(value[d]), row.partial[d]);
    }
  }
  row.partial[dim] = largest;
  row.partial[dim + 1] = sum(score, kPartTokens);
}

}  // namespace

void page_scores(const float* q, int heads, const PagesView& pages, int first, int count,
                 float* score, int64_t stride) {
  const int dim = pages.dim;
  const float half = 0.5f / std::sqrt(static_cast<float>(dim));
  with_type(pages.type, [&]<typename T>(const T*) {
    for (int p = first; p < first + count; ++p) {
      const std::byte* block = pages.blocks[p / pages.block_pages] + pages.offset;
      const T* one =
          reinterpret_cast<const T*>(block) + static_cast<int64_t>(p % pages.block_pages) * 2 * dim;
      const T* two = one + dim;
      for (int h = 0; h < heads; ++h) {
        const float* x = q + static_cast<int64_t>(h) * dim;
        float lane[kLanes] = {};
        for (int d = 0; d < dim; ++d) {
          float& sum = lane[d % kLanes];
          if (pages.summary == PageSummary::moments) {
            sum = std::fma(x[d], to_float(one[d]), sum);
            sum = std::fma(half * x[d] * x[d], to_float(two[d]), sum);
          } else {
            sum = std::fma(std::max(x[d], 0.0f), to_float(two[d]), sum);
            sum = std::fma(std::min(x[d], 0.0f), to_float(one[d]), sum);
          }
        }
        score[h * stride + p] = fold(lane);
      }
    }
  });
}

void mark_largest(const float* x, int n, int keep, bool magnitude, bool keep_ties, uint64_t* marks,
                  int32_t*) {
  std::vector<uint32_t> key(n);
  for (int i = 0; i < n; ++i) key[i] = magnitude ? magnitude_key(x[i]) : value_key(x[i]);
  std::vector<uint32_t> sorted = key;
  std::nth_element(sorted.begin(), sorted.begin() + (keep - 1), sorted.end(), std::greater<>());
  const uint32_t last = sorted[keep - 1];
  const int above =
      static_cast<int>(std::count_if(key.begin(), key.end(), [&](uint32_t k) { return k > last; }));
  int ties = keep_ties ? n : keep - above;
  std::fill(marks, marks + (n + 63) / 64, uint64_t{0});
  for (int i = 0; i < n; ++i)
    if (key[i] > last || (key[i] == last && ties-- > 0)) marks[i / 64] |= uint64_t{1} << (i % 64);
}

void attend_part(const AttendRow* rows, int row_count, int dim, ElementType type,
                 const AttendPiece* pieces, int piece_count, int, const NextPieces&, float scale,
                 float* scratch) {
  with_type(type, [&](auto* typed) {
    for (int r = 0; r < row_count; ++r)
      attend_row(rows[r], uint64_t{1} << r, dim, pieces, piece_count, scale, scratch, typed);
  });
}

void merge_parts(const float* partials, int parts, int64_t stride, int dim, float* out) {
  float largest = -kInfinity;
  for (int i = 0; i < parts; ++i) largest = std::max(largest, partials[i * stride + dim]);
  const float base = largest == -kInfinity ? 0.0f : largest;
  std::fill(out, out + dim, 0.0f);
  float total = 0;
  for (int i = 0; i < parts; ++i) {
    const float* partial = partials + i * stride;
    const float factor = weight_exp(partial[dim] - base);
    total = std::fma(partial[dim + 1], factor, total);
    for (int d = 0; d < dim; ++d) out[d] = std::fma(partial[d], factor, out[d]);
  }
  const float share = 1.0f / total;
  for (int d = 0; d < dim; ++d) out[d] *= share;
}

// Each row's scores over all tokens that it sees, then their softmax, then the weighted values.
void attend_causal(const float* q, int64_t row_stride, int rows, int heads, int first_position,
                   const CacheView& keys, const CacheView& values, float scale, float* scratch,
                   float* out) {
  const int dim = keys.dim;
  const auto attend = [&](const float* query, int n, float* to, auto* type) {
    float largest = -kInfinity;
    for (int j = 0; j < n; ++j) {
      scratch[j] = dot(query, cached_token(keys, j, type), dim) * scale;
      largest = std::max(largest, scratch[j]);
    }
    for (int j = 0; j < n; ++j) scratch[j] = weight_exp(scratch[j] - largest);
    const float factor = 1.0f / sum(scratch, n);
    std::fill(to, to + dim, 0.0f);
    for (int j = 0; j < n; ++j) {
      const auto* value = cached_token(values, j, type);
      for (int d = 0; d < dim; ++d) to[d] = std::fma(scratch[j], to_float(value[d]), to[d]);
    }
    for (int d = 0; d < dim; ++d) to[d] *= factor;
  };
  with_type(keys.type, [&](auto* type) {
    for (int r = 0; r < rows; ++r) {
      for (int h = 0; h < heads; ++h) {
        const int64_t at = r * row_stride + static_cast<int64_t>(h) * dim;
        attend(q + at, first_position + r + 1, out + at, type);
      }
    }
  });
}

void softmax_step(float* scores, int64_t stride, int rows, int keys, int seen, int heads,
                  float scale, float* largest, float* total, float* out, int dim) {
  for (int r = 0; r < rows; ++r) {
    std::vector<float> weight(scores + r * stride, scores + r * stride + keys);
    const int n = std::clamp(seen + r / heads, 0, keys);
    const float before = largest[r];
    for (int j = 0; j < n; ++j) largest[r] = std::max(largest[r], weight[j] * scale);
    const float base = largest[r] == -kInfinity ? 0.0f : largest[r];
    for (int j = 0; j < keys; ++j) weight[j] = j < n ? weight_exp(weight[j] * scale - base) : 0.0f;
    const float factor = weight_exp(before - base);
    total[r] = std::fma(total[r], factor, sum(weight.data(), keys));
    for (int d = 0; d < dim && largest[r] != before; ++d) out[r * dim + d] *= factor;
    std::transform(weight.begin(), weight.end(), reinterpret_cast<bf16*>(scores + r * stride),
                   to_bf16);
  }
}

}  // namespace sol::kernels::reference
