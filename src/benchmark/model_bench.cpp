#include "benchmark/model_bench.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/fail.h"
#include "base/random.h"
#include "base/stopwatch.h"
#include "base/system_memory.h"
#include "base/threads.h"

namespace sol {
namespace {

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Keys and values as a prefill would leave them, but random: a prefill of 16384 tokens would take
// most of a minute, and decoding takes the same time whatever they are.
void fill_cache(const LlamaConfig& config, CpuSequence& sequence, int tokens, uint32_t seed) {
  constexpr int chunk = 256;
  const int64_t stride = static_cast<int64_t>(config.num_kv_heads) * config.head_dim;
  std::vector<float> numbers(static_cast<size_t>(chunk * stride) + 4099);
  Random random({.seed = seed});
  for (float& x : numbers) x = static_cast<float>(random.normal());
  for (int begin = 0; begin < tokens; begin += chunk) {
    const int count = std::min(chunk, tokens - begin);
    sequence.grow(count);
    parallel_for(config.num_layers, [&](int64_t layer) {
      const int l = static_cast<int>(layer);
      const float* keys = numbers.data() + (begin + 31 * l) % 2048;
      sequence.write(l, begin, count, keys, keys + 2048, stride);
      sequence.update_pages(l, begin, count);
    });
  }
}

// Multiplications and additions of a dense pass over `tokens` tokens; the head for the last one.
double prefill_operations(const LlamaConfig& c, double tokens) {
  const double d = c.hidden_size, q = static_cast<double>(c.num_heads) * c.head_dim;
  const double kv = static_cast<double>(c.num_kv_heads) * c.head_dim;
  const double weights = 2 * d * q + 2 * d * kv + 3 * d * c.intermediate_size;
  const double attention = 2 * q * (tokens + 1) / 2;  // causal: half of the scores, and of the sums
  return c.num_layers * tokens * 2 * (weights + attention) + 2 * d * c.vocab_size;
}

class Measurement {
 public:
  Measurement(std::span<const std::unique_ptr<CpuModel>> copies, const BenchOptions& options,
              const OnBenchRow& on_row)
      : copies_(copies), options_(options), on_row_(on_row), config_(copies[0]->config()) {}

  std::vector<BenchRow> run() {
    for (const int threads : options_.threads) {
      set_thread_count(threads);
      for (const int tokens : options_.prefills) measure_prefill(threads, tokens);
      for (const int context : options_.contexts) {
        for (const int batch : options_.batches) measure_decode(threads, context, batch);
      }
    }
    return std::move(rows_);
  }

 private:
  void finish(BenchRow row) {
    row.from_cache =
        static_cast<double>(copies_.size()) * row.dense_bytes < 1.5 * last_level_cache_bytes();
    rows_.push_back(std::move(row));
    on_row_(rows_);
  }

  std::vector<int32_t> tokens_of(int count) const {
    std::vector<int32_t> ids(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i)
      ids[i] = static_cast<int32_t>((int64_t{i} * 7919) % config_.vocab_size);
    return ids;
  }

  void measure_prefill(int threads, int tokens) {
    BenchRow row;
    row.kind = BenchKind::prefill;
    row.threads = threads;
    row.tokens = tokens;
    row.operations = prefill_operations(config_, tokens);
    row.dense_bytes = row.bytes = step_weights(copies_[0].get(), 1.0f);
    const std::vector<int32_t> ids = tokens_of(tokens);
    float log_prob = 0;
    std::optional<MatrixMultiplier> multiplier;
    if (options_.reader) multiplier.emplace(std::string(copies_[0]->product_type()));
    const bool with_ceiling = multiplier && multiplier->available();
    if (with_ceiling) multiplier->multiply();      // warms up
    for (int r = -1; r < options_.repeats; ++r) {  // the first one warms up
      CpuModel& model = *copies_[static_cast<size_t>(r + 1) % copies_.size()];
      const auto sequence = model.create(options_.sequence);
      ExtendItem item{.sequence = sequence.get(), .tokens = ids, .wanted = {}};
      item.wanted.push_back({ids.size() - 1, {.target = 0, .log_prob = &log_prob}});
      if (r >= 0 && with_ceiling) row.ceilings.push_back(multiplier->multiply());
      if (r >= 0) model.measure_stages(&row.stages);
      const Stopwatch watch;
      model.extend({&item, 1}, {});
      if (r >= 0) row.seconds.push_back(watch.seconds());
      model.measure_stages(nullptr);
    }
    divide(row.stages, options_.repeats);
    finish(std::move(row));
  }

  static double step_weights(const CpuModel* model, float rho) {
    return static_cast<double>(model->layer_weight_bytes(rho) + model->head_weight_bytes());
  }

