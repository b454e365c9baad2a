// One query over cached keys and values, and the page arithmetic that decides which of them.
#include "kernels/isa/functions.h"
#include "kernels/isa/math.h"

namespace sol::kernels::SOL_ISA_NAME {
namespace {

// Calls body(pointer, count) for every stretch of tokens that lies contiguously in memory.
template <typename T, typename Body>
void for_stretches(const CacheView& cache, const TokenRange* ranges, int range_count,
                   const Body& body) {
  for (int r = 0; r < range_count; ++r) {
    for (int j = ranges[r].begin; j < ranges[r].end;) {
      const int slot = j % cache.block_tokens;
      const int count = smaller(ranges[r].end - j, cache.block_tokens - slot);
      const std::byte* block = cache.blocks[j / cache.block_tokens] + cache.offset;
      body(reinterpret_cast<const T*>(block) + static_cast<int64_t>(slot) * cache.dim, count);
      j += count;
    }
  }
}

// The dot products of q with four rows at a time, whose horizontal sums cost as much as one's.
template <typename T>
void four_dots(const float* q, const T* (&row)[4], int dim, float* dots) {
  Vec sum[4] = {zero(), zero(), zero(), zero()};
  for_vectors(dim, [&](int d, auto part) {
    const Vec x = load(q + d, part);
    for (int r = 0; r < 4; ++r) sum[r] = fma(x, load(row[r] + d, part), sum[r]);
  });
  reduce_add4(sum[0], sum[1], sum[2], sum[3], dots);
}

template <typename T>
void dots_with_rows(const float* q, const T* rows, int count, int dim, float* dots) {
  int j = 0;
  for (; j < count; j += 4) {
    const T* row[4];
    const int last = count - 1;
    for (int r = 0; r < 4; ++r) row[r] = rows + static_cast<int64_t>(smaller(j + r, last)) * dim;
    if (j + 4 <= count) {
      four_dots(q, row, dim, dots + j);
    } else {
      float some[4];
      four_dots(q, row, dim, some);
      for (int r = 0; j + r < count; ++r) dots[j + r] = some[r];
    }
  }
}

// V vectors of out, from column d on, of the weighted sum of values.
template <typename T, int V, typename Part>
void weighted_values(const CacheView& values, const TokenRange* ranges, int range_count,
                     const float* weight, float factor, int d, Part part, float* out) {
  Vec sum[V];
  for (int v = 0; v < V; ++v) sum[v] = zero();
  for_stretches<T>(values, ranges, range_count, [&](const T* value, int count) {
    for (int j = 0; j < count; ++j, value += values.dim) {
      const Vec w = set(*weight++);
      for (int v = 0; v < V; ++v) sum[v] = fma(w, load(value + d + v * kWidth, part), sum[v]);
    }
  });
  for (int v = 0; v < V; ++v) store(out + d + v * kWidth, sum[v] * set(factor), part);
}

template <typename T>
void attend_typed(const float* q, const CacheView& keys, const CacheView& values,
                  const TokenRange* ranges, int range_count, float scale, float* scratch,
                  float* out) {
  int n = 0;
  for_stretches<T>(keys, ranges, range_count, [&](const T* key, int count) {
    dots_with_rows(q, key, count, keys.dim, scratch + n);
    n += count;
  });

  const Vec scales = set(scale);
  Vec lanes = set(-kInfinity);
  for_vectors(n, [&](int i, auto part) {
    const Vec score = load(scratch + i, part) * scales;
    store(scratch + i, score, part);
    if constexpr (__is_same(decltype(part), All))
      lanes = max(score, lanes);
    else
      lanes = max(select(first_lanes(part.n), score, lanes), lanes);
  });
  const Vec largest = set(reduce_max(lanes));
  Vec total = zero();
  for_vectors(n, [&](int i, auto part) {
    const Vec weight = keep(exp(load(scratch + i, part) - largest), part);
    store(scratch + i, weight, part);
    total = total + weight;
  });
  const float factor = 1.0f / reduce_add(total);

  const int dim = values.dim;
  int d = 0;
  for (; d + kValueVectors * kWidth <= dim; d += kValueVectors * kWidth)
    weighted_values<T, kValueVectors>(values, ranges, range_count, scratch, factor, d, All{}, out);
  for (; d + 2 * kWidth <= dim; d += 2 * kWidth)
    weighted_values<T, 2>(values, ranges, range_count, scratch, factor, d, All{}, out);
  for (; d + kWidth <= dim; d += kWidth)
    weighted_values<T, 1>(values, ranges, range_count, scratch, factor, d, All{}, out);
  if (d < dim)
    weighted_values<T, 1>(values, ranges, range_count, scratch, factor, d, First{dim - d}, out);
}

}  // namespace

void attend(const float* q, const CacheView& keys, const CacheView& values,
            const TokenRange* ranges, int range_count, float scale, float* scratch, float* out) {
  with_type(keys.type, [&]<typename T>(const T*) {
    attend_typed<T>(q, keys, values, ranges, range_count, scale, scratch, out);
  });
}

void page_extrema(const void* keys, ElementType type, int count, int dim, void* minmax) {
  with_type(type, [&]<typename T>(const T*) {
    const T* first = static_cast<const T*>(keys);
    T* out = static_cast<T*>(minmax);
    for_vectors(dim, [&](int d, auto part) {
      const T* key = first + d;
      Vec low = load(key, part), high = low;
      for (int j = 1; j < count; ++j) {
        key += dim;
        const Vec x = load(key, part);
        low = min(x, low);
        high = max(x, high);
      }
      store(out + d, low, part);
      store(out + dim + d, high, part);
    });
  });
}

void page_scores(const float* q, const void* minmax, ElementType type, int pages, int dim,
                 float* score) {
  with_type(type, [&]<typename T>(const T*) {
    const T* first = static_cast<const T*>(minmax);
    for (int p = 0; p < pages; p += 4) {
      Vec sum[4] = {zero(), zero(), zero(), zero()};
      const T* low[4];
      for (int k = 0; k < 4; ++k)
        low[k] = first + static_cast<int64_t>(smaller(p + k, pages - 1)) * 2 * dim;
      for_vectors(dim, [&](int d, auto part) {
        const Vec x = load(q + d, part);
        const Mask positive = less(zero(), x);
        for (int k = 0; k < 4; ++k) {
          const Vec bound = select(positive, load(low[k] + dim + d, part), load(low[k] + d, part));
          sum[k] = fma(x, bound, sum[k]);
        }
      });
      float some[4];
      reduce_add4(sum[0], sum[1], sum[2], sum[3], some);
      for (int k = 0; k < 4 && p + k < pages; ++k) score[p + k] = some[k];
    }
  });
}

}  // namespace sol::kernels::SOL_ISA_NAME
