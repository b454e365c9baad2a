// Matrix products of BF16 matrices on one thread, by oneDNN.
#pragma once

#include <cstdint>

#include "base/bfloat16.h"

namespace sol::pretrain {

// A matrix where it lies: element (i, j) at data[i * row + j * column].
struct View {
  const bf16* data;
  int64_t row, column;
};
inline View rows_of(const bf16* data, int64_t stride) {
  return {data, stride, 1};
}
inline View transposed(const bf16* data, int64_t stride) {
  return {data, 1, stride};
}

// c [m, n] = a [m, k] · b [k, n], rows of c `stride` elements apart, on the calling thread alone.
// One thread with operands in its own level-2 cache reaches more than half of two threads that
// share each product, without waiting for each other.
void multiply(const View& a, const View& b, int64_t m, int64_t k, int64_t n, bf16* c,
              int64_t stride);
// As F32; with `add` c is added to.
void multiply(const View& a, const View& b, int64_t m, int64_t k, int64_t n, float* c,
              int64_t stride, bool add);

}  // namespace sol::pretrain
