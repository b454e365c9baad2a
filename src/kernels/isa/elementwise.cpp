// Norms, activations, rotary embedding, the quantiser, conversions: functions that touch each
// element once or twice.
#include "kernels/isa/functions.h"
#include "kernels/isa/math.h"

namespace sol::kernels::SOL_ISA_NAME {

void rms_norm(const float* x, const float* weight, float eps, int n, float* out) {
  Vec squares = zero();
  for_vectors(n, [&](int i, auto part) {
    const Vec v = load(x + i, part);
    squares = fma(v, v, squares);
  });
  const float mean_square = reduce_add(squares) / static_cast<float>(n);
  const Vec factor = set(1.0f / square_root(mean_square + eps));
  for_vectors(n, [&](int i, auto part) {
    store(out + i, load(x + i, part) * factor * load(weight + i, part), part);
  });
}

void layer_norm(const float* x, const float* weight, const float* bias, float eps, int n,
                float* out) {
  Vec total = zero();
  for_vectors(n, [&](int i, auto part) { total = total + load(x + i, part); });
  const Vec mean = set(reduce_add(total) / static_cast<float>(n));
  Vec squares = zero();
  for_vectors(n, [&](int i, auto part) {
    const Vec centred = keep(load(x + i, part) - mean, part);
    squares = fma(centred, centred, squares);
  });
  const float variance = reduce_add(squares) / static_cast<float>(n);
  const Vec factor = set(1.0f / square_root(variance + eps));
  for_vectors(n, [&](int i, auto part) {
    const Vec centred = load(x + i, part) - mean;
    store(out + i, fma(centred * factor, load(weight + i, part), load(bias + i, part)), part);
  });
}

void rotary(float* x, int heads, int dim, const float* cos, const float* sin) {
  const int half = dim / 2;
  for (int h = 0; h < heads; ++h) {
    float* low = x + static_cast<int64_t>(h) * dim;
    float* high = low + half;
    for_vectors(half, [&](int i, auto part) {
      const Vec a = load(low + i, part), b = load(high + i, part);
      const Vec c = load(cos + i, part), s = load(sin + i, part);
      store(low + i, a * c - b * s, part);
      store(high + i, b * c + a * s, part);
    });
  }
}

void silu_mul(const float* gate, const float* up, int n, float* out) {
  const Vec one = set(1.0f);
  for_vectors(n, [&](int i, auto part) {
    const Vec g = load(gate + i, part);
    store(out + i, g / (one + exp(zero() - g)) * load(up + i, part), part);
  });
}

void gelu(float* x, int n) {
  const Vec half = set(0.5f), one = set(1.0f), inverse_root_2 = set(0.70710678118654752f);
  for_vectors(n, [&](int i, auto part) {
    const Vec v = load(x + i, part);
    store(x + i, half * v * (one + erf(v * inverse_root_2)), part);
  });
}

void add(float* x, const float* y, int n) {
  for_vectors(n,
              [&](int i, auto part) { store(x + i, load(x + i, part) + load(y + i, part), part); });
}

void fake_quantise(float* z, int n, int bits) {
  if (bits >= 16) return;
  Vec lanes = set(1e-8f);
  for_vectors(n, [&](int i, auto part) { lanes = max(abs(load(z + i, part)), lanes); });
  const float levels = static_cast<float>((1 << (bits - 1)) - 1);
  const Vec step = set(reduce_max(lanes) / levels);
  const Vec lowest = set(-levels), highest = set(levels);
  for_vectors(n, [&](int i, auto part) {
    const Vec rounded = round(load(z + i, part) / step);
    store(z + i, min(highest, max(lowest, rounded)) * step, part);
  });
}

void store_elements(const float* x, int n, ElementType type, void* out) {
  with_type(type, [&]<typename T>(const T*) {
    for_vectors(
        n, [&](int i, auto part) { store(static_cast<T*>(out) + i, load(x + i, part), part); });
  });
}

void load_elements(const void* x, ElementType type, int n, float* out) {
  with_type(type, [&]<typename T>(const T*) {
    for_vectors(n, [&](int i, auto part) {
      store(out + i, load(static_cast<const T*>(x) + i, part), part);
    });
  });
}

void log_sum_exp(const float* x, int n, float* log_sum_exp, float* expected_x) {
  Vec lanes = set(-kInfinity);
  for_vectors(n, [&](int i, auto part) {
    // A lane that is not in memory repeats what is known instead of reading as zero.
    if constexpr (__is_same(decltype(part), All))
      lanes = max(load(x + i, part), lanes);
    else
      lanes = max(select(first_lanes(part.n), load(x + i, part), lanes), lanes);
  });
  const float largest = reduce_max(lanes);

  double total = 0, weighted = 0;
  constexpr int kBlock = 4096;  // summed in float32, the blocks in float64
  for (int begin = 0; begin < n; begin += kBlock) {
    Vec block_total = zero(), block_weighted = zero();
    for_vectors(smaller(kBlock, n - begin), [&](int i, auto part) {
      const Vec shifted = load(x + begin + i, part) - set(largest);
      const Vec weight = keep(exp(shifted), part);
      block_total = block_total + weight;
      // An excluded token (-infinity) has no weight and adds nothing; a NaN takes the product.
      const Vec product = select(less(shifted, set(-110.0f)), zero(), weight * shifted);
      block_weighted = block_weighted + keep(product, part);
    });
    total += static_cast<double>(reduce_add(block_total));
    weighted += static_cast<double>(reduce_add(block_weighted));
  }
  *log_sum_exp = static_cast<float>(static_cast<double>(largest) + __builtin_log(total));
  *expected_x = static_cast<float>(static_cast<double>(largest) + weighted / total);
}

}  // namespace sol::kernels::SOL_ISA_NAME
