// Causal grouped-query attention on one thread, by blocks of query positions; weights exist for one
// block at a time.
#pragma once

#include <vector>

#include "base/bfloat16.h"

namespace sol::pretrain {

struct AttentionShape {
  int window, heads, kv_heads, dim;
  int64_t width() const { return int64_t{heads} * dim; }
  int64_t stride() const { return int64_t{heads + 2 * kv_heads} * dim; }
};

class Attention {
 public:
  explicit Attention(const AttentionShape& shape);

  // qkv [window, stride]: rotated queries and keys, values; out [window, width]; lse [heads,
  // window].
  void forward(const bf16* qkv, bf16* out, float* lse);
  // dqkv, of rotated queries and keys, from dout.
  void backward(const bf16* qkv, const bf16* out, const float* lse, const bf16* dout, bf16* dqkv);

 private:
  // A head's keys or values, row after row: a product reads them twice as fast so.
  void copy_head(const bf16* from, bf16* to) const;

  AttentionShape shape_;
  std::vector<float> s_, dp_, lse_, delta_, dk_, dv_;
  std::vector<bf16> p_, ds_, q_, o_, do_, dq_, k_, v_;
};

}  // namespace sol::pretrain
