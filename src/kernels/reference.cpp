// The arithmetic's readable definition. Every other instruction set is tested against these
// functions.
#include <cassert>
#include <limits>

#include "kernels/reference_math.h"

namespace sol::kernels::reference {

void matvec_out_major(const WeightView& w, const float* x, int out_begin, int out_end, float* y) {
  if (is_compressed(w.type)) return fixed_out_major(w, x, out_begin, out_end, y);
  for (int o = out_begin; o < out_end; ++o) y[o] = dot(x, stored_row(w, o).summands.data(), w.in);
}

void matmul_out_major(const WeightView& w, const float* x, int64_t x_stride, int rows,
                      int out_begin, int out_end, float* y, int64_t y_stride) {
  for (int r = 0; r < rows; ++r)
    matvec_out_major(w, x + r * x_stride, out_begin, out_end, y + r * y_stride);
}

void matmul_in_major(const WeightView& w, const float* x, int64_t x_stride, int rows,
                     const int* channels, int n, int out_begin, int out_end, float* y,
                     int64_t y_stride) {
  for (int r = 0; r < rows; ++r)
    std::fill(y + r * y_stride + out_begin, y + r * y_stride + out_end, 0.0f);
  const int count = channels ? n : w.in;
  if (is_compressed(w.type)) {
    for (int r = 0; r < rows; ++r)
      fixed_in_major(w, x + r * x_stride, channels, count, out_begin, out_end, y + r * y_stride);
    return;
  }
  for (int k = 0; k < count; ++k) {
    const int c = channels ? channels[k] : k;
    const StoredRow row = stored_row(w, c);
    for (int r = 0; r < rows; ++r) {
      const float factor = x[r * x_stride + c];
      float* sum = y + r * y_stride;
      for (int o = out_begin; o < out_end; ++o) sum[o] = std::fma(factor, row.summands[o], sum[o]);
    }
  }
}

void store_elements(const float* x, int n, ElementType type, void* out) {
  if (type == ElementType::f32)
    std::copy(x, x + n, static_cast<float*>(out));
  else
    std::transform(x, x + n, static_cast<bf16*>(out), to_bf16);
}

void widen_row(const WeightView& w, int64_t row, int begin, int end, ElementType type, void* out) {
  StoredRow weights = stored_row(w, row);
  for (float& weight : weights.summands) weight *= weights.scale;
  store_elements(weights.summands.data() + begin, end - begin, type, out);
}

void widen_summands(const WeightView& w, int64_t row, int begin, int end, ElementType type,
                    void* out) {
  store_elements(stored_row(w, row).summands.data() + begin, end - begin, type, out);
}

void rms_norm(const float* x, const float* weight, float eps, int n, float* out) {
  const float mean_square = dot(x, x, n) / static_cast<float>(n);
  const float factor = 1.0f / std::sqrt(mean_square + eps);
  for (int i = 0; i < n; ++i) out[i] = x[i] * factor * weight[i];
}

void rotary(float* x, int heads, int dim, const float* cos, const float* sin) {
  const int half = dim / 2;
  for (int h = 0; h < heads; ++h) {
    float* low = x + static_cast<int64_t>(h) * dim;
    float* high = low + half;
    for (int i = 0; i < half; ++i) {
      const float a = low[i], b = high[i];
      low[i] = a * cos[i] - b * sin[i];
      high[i] = b * cos[i] + a * sin[i];
    }
  }
}

void silu_mul(const float* gate, const float* up, int n, float* out) {
  for (int i = 0; i < n; ++i) out[i] = gate[i] / (1.0f + std::exp(-gate[i])) * up[i];
}

void add(float* x, const float* y, int n) {
  for (int i = 0; i < n; ++i) x[i] += y[i];
}

void fake_quantise(float* z, int n, int bits) {
  if (bits >= 16) return;
  assert(bits >= 2);
  float largest = 1e-8f;
  for (int i = 0; i < n; ++i) largest = std::max(largest, std::fabs(z[i]));  // skips NaN
  const float levels = static_cast<float>((1 << (bits - 1)) - 1);
  const float step = largest / levels;
  for (int i = 0; i < n; ++i) {
    const float rounded = std::nearbyint(z[i] / step);  // half to even; NaN stays
    z[i] = std::clamp(rounded, -levels, levels) * step;
  }
}

void load_elements(const void* x, ElementType type, int n, float* out) {
  with_type(type, [&]<typename T>(const T*) {
    for (int i = 0; i < n; ++i) out[i] = to_float(static_cast<const T*>(x)[i]);
  });
}

void page_extrema(const void* keys, ElementType type, int count, int dim, void* minmax) {
  with_type(type, [&]<typename T>(const T*) {
    const T* key = static_cast<const T*>(keys);
    T* low = static_cast<T*>(minmax);
    T* high = low + dim;
    for (int d = 0; d < dim; ++d) low[d] = high[d] = key[d];
    for (int j = 1; j < count; ++j) {
      key += dim;
      for (int d = 0; d < dim; ++d) {
        if (to_float(key[d]) < to_float(low[d])) low[d] = key[d];
        if (to_float(key[d]) > to_float(high[d])) high[d] = key[d];
      }
    }
  });
}

void page_moments(const void* keys, ElementType type, int count, int dim, void* moments) {
  with_type(type, [&]<typename T>(const T*) {
    const T* key = static_cast<const T*>(keys);
    const float share = 1.0f / static_cast<float>(count);
    std::vector<float> mean(dim, 0.0f), variance(dim, 0.0f);
    const auto at = [&](int j, int d) { return to_float(key[static_cast<int64_t>(j) * dim + d]); };
    for (int j = 0; j < count; ++j)
      for (int d = 0; d < dim; ++d) mean[d] += at(j, d);
    for (float& sum : mean) sum *= share;
    for (int j = 0; j < count; ++j)
      for (int d = 0; d < dim; ++d) {
        const float difference = at(j, d) - mean[d];
        variance[d] = std::fma(difference, difference, variance[d]);
      }
    for (float& sum : variance) sum *= share;
    T* out = static_cast<T*>(moments);
    store_elements(mean.data(), dim, type, out);
    store_elements(variance.data(), dim, type, out + dim);
  });
}

void log_sum_exp(const float* x, int n, float* log_sum_exp, float* expected_x) {
  const float largest = *std::max_element(x, x + n);
  double total = 0, weighted = 0;
  for (int i = 0; i < n; ++i) {
    const double shifted = static_cast<double>(x[i]) - largest;
    const double weight = std::exp(shifted);
    total += weight;
    if (weight != 0) weighted += weight * shifted;  // an excluded token (-inf) adds nothing
  }
  *log_sum_exp = static_cast<float>(largest + std::log(total));
  *expected_x = static_cast<float>(largest + weighted / total);
}

void layer_norm(const float* x, const float* weight, const float* bias, float eps, int n,
                float* out) {
  const float mean = sum(x, n) / static_cast<float>(n);
  float lane[kLanes] = {};
  for (int i = 0; i < n; ++i) {
    const float centred = x[i] - mean;
    lane[i % kLanes] = std::fma(centred, centred, lane[i % kLanes]);
  }
  const float factor = 1.0f / std::sqrt(fold(lane) / static_cast<float>(n) + eps);
  for (int i = 0; i < n; ++i) out[i] = std::fma((x[i] - mean) * factor, weight[i], bias[i]);
}

void gelu(float* x, int n) {
  constexpr float kInverseRoot2 = 0.70710678118654752f;
  for (int i = 0; i < n; ++i) x[i] = 0.5f * x[i] * (1.0f + std::erf(x[i] * kInverseRoot2));
}

int32_t largest_of(const int32_t* x, int64_t count) {
  return count > 0 ? *std::max_element(x, x + count) : std::numeric_limits<int32_t>::min();
}

}  // namespace sol::kernels::reference
