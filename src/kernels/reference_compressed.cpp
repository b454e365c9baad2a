// What compressed rows mean and how they are made (compressed.h): the readable definition.
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/compressed.h"
#include "kernels/reference_math.h"

namespace sol::kernels::reference {
namespace {

float read_scale(const std::byte* scales, int index) {
  bf16 scale;
  std::memcpy(&scale, scales + static_cast<int64_t>(sizeof(scale)) * index, sizeof(scale));
  return to_float(scale);
}

void write_scale(std::byte* scales, int index, float value) {
  const bf16 scale = to_bf16(value);
  std::memcpy(scales + static_cast<int64_t>(sizeof(scale)) * index, &scale, sizeof(scale));
}

float round_to_bf16(float x) {
  return to_float(to_bf16(x));
}

void compress_int8(const float* x, int n, std::byte* row) {
  float largest = 0;
  for (int i = 0; i < n; ++i) largest = std::max(largest, std::fabs(x[i]));
  const float scale = round_to_bf16(largest / kLargestInt8);
  for (int i = 0; i < n && scale > 0; ++i) {
    const float code = std::nearbyint(x[i] / scale);  // half to even
    row[i] = static_cast<std::byte>(
        static_cast<int8_t>(std::clamp<float>(code, -kLargestInt8, kLargestInt8)));
  }
  write_scale(row + code_bytes(WeightType::int8, n), 0, scale);
}

// A group of 4-bit codes; what lies beyond the end of the row counts as nothing.
struct Group {
  float scale = 0, error = std::numeric_limits<float>::infinity();
  int code[kCodeGroup] = {};
  float best_scale = 0;  // with these codes, by least squares
};

// What weights and errors are multiplied by before they are squared.
float measure_of(float largest) {
  if (std::fabs(largest) > kLargestSquared) return 1.0f / kErrorUnit;
  return std::fabs(largest) < kSmallestSquared ? kErrorUnit : 1.0f;
}

Group encode(const float (&x)[kCodeGroup], int count, float scale, float measure) {
  Group g{.scale = scale};
  float value[kCodeGroup] = {}, difference[kCodeGroup] = {}, measured[kCodeGroup] = {};
  const float inverse = 1.0f / scale;
  for (int i = 0; i < kCodeGroup; ++i) {
    for (int c = 0; c + 1 < 16; ++c) {
      const float middle = 0.5f * static_cast<float>(kInt4Values[c] + kInt4Values[c + 1]);
      if (x[i] * inverse > middle) g.code[i] = c + 1;
    }
    if (i < count) value[i] = kInt4Values[g.code[i]];
    difference[i] = std::fma(-scale, value[i], x[i]) * measure;
    measured[i] = x[i] * measure;
  }
  g.error = dot(difference, difference, kCodeGroup);
  g.best_scale = dot(measured, value, kCodeGroup) / dot(value, value, kCodeGroup) / measure;
  return g;
}

// The scale with the least squared error among some near those that map the largest weight to
// either end of the values, improved by least squares.
Group best_group(const float (&x)[kCodeGroup], int count) {
  float high = 0, low = 0;
  for (const float v : x) {
    high = std::max(high, v);
    low = std::min(low, v);
  }
  const float largest = high >= -low ? high : low, measure = measure_of(largest);
  Group best;
  const auto consider = [&](float scale) {
    scale = round_to_bf16(scale);
    if (!(std::fabs(scale) > 0)) return;
    const Group g = encode(x, count, scale, measure);
    if (g.error < best.error) best = g;
  };
  for (const int8_t end : {kInt4Values[0], kInt4Values[15]})
    for (const float factor : kScaleFactors) consider(largest / static_cast<float>(end) * factor);
  for (int i = 0; i < kScaleRefinements; ++i) consider(best.best_scale);
  return best;
}

void compress_int4(const float* x, int n, std::byte* row) {
  std::byte* scales = row + code_bytes(WeightType::int4, n);
  for (int begin = 0; begin < n; begin += kCodeGroup) {
    const int count = std::min(kCodeGroup, n - begin);
    float padded[kCodeGroup] = {};
    std::copy(x + begin, x + begin + count, padded);
    const Group g = best_group(padded, count);
    for (int b = 0; b < kCodeGroup / 2; ++b)
      row[begin / 2 + b] = static_cast<std::byte>(g.code[b] | g.code[kCodeGroup / 2 + b] << 4);
    write_scale(scales, begin / kCodeGroup, g.scale);
  }
}

}  // namespace

void compress_row(const float* x, int n, WeightType type, std::byte* row) {
  std::memset(row, 0, static_cast<size_t>(row_bytes(type, n)));
  if (type == WeightType::int8)
    compress_int8(x, n, row);
  else
    compress_int4(x, n, row);
}

StoredRow stored_row(const WeightView& w, int64_t row) {
  const int n = w.layout == Layout::out_major ? w.in : w.out;
  StoredRow result{std::vector<float>(static_cast<size_t>(n))};
  std::vector<float>& values = result.summands;
  if (!is_compressed(w.type)) {
    with_type(w.type == WeightType::f32 ? ElementType::f32 : ElementType::bf16,
              [&]<typename T>(const T*) {
                const T* stored = static_cast<const T*>(w.data) + row * w.stride;
                for (int i = 0; i < n; ++i) values[i] = to_float(stored[i]);
              });
    return result;
  }
  if (w.type == WeightType::int8) result.scale = code_scale(w, row, 0);
  for (int i = 0; i < n; ++i) {
    values[i] = static_cast<float>(code_value(w, row, i));
    if (w.type == WeightType::int4) values[i] *= code_scale(w, row, i);
  }
  return result;
}

int code_value(const WeightView& w, int64_t row, int column) {
  const std::byte* stored = static_cast<const std::byte*>(w.data) + row * w.stride;
  if (w.type == WeightType::int8) return static_cast<int8_t>(stored[column]);
  const int group = column / kCodeGroup, within = column % kCodeGroup, half = kCodeGroup / 2;
  const auto pair = static_cast<unsigned>(stored[group * half + within % half]);
  return kInt4Values[within < half ? pair & 15u : pair >> 4];
}

float code_scale(const WeightView& w, int64_t row, int column) {
  const int n = w.layout == Layout::out_major ? w.in : w.out;
  const std::byte* scales =
      static_cast<const std::byte*>(w.data) + row * w.stride + code_bytes(w.type, n);
  return read_scale(scales, w.type == WeightType::int8 ? 0 : column / kCodeGroup);
}

void quantise_row(const float* x, int n, int8_t* codes, float* scale) {
  std::fill(codes, codes + n, int8_t{0});
  float largest = 0;
  bool finite = true;
  for (int i = 0; i < n; ++i) {
    largest = std::max(largest, std::fabs(x[i]));
    finite = finite && std::isfinite(x[i]);
  }
  *scale = largest / kLargestInt8;
  if (!finite) *scale = std::numeric_limits<float>::quiet_NaN();
  if (*scale < std::numeric_limits<float>::min()) *scale = 0;
  if (!(*scale > 0)) return;
  for (int i = 0; i < n; ++i)
    codes[i] = static_cast<int8_t>(std::nearbyint(x[i] / *scale));  // half to even
}

void integer_out_major(const WeightView& w, const int8_t* x, int64_t x_stride, const float* x_scale,
                       int rows, int out_begin, int out_end, float* y, int64_t y_stride) {
  for (int r = 0; r < rows; ++r) {
    for (int o = out_begin; o < out_end; ++o) {
      int32_t sum = 0;
      for (int i = 0; i < w.in; ++i) sum += x[r * x_stride + i] * code_value(w, o, i);
      y[r * y_stride + o] = static_cast<float>(sum) * (x_scale[r] * code_scale(w, o, 0));
    }
  }
}

void integer_in_major(const WeightView& w, const int8_t* x, int64_t x_stride, const float* x_scale,
                      int rows, const int* channels, int n, int out_begin, int out_end, float* y,
                      int64_t y_stride) {
  for (int r = 0; r < rows; ++r) {
    for (int o = out_begin; o < out_end; ++o) {
      int32_t sum = 0;
      for (int k = 0; k < (channels ? n : w.in); ++k)
        sum += x[r * x_stride + k] * code_value(w, channels ? channels[k] : k, o);
      y[r * y_stride + o] = static_cast<float>(sum) * x_scale[r];
    }
  }
}

}  // namespace sol::kernels::reference
