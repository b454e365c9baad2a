#include "loops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace sol::pretrain {
namespace {

// Without to_bf16's test for NaN, which keeps loops from being vectorised; a NaN shows in the loss.
inline bf16 rounded(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  return {static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
}

// exp to 2e-7 relative, of x clamped to what floats can hold.
inline float fast_exp(float x) {
  x = std::min(std::max(x, -87.0f), 88.0f);
  const float t = x * 1.44269504f;
  const float shifted = t + 12582912.0f;  // 1.5 · 2^23: the integer part lands in the low bits
  const float n = shifted - 12582912.0f;
  const float f = (x - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts
  float p = 1.9875691500e-4f;
  p = p * f + 1.3981999507e-3f;
  p = p * f + 8.3334519073e-3f;
  p = p * f + 4.1665795894e-2f;
  p = p * f + 1.6666665459e-1f;
  p = p * f + 5.0000001201e-1f;
  p = p * f * f + f + 1.0f;
  const uint32_t exponent = (std::bit_cast<uint32_t>(shifted) << 23);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(p) + exponent);
}

// By hand: GCC 12 makes a slow loop of it, with or without OpenMP's reduction.
inline float maximum(const float* x, int64_t n) {
  using Lanes [[gnu::vector_size(64)]] = float;
  const auto load = [&](int64_t j) {
    Lanes out;
    std::memcpy(&out, x + j, sizeof(out));
    return out;
  };
  Lanes a = Lanes{} + x[0], b = a;
  int64_t j = 0;
  for (; j + 32 <= n; j += 32) {
    const Lanes c = load(j), d = load(j + 16);
    a = a > c ? a : c;
    b = b > d ? b : d;
  }
  a = a > b ? a : b;
  float out = a[0];
  for (int i = 1; i < 16; ++i) out = std::max(out, a[i]);
  for (; j < n; ++j) out = std::max(out, x[j]);
  return out;
}

// Loops over a multiple of this many floats have no remainder, which costs as much as all the rest.
constexpr int64_t lanes = 16;

// Of a row of scores: the visible ones are followed by ones that count for nothing, up to whole
// vectors where the row is long enough. Returns how many there are now.
inline int64_t pad(float* s, int64_t visible, int64_t keys) {
  const int64_t padded = std::min((visible + lanes - 1) / lanes * lanes, keys);
  for (int64_t j = visible; j < padded; ++j) s[j] = -1e30f;
  return padded;
}

}  // namespace

void rms_norm(const float* x, const float* w, int64_t n, int64_t d, float eps, bf16* h, float* r) {
  for (int64_t i = 0; i < n; ++i, x += d, h += d) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < d; ++j) sum += x[j] * x[j];
    const float s = r[i] = 1 / std::sqrt(sum / static_cast<float>(d) + eps);
#pragma omp simd
    for (int64_t j = 0; j < d; ++j) h[j] = rounded(x[j] * s * w[j]);
  }
}

void add_rms_norm(const float* x, const bf16* y, const float* w, int64_t n, int64_t d, float eps,
                  float* total, bf16* h, float* r) {
  for (int64_t i = 0; i < n; ++i, x += d, y += d, total += d, h += d) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < d; ++j) {
      const float v = x[j] + to_float(y[j]);
      total[j] = v;
      sum += v * v;
    }
    const float s = r[i] = 1 / std::sqrt(sum / static_cast<float>(d) + eps);
#pragma omp simd
    for (int64_t j = 0; j < d; ++j) h[j] = rounded(total[j] * s * w[j]);
  }
}

void rms_norm_backward(const bf16* dh, const float* x, const float* r, const float* w, int64_t n,
                       int64_t d, float* gx, bf16* gx16, float* gw) {
  for (int64_t i = 0; i < n; ++i, dh += d, x += d, gx += d, gx16 += d) {
    const float s = r[i];
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < d; ++j) sum += to_float(dh[j]) * w[j] * x[j];
    const float c = sum * s * s * s / static_cast<float>(d);
#pragma omp simd
    for (int64_t j = 0; j < d; ++j) {
      const float g = to_float(dh[j]);
      const float v = gx[j] + (s * w[j] * g - c * x[j]);
      gw[j] += g * x[j] * s;
      gx[j] = v;
      gx16[j] = rounded(v);
    }
  }
}

void swiglu(const bf16* gate_up, int64_t n, int64_t f, bf16* act) {
  for (int64_t i = 0; i < n; ++i, gate_up += 2 * f, act += f)
#pragma omp simd
    for (int64_t j = 0; j < f; ++j) {
      const float g = to_float(gate_up[j]), u = to_float(gate_up[f + j]);
      act[j] = rounded(g * u / (1 + fast_exp(-g)));
    }
}

