#include "engine/sampling.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "base/random.h"

namespace sol {
namespace {

using Candidate = std::pair<float, int32_t>;

// Likelier first, ties to the lower token: a total order, so that results never depend on how the
// standard library sorts.
bool before(const Candidate& a, const Candidate& b) {
  return a.first != b.first ? a.first > b.first : a.second < b.second;
}
bool after(const Candidate& a, const Candidate& b) {
  return before(b, a);
}

}  // namespace

void check(const SamplingOptions& options) {
  if (!(options.temperature >= 0.0) || !std::isfinite(options.temperature))
    fail("temperature must be 0 or more, not {}", options.temperature);
  if (options.top_k < 0) fail("top-k must be 0 (off) or more, not {}", options.top_k);
  if (!(options.top_p > 0.0 && options.top_p <= 1.0))
    fail("top-p must lie in (0, 1], not {}", options.top_p);
}

int32_t argmax(std::span<const float> logits) {
  size_t best = 0;
  bool finite = false;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) fail("the model's logit of token {} is not a number", i);
    if (!std::isfinite(logits[i]) && logits[i] > 0)
      fail("the model's logit of token {} is infinite", i);
    finite = finite || std::isfinite(logits[i]);
    if (logits[i] > logits[best]) best = i;
  }
  if (!finite) fail("none of the model's {} logits is finite", logits.size());
  return static_cast<int32_t>(best);
}

Sampler::Sampler(const SamplingOptions& options) : options_(options) {
  check(options);
}

int32_t Sampler::sample(std::span<const float> logits, uint32_t step, uint64_t sequence) {
  const int32_t best = argmax(logits);
  if (options_.temperature == 0.0 || options_.top_k == 1) return best;

  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i)
    candidates_.emplace_back(logits[i], static_cast<int32_t>(i));
  const size_t keep = static_cast<size_t>(options_.top_k);
  if (keep > 0 && keep < candidates_.size()) {
    std::nth_element(candidates_.begin(), candidates_.begin() + options_.top_k - 1,
                     candidates_.end(), before);
    candidates_.resize(keep);
    std::sort(candidates_.begin(), candidates_.end(), before);
  }

  // Relative to the largest logit, so that no exponential overflows and at least one is 1.
  const double top = logits[static_cast<size_t>(best)];
  const auto weight = [&](const Candidate& c) {
    return std::exp((static_cast<double>(c.first) - top) / options_.temperature);
  };
  double total = 0.0;
  for (const Candidate& c : candidates_) total += weight(c);

  weights_.clear();
  if (options_.top_p < 1.0) {
    // A heap gives the likeliest one by one: of a large vocabulary only the few needed are sorted.
    const double wanted = options_.top_p * total;
    std::make_heap(candidates_.begin(), candidates_.end(), after);
    auto end = candidates_.end();
    double sum = 0.0;
    while (end != candidates_.begin() && sum < wanted) {
      std::pop_heap(candidates_.begin(), end, after);
      --end;
      weights_.push_back(weight(*end));
      sum += weights_.back();
    }
    std::reverse(end, candidates_.end());
    candidates_.erase(candidates_.begin(), end);
    total = sum;
  } else {
    for (const Candidate& c : candidates_) weights_.push_back(weight(c));
  }

  Random random({options_.seed, RandomStream::token, sequence, 0, step});
  const double draw = random.uniform_double() * total;
  double sum = 0.0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    sum += weights_[i];
    if (draw < sum) return candidates_[i].second;
  }
  return best;  // the draw fell into the rounding of the sum
}

}  // namespace sol
