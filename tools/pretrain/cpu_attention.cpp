#include "cpu_attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "loops.h"
#include "product.h"

namespace sol::pretrain {
namespace {

// Positions of a block: with two heads per key head its scores over 512 keys take 256 KiB, so that
// all of a block's matrices stay in the level-2 cache.
constexpr int64_t block_positions = 64;

}  // namespace

Attention::Attention(const AttentionShape& shape) : shape_(shape) {
  const auto rows = static_cast<size_t>(block_positions * (shape.heads / shape.kv_heads));
  const auto window = static_cast<size_t>(shape.window), dim = static_cast<size_t>(shape.dim);
  for (auto* v : {&s_, &dp_}) v->resize(rows * window);
  for (auto* v : {&p_, &ds_}) v->resize(rows * window);
  for (auto* v : {&lse_, &delta_}) v->resize(rows);
  for (auto* v : {&dk_, &dv_}) v->resize(window * dim);
  for (auto* v : {&k_, &v_}) v->resize(window * dim);
  for (auto* v : {&q_, &o_, &do_, &dq_}) v->resize(rows * dim);
}

namespace {

// The rows of a block: those of each of the group's heads, one head after the other.
struct Rows {
  int64_t group, first, positions, dim;
  int64_t rows() const { return group * positions; }

  // Between such rows and a matrix whose row holds this group's heads side by side at `x`.
  void gather(const bf16* x, int64_t stride, bf16* to) const {
    for (int64_t h = 0; h < group; ++h)
      for (int64_t i = 0; i < positions; ++i, to += dim)
        std::memcpy(to, x + (first + i) * stride + h * dim, static_cast<size_t>(dim) * 2);
  }
  void scatter(const bf16* from, bf16* x, int64_t stride) const {
    for (int64_t h = 0; h < group; ++h)
      for (int64_t i = 0; i < positions; ++i, from += dim)
        std::memcpy(x + (first + i) * stride + h * dim, from, static_cast<size_t>(dim) * 2);
  }
};

}  // namespace

void Attention::copy_head(const bf16* from, bf16* to) const {
  for (int64_t i = 0; i < shape_.window; ++i, from += shape_.stride(), to += shape_.dim)
    std::memcpy(to, from, static_cast<size_t>(shape_.dim) * sizeof(bf16));
}

void Attention::forward(const bf16* qkv, bf16* out, float* lse) {
  const int64_t window = shape_.window, dim = shape_.dim, stride = shape_.stride(),
                group = shape_.heads / shape_.kv_heads;
  const float scale = 1 / std::sqrt(static_cast<float>(dim));
  for (int64_t g = 0; g < shape_.kv_heads; ++g) {
    const bf16* q = qkv + g * group * dim;
    copy_head(qkv + shape_.width() + g * dim, k_.data());
    copy_head(qkv + shape_.width() + (shape_.kv_heads + g) * dim, v_.data());
    for (int64_t first = 0; first < window; first += block_positions) {
      const Rows rows{group, first, std::min(block_positions, window - first), dim};
      const int64_t keys = first + rows.positions, n = rows.rows();
      rows.gather(q, stride, q_.data());
      multiply(rows_of(q_.data(), dim), transposed(k_.data(), dim), n, dim, keys, s_.data(), keys,
               false);
      causal_softmax(s_.data(), {n, keys, first, rows.positions}, scale, p_.data(), lse_.data());
      multiply(rows_of(p_.data(), keys), rows_of(v_.data(), dim), n, keys, dim, o_.data(), dim);
      rows.scatter(o_.data(), out + g * group * dim, shape_.width());
      for (int64_t h = 0; h < group; ++h)
        std::copy_n(lse_.data() + h * rows.positions, rows.positions,
                    lse + (g * group + h) * window + first);
    }
  }
}

void Attention::backward(const bf16* qkv, const bf16* out, const float* lse, const bf16* dout,
                         bf16* dqkv) {
  const int64_t window = shape_.window, dim = shape_.dim, stride = shape_.stride(),
                width = shape_.width(), group = shape_.heads / shape_.kv_heads;
  const float scale = 1 / std::sqrt(static_cast<float>(dim));
  for (int64_t g = 0; g < shape_.kv_heads; ++g) {
    const int64_t q_at = g * group * dim, k_at = width + g * dim,
                  v_at = k_at + shape_.kv_heads * dim;
    copy_head(qkv + k_at, k_.data());
    copy_head(qkv + v_at, v_.data());
    std::ranges::fill(dk_, 0.0f);
    std::ranges::fill(dv_, 0.0f);
    for (int64_t first = 0; first < window; first += block_positions) {
      const Rows rows{group, first, std::min(block_positions, window - first), dim};
      const int64_t keys = first + rows.positions, n = rows.rows();
      rows.gather(qkv + q_at, stride, q_.data());
      rows.gather(out + q_at, width, o_.data());
      rows.gather(dout + q_at, width, do_.data());
      for (int64_t h = 0; h < group; ++h)
        std::copy_n(lse + (g * group + h) * window + first, rows.positions,
                    lse_.data() + h * rows.positions);
      for (int64_t i = 0; i < n; ++i)
        delta_[static_cast<size_t>(i)] = dot(o_.data() + i * dim, do_.data() + i * dim, dim);
      multiply(rows_of(q_.data(), dim), transposed(k_.data(), dim), n, dim, keys, s_.data(), keys,
               false);
      multiply(rows_of(do_.data(), dim), transposed(v_.data(), dim), n, dim, keys, dp_.data(), keys,
               false);
      causal_softmax_backward(s_.data(), dp_.data(), lse_.data(), delta_.data(),
                              {n, keys, first, rows.positions}, scale, p_.data(), ds_.data());
      multiply(rows_of(ds_.data(), keys), rows_of(k_.data(), dim), n, keys, dim, dq_.data(), dim);
      rows.scatter(dq_.data(), dqkv + q_at, stride);
      multiply(transposed(ds_.data(), keys), rows_of(q_.data(), dim), keys, n, dim, dk_.data(), dim,
               true);
      multiply(transposed(p_.data(), keys), rows_of(do_.data(), dim), keys, n, dim, dv_.data(), dim,
               true);
    }
    for (int64_t i = 0; i < window; ++i) {
      round_row(dk_.data() + i * dim, dim, dqkv + i * stride + k_at);
      round_row(dv_.data() + i * dim, dim, dqkv + i * stride + v_at);
    }
  }
}

}  // namespace sol::pretrain
