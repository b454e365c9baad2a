#include "policy/cost_measurement.h"

#include <algorithm>
#include <limits>

#include "base/fail.h"
#include "base/random.h"
#include "base/stopwatch.h"

namespace sol {
namespace {

const std::vector<float> measured_shares{0.1f, 0.4f, 0.7f, 0.95f};
constexpr double never = std::numeric_limits<double>::infinity();

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// One sequence of random tokens at a fixed length, on which steps are timed.
class TimedSequence {
 public:
  TimedSequence(FrozenModel& model, const CostMeasurement& options)
      : model_(model),
        options_(options),
        sequence_(model.create(options.sequence)),
        random_({0, RandomStream::test, 0, 0, 0}),
        hidden_(static_cast<size_t>(model.config().hidden_size)),
        logits_(static_cast<size_t>(model.config().vocab_size)) {}

  // Leaves room for the step's own key.
  void grow_to(int keys, std::stop_token stop) { extend(keys - 1 - sequence_->length(), stop); }

  double step_ms(const Action& action) {
    DecodeItem item{sequence_.get(),
                    token(),
                    action,
                    {.hidden = hidden_.data(), .logits = logits_.data()},
                    nullptr};
    const Stopwatch stopwatch;
    model_.decode({&item, 1});
    const double ms = stopwatch.seconds() * 1e3;
    model_.truncate(*sequence_, sequence_->length() - 1);
    return ms;
  }

  double refresh_ms(std::stop_token stop) {
    const int tokens = std::min(options_.horizon, sequence_->length());
    model_.truncate(*sequence_, sequence_->length() - tokens);
    return extend(tokens, stop);
  }

 private:
  int32_t token() {
    return static_cast<int32_t>(random_.below(static_cast<uint32_t>(model_.config().vocab_size)));
  }

  double extend(int count, std::stop_token stop) {
    std::vector<int32_t> tokens(static_cast<size_t>(count));
    for (int32_t& t : tokens) t = token();
    ExtendItem item{sequence_.get(), tokens, {}};
    const Stopwatch stopwatch;
    if (count > 0) model_.extend({&item, 1}, stop);
    return stopwatch.seconds() * 1e3;
  }

  FrozenModel& model_;
  const CostMeasurement& options_;
  std::unique_ptr<Sequence> sequence_;
  Random random_;
  std::vector<float> hidden_, logits_;
};

}  // namespace

void check_measurement(const CostMeasurement& options, int positions) {
  if (options.lengths.empty() || options.repetitions < 1 || options.horizon < 1)
    fail("measuring costs needs a length, a repetition and a horizon");
  if (options.horizon > positions)
    fail("episodes of {} steps cannot be measured: the model has only {} positions",
         options.horizon, positions);
  int last = 0;
  for (const int keys : options.lengths) {
    if (keys < 2 || keys > positions)
      fail("a context of {} keys cannot be measured: the model holds 2..{}", keys, positions);
    if (keys <= last) fail("lengths of the context must ascend, but {} follows {}", keys, last);
    last = keys;
  }
}

MeasuredCosts measure_costs(FrozenModel& model, const CostMeasurement& options,
                            const std::function<void(double)>& progress, std::stop_token stop) {
  check_measurement(options, model.config().max_position_embeddings);
  TimedSequence sequence(model, options);
  const size_t shares = measured_shares.size();
  std::vector<CostTable::Length> lengths;
  std::vector<std::vector<double>> channels(shares);  // saved, by length
  std::vector<double> busyness;
  for (size_t n = 0; n < options.lengths.size(); ++n) {
    sequence.grow_to(options.lengths[n], stop);
    std::vector<double> dense;
    double refresh = never;
    std::vector<double> context(shares, never), mlp(shares, never);
    sequence.step_ms({});  // the first touches memory that later ones find ready
    for (int repetition = 0; repetition < options.repetitions; ++repetition) {
      if (stop.stop_requested()) throw Cancelled();
      // In turns: the machine's speed drifts.
      dense.push_back(sequence.step_ms({}));
      for (size_t i = 0; i < shares; ++i) {
        context[i] = std::min(context[i], sequence.step_ms({measured_shares[i], 1.0f, 16}));
        mlp[i] = std::min(mlp[i], sequence.step_ms({1.0f, measured_shares[i], 16}));
      }
      refresh = std::min(refresh, sequence.refresh_ms(stop));
      if (progress)
        progress((static_cast<double>(n) + (repetition + 1.0) / options.repetitions) /
                 static_cast<double>(options.lengths.size()));
    }
    const double whole = std::ranges::min(dense);
    busyness.push_back(median(dense) / whole);
    CostTable::Length length{options.lengths[n], whole, refresh, {}};
    for (size_t i = 0; i < shares; ++i) {
      length.saved_ms.push_back(whole - context[i]);
      channels[i].push_back(whole - mlp[i]);
    }
    lengths.push_back(std::move(length));
  }
  for (size_t n = lengths.size() - 1; n-- > 0;) {
    lengths[n].dense_ms = std::min(lengths[n].dense_ms, lengths[n + 1].dense_ms);
    lengths[n].refresh_ms = std::min(lengths[n].refresh_ms, lengths[n + 1].refresh_ms);
  }
  std::vector<double> channels_saved;
  for (auto& saved : channels) channels_saved.push_back(median(saved));
  return {
      CostTable(options.horizon, measured_shares, std::move(lengths), std::move(channels_saved)),
      median(busyness)};
}

}  // namespace sol
