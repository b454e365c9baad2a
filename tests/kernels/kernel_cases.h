// Random inputs and comparisons that the kernel tests share.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/compressed.h"
#include "kernels/kernels.h"

namespace sol::test {

inline std::vector<float> random_floats(size_t n, uint32_t seed, float scale = 1.0f) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> x(n);
  for (float& v : x) v = normal(generator);
  return x;
}

// Elements in memory that ends exactly at the last one, so that a sanitizer sees any read beyond.
struct Stored {
  kernels::ElementType type;
  std::vector<std::byte> bytes;
  const void* data() const { return bytes.data(); }
};

inline Stored stored(const std::vector<float>& x, kernels::ElementType type) {
  Stored s{type, std::vector<std::byte>(x.size() * kernels::size_of(type))};
  kernels::kernels_for(Isa::reference)
      .store(x.data(), static_cast<int>(x.size()), type, s.bytes.data());
  return s;
}

inline std::string bits_differ(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return "sizes differ";
  for (size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0)
      return fmt::format("element {} is {} and {}", i, a[i], b[i]);
  return "";
}
#define EXPECT_SAME_BITS(a, b) EXPECT_EQ(::sol::test::bits_differ(a, b), "")

inline void expect_near(const std::vector<float>& a, const std::vector<float>& b, float absolute,
                        float relative) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(b[i])) {
      EXPECT_TRUE(std::isnan(a[i])) << "element " << i << " is " << a[i];
    } else if (std::isinf(b[i])) {
      EXPECT_EQ(a[i], b[i]) << "element " << i;
    } else {
      EXPECT_LE(std::fabs(a[i] - b[i]), absolute + relative * std::fabs(b[i]))
          << "element " << i << ": " << a[i] << " and " << b[i];
    }
  }
}

// A matrix of any storage form whose memory ends exactly with its last row.
struct StoredMatrix {
  std::vector<std::byte> bytes;
  kernels::WeightView view;
};

// From in x out weights, row by row as the layout has them. Rows lie extra_stride elements (of 16
// bytes where compressed) further apart than they are long.
inline StoredMatrix stored_matrix(const std::vector<float>& weights, kernels::WeightType type,
                                  kernels::Layout layout, int in, int out, int extra_stride = 0) {
  using kernels::WeightType;
  const bool by_output = layout == kernels::Layout::out_major;
  const int rows = by_output ? out : in, columns = by_output ? in : out;
  const bool codes = kernels::is_compressed(type);
  const int64_t unit = codes ? 1 : kernels::row_bytes(type, 1);
  const int64_t stride =
      kernels::dense_stride(type, columns) + extra_stride * (codes ? kernels::kRowAlignment : 1);
  StoredMatrix m;
  // Compressed rows end at their last scale, with nothing behind the last of them.
  m.bytes.resize(
      static_cast<size_t>((rows - 1) * stride * unit + kernels::row_bytes(type, columns)));
  const auto& k = kernels::kernels_for(Isa::reference);
  for (int r = 0; r < rows; ++r) {
    std::byte* row = m.bytes.data() + r * stride * unit;
    const float* from = weights.data() + static_cast<size_t>(r) * columns;
    if (codes)
      k.compress_row(from, columns, type, row);
    else
      k.store(from, columns,
              type == WeightType::f32 ? kernels::ElementType::f32 : kernels::ElementType::bf16,
              row);
  }
  m.view = {m.bytes.data(), type, layout, in, out, stride};
  return m;
}

// A cache of `tokens` random vectors in blocks that are not in order in memory.
class RandomCache {
 public:
  RandomCache(int tokens, int dim, int block_tokens, kernels::ElementType type, uint32_t seed)
      : rows_(random_floats(static_cast<size_t>(tokens) * dim, seed)) {
    const int count = (tokens + block_tokens - 1) / block_tokens;
    const size_t size = kernels::size_of(type);
    const size_t block_bytes = kOffset + size * block_tokens * dim;
    storage_.resize(count);
    for (int b = 0; b < count; ++b) {
      // The last block ends with the last token, so that a sanitizer sees any read beyond.
      const int first = b * block_tokens;
      const int here = std::min(block_tokens, tokens - first);
      storage_[b].resize(b + 1 < count ? block_bytes : kOffset + size * here * dim);
      kernels::kernels_for(Isa::reference)
          .store(rows_.data() + static_cast<size_t>(first) * dim, here * dim, type,
                 storage_[b].data() + kOffset);
      blocks_.push_back(storage_[b].data());
    }
    view_ = {blocks_.data(), kOffset, block_tokens, dim, type};
  }
  const kernels::CacheView& view() const { return view_; }

 private:
  static constexpr size_t kOffset = 32;
  std::vector<float> rows_;
  std::vector<std::vector<std::byte>> storage_;
  std::vector<const std::byte*> blocks_;
  kernels::CacheView view_;
};

// Runs a test body once per instruction set of this machine.
class EachIsa : public testing::TestWithParam<Isa> {
 protected:
  const kernels::Kernels& fast() const { return kernels::kernels_for(GetParam()); }
  const kernels::Kernels& reference() const { return kernels::kernels_for(Isa::reference); }
};

inline std::string isa_name(const testing::TestParamInfo<Isa>& info) {
  return std::string(to_string(info.param));
}

inline constexpr kernels::ElementType kTypes[] = {kernels::ElementType::f32,
                                                  kernels::ElementType::bf16};

inline constexpr kernels::WeightType kWeightTypes[] = {
    kernels::WeightType::f32, kernels::WeightType::bf16, kernels::WeightType::int8,
    kernels::WeightType::int4};

}  // namespace sol::test

#define SOL_FOR_EACH_ISA(suite)                                                   \
  INSTANTIATE_TEST_SUITE_P(Isas, suite, testing::ValuesIn(sol::supported_isas()), \
                           sol::test::isa_name)
