// KV pollution: what a few compressed steps do to the dense steps after them (paper, appendix, "KV
// Pollution").
#pragma once

#include <vector>

#include "evaluation/perplexity.h"
#include "evaluation/sweep.h"

namespace sol {

struct PollutionOptions {
  int windows = 64;
  int prefix = 512;   // dense tokens before
  int corrupted = 4;  // steps under the one action
  int tail = 64;      // dense steps after
  SequenceOptions sequence{.page_size = 8};
  // The actions, one axis at a time.
  std::vector<float> kappa{0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f};
  std::vector<float> rho{0.4f, 0.5f, 0.6f, 0.7f, 0.8f};
  std::vector<int> bits{5, 6, 7, 8, 9, 10, 11, 12, 13};
  uint64_t seed = 0;
  int batch = 256;

  int block_length() const { return prefix + corrupted + tail + 1; }
};

// Changes of perplexity against the dense run of the same tokens, in percent: (exp(Δnll) - 1) *
// 100.
struct PollutionSetting {
  Axis axis = Axis::kappa;
  Action action;
  double direct = 0;    // over all corrupted steps
  double tail = 0;      // over all steps of the tail
  double peak_p90 = 0;  // 90th percentile over windows of the largest change in the tail
  std::vector<double> median, low, high;  // [tail]: over windows; low and high: 10 % and 90 %
};

struct Pollution {
  std::vector<int64_t> windows;  // blocks of the data
  double dense_perplexity = 0;   // of the tail
  std::vector<PollutionSetting> settings;
};

// Windows are drawn without replacement from `blocks`, by the seed. Throws Error when there are
// fewer blocks than windows, for their length, and as BlockEvaluator::run.
Pollution run_pollution(FrozenModel& model, const BlockDataset& blocks,
                        const PollutionOptions& options, const SweepProgress& progress = {},
                        std::stop_token stop = {});

}  // namespace sol
