// Products with compressed weights: whole numbers within a block of inputs (compressed.h), floats
// from block to block: the readable definition.
#include <limits>

#include "kernels/reference_math.h"

namespace sol::kernels::reference {
namespace {

// Numbers of one block as whole ones, at most kLargestFixed, times a scale. With one that is not
// finite the scale is NaN.
struct FixedBlock {
  std::vector<int> codes;
  float scale = 0;
};

FixedBlock fixed_block(const std::vector<float>& x) {
  FixedBlock block{std::vector<int>(x.size())};
  float largest = 0;
  bool finite = true;
  for (const float v : x) {
    largest = std::max(largest, std::fabs(v));
    finite = finite && std::isfinite(v);
  }
  if (!finite) block.scale = std::numeric_limits<float>::quiet_NaN();
  if (!finite || largest < kSmallestFixed) return block;
  const float inverse = kLargestFixed / largest;
  for (size_t i = 0; i < x.size(); ++i)
    block.codes[i] = static_cast<int>(std::nearbyint(x[i] * inverse));  // half to even
  block.scale = largest / kLargestFixed;
  return block;
}

// The lane that input i of a block goes to.
int lane_of(int i, WeightType type) {
  const int group = i / kCodeGroup, half = kCodeGroup / 2;
  return type == WeightType::int8 ? i % kCodeGroup / 2 : 4 * group + i % half / 4;
}

}  // namespace

void fixed_out_major(const WeightView& w, const float* x, int out_begin, int out_end, float* y) {
  std::vector<FixedBlock> blocks;
  for (int i = 0; i < w.in; i += kFixedInputs)
    blocks.push_back(fixed_block({x + i, x + std::min(i + kFixedInputs, w.in)}));
  constexpr int kChunkBlocks = kFixedChunk / kFixedInputs;
  for (int o = out_begin; o < out_end; ++o) {
    y[o] = 0;
    for (size_t chunk = 0; chunk < blocks.size(); chunk += kChunkBlocks) {
      float lane[kLanes] = {};
      for (size_t b = chunk; b < std::min(chunk + kChunkBlocks, blocks.size()); ++b) {
        const int begin = static_cast<int>(b) * kFixedInputs;
        int sum[kLanes] = {};
        float scale[kLanes] = {};
        for (int i = 0; i < static_cast<int>(blocks[b].codes.size()); ++i) {
          const int l = lane_of(i, w.type);
          sum[l] += blocks[b].codes[static_cast<size_t>(i)] * code_value(w, o, begin + i);
          if (w.type == WeightType::int4) scale[l] = code_scale(w, o, begin + i) * blocks[b].scale;
        }
        for (int l = 0; l < kLanes; ++l) {
          if (w.type == WeightType::int8) scale[l] = blocks[b].scale;
          lane[l] = std::fma(static_cast<float>(sum[l]), scale[l], lane[l]);
        }
      }
      const float outside = w.type == WeightType::int8 ? code_scale(w, o, 0) : 1.0f;
      y[o] += fold(lane) * outside;
    }
  }
}

void fixed_in_major(const WeightView& w, const float* x, const int* channels, int n, int out_begin,
                    int out_end, float* y) {
  for (int k = 0; k < n;) {
    std::vector<int> block;
    const auto channel = [&](int i) { return channels ? channels[i] : i; };
    do block.push_back(channel(k++));
    while (k < n && channel(k) / kFixedChannels == block[0] / kFixedChannels);
    FixedBlock fixed;
    for (int o = out_begin; o < out_end; ++o) {
      if (o == out_begin || (w.type == WeightType::int4 && o % kCodeGroup == 0)) {
        std::vector<float> scaled;
        for (const int c : block) scaled.push_back(x[c] * code_scale(w, c, o));
        fixed = fixed_block(scaled);
      }
      int sum = 0;
      for (size_t c = 0; c < block.size(); ++c) sum += fixed.codes[c] * code_value(w, block[c], o);
      y[o] = std::fma(static_cast<float>(sum), fixed.scale, y[o]);
    }
  }
}

}  // namespace sol::kernels::reference
