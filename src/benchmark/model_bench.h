// Prefill and decode rates of one model, under actions, at depths of context and batch sizes.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "benchmark/ceilings.h"
#include "engine/cpu_model.h"
#include "policy/network.h"

namespace sol {

enum class BenchKind { prefill, decode };

struct BenchRow {
  BenchKind kind = BenchKind::decode;
  int threads = 1, batch = 1;
  int context = 0;  // tokens in the cache before the measured ones
  int tokens = 0;   // prefilled, or decoded per repetition and sequence
  Action action;
  bool from_cache = false;      // the working set fits the last-level cache: no figure of memory
  std::vector<double> seconds;  // per repetition: of the prefill, or of one decode step
  // What the machine did at the same time, per repetition: bytes read per second before a decode
  // repetition, operations per second of a large product before a prefill. Empty when not measured.
  std::vector<double> ceilings;
  double time_to_dense = 1;  // median over repetitions of the ratio to the dense row's time
  double bytes = 0;          // of weights, keys, values and page extrema, per decode step
  double dense_bytes = 0;
  double operations = 0;  // of a prefill's products and attention
  StageTimes stages;      // seconds per prefill or decode step, mean
  double policy = 0;      // seconds of the policy network per decode step, mean; part of `seconds`

  double median() const;
  double spread() const;  // (largest - smallest) / median
  double tokens_per_second() const;
  // Median over repetitions of the rate against the ceiling of the same repetition; 0 without.
  double share_of_ceiling() const;
};

struct BenchOptions {
  std::vector<int> threads;  // each of them measured
  std::vector<int> prefills{128, 512, 1024};
  std::vector<int> contexts{0, 1024, 4096};
  std::vector<int> batches{1};
  std::vector<Action> actions;  // beside dense
  SequenceOptions sequence;
  int tokens = 8;  // decode steps per repetition
  int repeats = 5;
  const PolicyNetwork* policy = nullptr;  // its step runs before every decode step when given
  // Measures the ceilings between the repetitions when given: the machine's speed changes while one
  // measures, and reading this much leaves nothing in its caches.
  MemoryReader* reader = nullptr;
};

using OnBenchRow = std::function<void(std::span<const BenchRow>)>;

// Measures copies[0]; further copies of the same model take turns with it, so that a small model's
// weights come from memory as a large one's do. Calls `on_row` with all rows so far whenever one is
// done. Actions of one context take turns within each repetition, so that their ratios do not see
// the machine's mood.
// Throws Error when a context exceeds the model's positions.
std::vector<BenchRow> measure_model(std::span<const std::unique_ptr<CpuModel>> copies,
                                    const BenchOptions& options, const OnBenchRow& on_row);

// Throws Error when a prefill or context does not fit a model of so many positions.
void check_lengths(const BenchOptions& options, int positions);

// How many copies of a model keep its weights out of the last-level cache (1 for large models).
int copies_to_exceed_cache(uint64_t weight_bytes);

// A policy network of the paper's full-space size (5.15 M parameters at a width of 512, 1560
// actions) with random parameters.
std::unique_ptr<PolicyNetwork> make_random_policy(int hidden_size);

}  // namespace sol
