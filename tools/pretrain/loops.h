// The loops between the products of a training step, on one thread. Compiled for AVX-512
// (CMakeLists.txt), so only to be called where cpu_engine_runs().
#pragma once

#include <cstdint>

#include "base/bfloat16.h"

namespace sol::pretrain {

// h = x · r · w with r = 1 / sqrt(mean(x²) + eps) kept for the way back. x, h [n, d], r [n].
void rms_norm(const float* x, const float* w, int64_t n, int64_t d, float eps, bf16* h, float* r);
// x += y [n, d], then as rms_norm of the sum, which goes to `sum`.
void add_rms_norm(const float* x, const bf16* y, const float* w, int64_t n, int64_t d, float eps,
                  float* sum, bf16* h, float* r);
// gx += gradient of x, gw += gradient of w, given dh; and gx rounded to gx16.
void rms_norm_backward(const bf16* dh, const float* x, const float* r, const float* w, int64_t n,
                       int64_t d, float* gx, bf16* gx16, float* gw);

// act [n, f] = silu(gate) · up, of rows gate | up [n, 2 f].
void swiglu(const bf16* gate_up, int64_t n, int64_t f, bf16* act);
// act again, and the gradients of gate | up given dact.
void swiglu_backward(const bf16* gate_up, const bf16* dact, int64_t n, int64_t f, bf16* act,
                     bf16* dgate_up);

// Rotates `heads` heads (halves layout) of n rows `stride` elements apart; row i is position
// i % window. sign -1 turns back, which is the gradient's way. cosines, sines [window, dim / 2].
void rotate(bf16* x, int64_t n, int64_t stride, int heads, int dim, int window,
            const float* cosines, const float* sines, float sign);

// Of rows of logits [n, v] with their targets: losses [n] = -log softmax(target); p (may be null)
// = (softmax - one at the target) · scale.
void cross_entropy(float* logits, const int32_t* targets, int64_t n, int64_t v, float scale,
                   float* losses, bf16* p);

// Attention weights of a block of query rows: row i may see the keys 0..first + i % block.
struct Block {
  int64_t rows, keys;
  int64_t first, block;  // position of the first row; positions (rows repeat them per head)
  int64_t last_key(int64_t row) const { return first + row % block; }
};
// p [rows, keys] = softmax(s · scale) over the visible keys, 0 elsewhere; lse [rows] the logarithm
// of the sum of exponentials.
void causal_softmax(float* s, const Block& block, float scale, bf16* p, float* lse);
// p again from lse; then ds = p · (dp - delta[row]) · scale.
void causal_softmax_backward(float* s, const float* dp, const float* lse, const float* delta,
                             const Block& block, float scale, bf16* p, bf16* ds);

float dot(const bf16* a, const bf16* b, int64_t n);
void round_row(const float* x, int64_t n, bf16* y);
void add_to(const float* x, int64_t n, float* y);

// AdamW on one range: g is multiplied by `clip` first; w16 gets the rounded weights.
struct AdamWStep {
  float rate, beta1, beta2, epsilon, decay, clip;
  float correction1, correction2;  // 1 - beta^steps
};
void adamw(float* w, const float* g, float* m, float* v, bf16* w16, int64_t n,
           const AdamWStep& step);
double square_sum(const float* x, int64_t n);

}  // namespace sol::pretrain
