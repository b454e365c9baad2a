// Choosing the next token from a position's logits.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace sol {

// As in Hugging Face's generation settings; applied in this order: temperature, top-k, top-p.
struct SamplingOptions {
  double temperature = 0.0;  // 0: the likeliest token, always
  int top_k = 0;             // only the k likeliest tokens; 0: all of them
  double top_p = 1.0;        // only the fewest likeliest tokens whose probabilities reach this sum
  uint64_t seed = 0;
};

// Throws Error naming the option that is out of range.
void check(const SamplingOptions& options);

// Index of the largest logit, ties to the lower index. Throws Error when a logit is NaN or none is
// finite: the model's arithmetic broke down, and any choice would hide it.
int32_t argmax(std::span<const float> logits);

// Draws tokens. Every draw is a pure function of (seed, sequence, step) and the logits.
class Sampler {
 public:
  explicit Sampler(const SamplingOptions& options);  // throws Error as check() does

  // The token for `step` of `sequence`. Throws Error as argmax() does.
  int32_t sample(std::span<const float> logits, uint32_t step, uint64_t sequence = 0);

 private:
  SamplingOptions options_;
  std::vector<std::pair<float, int32_t>> candidates_;  // logit and token; kept to reuse its memory
  std::vector<double> weights_;
};

}  // namespace sol