  struct Copy {
    CpuModel* model;
    std::vector<std::unique_ptr<Sequence>> sequences;
  };

  // One token for every sequence of a copy.
  std::vector<DecodeItem> items_for(Copy& copy, const Action& action) const {
    std::vector<DecodeItem> items(copy.sequences.size());
    for (size_t b = 0; b < items.size(); ++b) {
      items[b].sequence = copy.sequences[b].get();
      items[b].token = static_cast<int32_t>((b * 131 + 17) % config_.vocab_size);
      items[b].action = action;
    }
    return items;
  }

  static void forget_token(Copy& copy) {
    for (auto& sequence : copy.sequences) copy.model->truncate(*sequence, sequence->length() - 1);
  }

  // One decode step of every sequence of a copy; the sequences are then as before.
  double step(Copy& copy, const Action& action, BenchRow* row) {
    std::vector<DecodeItem> items = items_for(copy, action);
    std::vector<float> log_probs(items.size());
    for (size_t b = 0; b < items.size(); ++b)
      items[b].out = {.target = 0, .log_prob = &log_probs[b]};
    copy.model->measure_stages(row ? &row->stages : nullptr);
    const Stopwatch watch;
    if (options_.policy) run_policy(items.size(), row);
    copy.model->decode(items);
    const double seconds = watch.seconds();
    copy.model->measure_stages(nullptr);
    forget_token(copy);
    return seconds;
  }

  void run_policy(size_t batch, BenchRow* row) {
    const PolicyNetworkShape& shape = options_.policy->shape();
    const Stopwatch watch;
    std::vector<PolicyNetwork::State> states(batch);
    std::vector<float> hidden(static_cast<size_t>(shape.hidden_size), 0.5f);
    std::vector<float> logits(batch * static_cast<size_t>(shape.actions));
    std::vector<PolicyNetwork::Input> inputs;
    for (size_t b = 0; b < batch; ++b) {
      inputs.push_back({&states[b], hidden.data(), hidden.data(), Features{}, -1,
                        logits.data() + b * static_cast<size_t>(shape.actions)});
    }
    options_.policy->step(inputs);
    if (row) row->policy += watch.seconds();
  }

  // Bytes that a decode step of the whole batch needs: weights once, keys and values per sequence.
  double step_bytes(Copy& copy, const Action& action) {
    std::vector<DecodeItem> items = items_for(copy, action);
    std::vector<StepCost> costs(items.size());
    for (size_t b = 0; b < items.size(); ++b) items[b].cost = &costs[b];
    copy.model->decode(items);
    double bytes = step_weights(copy.model, 1.0f);
    bytes -= static_cast<double>(copy.model->skipped_weight_bytes());
    for (const StepCost& cost : costs)
      bytes += static_cast<double>(cost.bytes - copy.model->layer_weight_bytes(action.rho));
    forget_token(copy);
    return bytes;
  }

  void measure_decode(int threads, int context, int batch) {
    std::vector<Copy> copies;
    for (const auto& model : copies_) {
      Copy copy{model.get(), {}};
      for (int b = 0; b < batch; ++b) {
        copy.sequences.push_back(model->create(options_.sequence));
        auto& sequence = dynamic_cast<CpuSequence&>(*copy.sequences.back());
        fill_cache(config_, sequence, context, static_cast<uint32_t>(b + 1));
      }
      copies.push_back(std::move(copy));
    }
    std::vector<Action> actions{Action{}};
    actions.insert(actions.end(), options_.actions.begin(), options_.actions.end());
    std::vector<BenchRow> rows;
    for (const Action& action : actions) {
      BenchRow row;
      row.kind = BenchKind::decode;
      row.threads = threads;
      row.batch = batch;
      row.context = context;
      row.tokens = options_.tokens;
      row.action = action;
      row.bytes = step_bytes(copies[0], action);
      row.dense_bytes = rows.empty() ? row.bytes : rows[0].bytes;
      rows.push_back(std::move(row));
    }
    size_t turn = 0;
    for (int r = -1; r < options_.repeats; ++r) {  // the first one warms up
      for (BenchRow& row : rows) {
        if (r >= 0 && options_.reader) row.ceilings.push_back(options_.reader->read());
        double seconds = 0;
        for (int t = 0; t < options_.tokens; ++t) {
          seconds += step(copies[turn++ % copies.size()], row.action, r >= 0 ? &row : nullptr);
        }
        if (r >= 0) row.seconds.push_back(seconds / options_.tokens);
      }
    }
    const double steps = static_cast<double>(options_.repeats) * options_.tokens;
    const std::vector<double> dense = rows[0].seconds;
    for (BenchRow& row : rows) {
      divide(row.stages, steps);
      row.policy /= steps;
      std::vector<double> ratios;
      for (size_t r = 0; r < dense.size(); ++r) ratios.push_back(row.seconds[r] / dense[r]);
      row.time_to_dense = median_of(ratios);
      finish(std::move(row));
    }
  }