void swiglu_backward(const bf16* gate_up, const bf16* dact, int64_t n, int64_t f, bf16* act,
                     bf16* dgate_up) {
  for (int64_t i = 0; i < n; ++i, gate_up += 2 * f, dact += f, act += f, dgate_up += 2 * f)
#pragma omp simd
    for (int64_t j = 0; j < f; ++j) {
      const float g = to_float(gate_up[j]), u = to_float(gate_up[f + j]);
      const float sigmoid = 1 / (1 + fast_exp(-g)), silu = g * sigmoid, da = to_float(dact[j]);
      act[j] = rounded(silu * u);
      dgate_up[j] = rounded(da * u * (sigmoid + silu * (1 - sigmoid)));
      dgate_up[f + j] = rounded(da * silu);
    }
}

void rotate(bf16* x, int64_t n, int64_t stride, int heads, int dim, int window,
            const float* cosines, const float* sines, float sign) {
  const int half = dim / 2;
  for (int64_t i = 0; i < n; ++i, x += stride) {
    const float *c = cosines + (i % window) * half, *s = sines + (i % window) * half;
    for (int h = 0; h < heads; ++h) {
      bf16 *first = x + h * dim, *second = first + half;
#pragma omp simd
      for (int j = 0; j < half; ++j) {
        const float a = to_float(first[j]), b = to_float(second[j]), t = s[j] * sign;
        first[j] = rounded(a * c[j] - b * t);
        second[j] = rounded(b * c[j] + a * t);
      }
    }
  }
}

void cross_entropy(float* logits, const int32_t* targets, int64_t n, int64_t v, float scale,
                   float* losses, bf16* p) {
  for (int64_t i = 0; i < n; ++i, logits += v) {
    const float largest = maximum(logits, v);
    const float chosen = logits[targets[i]];
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < v; ++j) {
      const float e = fast_exp(logits[j] - largest);
      logits[j] = e;
      sum += e;
    }
    losses[i] = std::log(sum) + largest - chosen;
    if (!p) continue;
    const float factor = scale / sum;
#pragma omp simd
    for (int64_t j = 0; j < v; ++j) p[j] = rounded(logits[j] * factor);
    p[targets[i]] = rounded(logits[targets[i]] * factor - scale);
    p += v;
  }
}

void causal_softmax(float* s, const Block& block, float scale, bf16* p, float* lse) {
  for (int64_t i = 0; i < block.rows; ++i, s += block.keys, p += block.keys) {
    const int64_t visible = block.last_key(i) + 1, padded = pad(s, visible, block.keys);
    const float offset = maximum(s, padded) * scale;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < padded; ++j) {
      const float e = fast_exp(s[j] * scale - offset);
      s[j] = e;
      sum += e;
    }
    const float inverse = 1 / sum;
#pragma omp simd
    for (int64_t j = 0; j < padded; ++j) p[j] = rounded(s[j] * inverse);
    for (int64_t j = visible; j < block.keys; ++j) p[j] = {0};
    lse[i] = offset + std::log(sum);
  }
}

void causal_softmax_backward(float* s, const float* dp, const float* lse, const float* delta,
                             const Block& block, float scale, bf16* p, bf16* ds) {
  const int64_t keys = block.keys;
  for (int64_t i = 0; i < block.rows; ++i, s += keys, dp += keys, p += keys, ds += keys) {
    const int64_t visible = block.last_key(i) + 1, padded = pad(s, visible, keys);
    const float l = lse[i], d = delta[i];
#pragma omp simd
    for (int64_t j = 0; j < padded; ++j) {
      const float e = fast_exp(s[j] * scale - l);
      p[j] = rounded(e);
      ds[j] = rounded(e * (dp[j] - d) * scale);
    }
    for (int64_t j = visible; j < keys; ++j) p[j] = ds[j] = {0};
  }
}

float dot(const bf16* a, const bf16* b, int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < n; ++j) sum += to_float(a[j]) * to_float(b[j]);
  return sum;
}

void round_row(const float* x, int64_t n, bf16* y) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) y[j] = rounded(x[j]);
}

void add_to(const float* x, int64_t n, float* y) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) y[j] += x[j];
}

void adamw(float* w, const float* g, float* m, float* v, bf16* w16, int64_t n, const AdamWStep& s) {
  const float keep = 1 - s.rate * s.decay, rate = s.rate / s.correction1,
              scale = 1 / std::sqrt(s.correction2);
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) {
    const float x = g[j] * s.clip;
    const float first = s.beta1 * m[j] + (1 - s.beta1) * x;
    const float second = s.beta2 * v[j] + (1 - s.beta2) * x * x;
    m[j] = first;
    v[j] = second;
    const float next = w[j] * keep - rate * first / (std::sqrt(second) * scale + s.epsilon);
    w[j] = next;
    w16[j] = rounded(next);
  }
}

double square_sum(const float* x, int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < n; ++j) sum += static_cast<double>(x[j]) * x[j];
  return sum;
}

}  // namespace sol::pretrain