  static void divide(StageTimes& stages, double by) {
    for (double StageTimes::*stage :
         {&StageTimes::projections, &StageTimes::page_scoring, &StageTimes::attention,
          &StageTimes::mlp, &StageTimes::head}) {
      stages.*stage /= by;
    }
  }

  std::span<const std::unique_ptr<CpuModel>> copies_;
  const BenchOptions& options_;
  const OnBenchRow& on_row_;
  const LlamaConfig& config_;
  std::vector<BenchRow> rows_;
};

}  // namespace

double BenchRow::median() const {
  return median_of(seconds);
}

double BenchRow::spread() const {
  if (seconds.empty()) return 0;
  const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  return (*most - *least) / median();
}

namespace {

// Each copy decodes with sequences of its own.
void require_cache_memory(std::span<const std::unique_ptr<CpuModel>> copies,
                          const BenchOptions& options) {
  if (options.contexts.empty() || options.batches.empty()) return;
  const auto sequence = copies[0]->create(options.sequence);
  const CacheLayout& layout = dynamic_cast<const CpuSequence&>(*sequence).layout();
  const int context = *std::ranges::max_element(options.contexts);
  const int batch = *std::ranges::max_element(options.batches);
  const int blocks = (context + layout.tokens) / layout.tokens;  // of one token more
  const double bytes =
      static_cast<double>(layout.block_bytes) * blocks * batch * static_cast<double>(copies.size());
  const auto available = static_cast<double>(available_memory());
  if (bytes <= available) return;
  const bool several = copies.size() > 1;
  fail(
      "{} sequences of {} tokens need {:.1f} GB for keys and values{}, {:.1f} are free; choose a "
      "smaller --batch or --context{}",
      batch, context, bytes / 1e9,
      several ? fmt::format(" in {} copies of the model", copies.size()) : "", available / 1e9,
      several ? ", or --cached, which needs one copy" : "");
}

}  // namespace

double BenchRow::tokens_per_second() const {
  return (kind == BenchKind::prefill ? tokens : batch) / median();
}

double BenchRow::share_of_ceiling() const {
  std::vector<double> shares;
  const double work = kind == BenchKind::prefill ? operations : bytes;
  for (size_t r = 0; r < ceilings.size(); ++r) shares.push_back(work / seconds[r] / ceilings[r]);
  return median_of(shares);
}

std::vector<BenchRow> measure_model(std::span<const std::unique_ptr<CpuModel>> copies,
                                    const BenchOptions& options, const OnBenchRow& on_row) {
  if (copies.empty()) fail("measure_model: no model given");
  check_lengths(options, copies[0]->config().max_position_embeddings);
  require_cache_memory(copies, options);
  const int before = thread_count();
  std::vector<BenchRow> rows = Measurement(copies, options, on_row).run();
  set_thread_count(before);
  return rows;
}

void check_lengths(const BenchOptions& options, int positions) {
  for (const int tokens : options.prefills) {
    if (tokens > positions)
      fail("--prefill: {} tokens exceed the model's {} positions", tokens, positions);
  }
  for (const int context : options.contexts) {
    if (context + 1 > positions) {
      fail("--context: {} tokens leave no room for another among the model's {} positions", context,
           positions);
    }
  }
}

int copies_to_exceed_cache(uint64_t weight_bytes) {
  const uint64_t wanted = 2 * last_level_cache_bytes();
  if (weight_bytes == 0) return 1;
  return static_cast<int>(std::clamp<uint64_t>((wanted + weight_bytes - 1) / weight_bytes, 1, 256));
}

std::unique_ptr<PolicyNetwork> make_random_policy(int hidden_size) {
  PolicyNetworkShape shape;
  shape.hidden_size = hidden_size;
  shape.actions = 1560;
  Parameters parameters;
  Random random({.seed = 2});
  for (const auto& [name, dimensions] : policy_parameter_shapes(shape)) {
    Parameter& parameter = parameters[name];
    parameter.shape = dimensions;
    int64_t count = 1;
    for (const int64_t n : dimensions) count *= n;
    parameter.values.resize(static_cast<size_t>(count));
    for (float& x : parameter.values) x = static_cast<float>(0.02 * random.normal());
  }
  return std::make_unique<PolicyNetwork>(shape, std::move(parameters));
}

}  // namespace sol
