#include "serving/metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace sol {
namespace {

// From a token of a tiny model to a long prompt of a large one, in seconds.
std::vector<double> time_bounds() {
  std::vector<double> bounds;
  for (double decade = 1e-4; decade < 100.0; decade *= 10)
    for (const double step : {1.0, 2.5, 5.0}) bounds.push_back(decade * step);
  return bounds;
}

void header(const char* name, const char* type, const char* help, std::string& out) {
  out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

template <typename Value>
void single(const char* name, const char* type, const char* help, Value value, std::string& out) {
  header(name, type, help, out);
  out += fmt::format("{} {}\n", name, value);
}

}  // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

void Histogram::add(double value) {
  const auto bound = std::ranges::lower_bound(bounds_, value);
  ++counts_[static_cast<size_t>(bound - bounds_.begin())];
  sum_ += value;
  ++count_;
}

void Histogram::print(const std::string& name, const std::string& help, std::string& out) const {
  header(name.c_str(), "histogram", help.c_str(), out);
  uint64_t below = 0;
  for (size_t i = 0; i < bounds_.size(); ++i) {
    below += counts_[i];
    out += fmt::format("{}_bucket{{le=\"{:g}\"}} {}\n", name, bounds_[i], below);
  }
  out += fmt::format("{}_bucket{{le=\"+Inf\"}} {}\n{}_sum {}\n{}_count {}\n", name, count_, name,
                     sum_, name, count_);
}

Metrics::Metrics() : first_token_(time_bounds()), token_(time_bounds()) {}

void Metrics::count_request(const std::string& endpoint, int status) {
  const std::lock_guard lock(mutex_);
  ++requests_[{endpoint, status}];
}

void Metrics::count_prompt(int tokens, int cached) {
  const std::lock_guard lock(mutex_);
  prompt_tokens_ += static_cast<uint64_t>(tokens);
  cached_tokens_ += static_cast<uint64_t>(cached);
}

void Metrics::name_actions(const ActionSpace& space) {
  const std::lock_guard lock(mutex_);
  for (int i = 0; i < space.size(); ++i) named_actions_.insert(to_string(space.action(i)));
}

void Metrics::count_token(const Action& action, double seconds, bool first) {
  const std::lock_guard lock(mutex_);
  ++generated_tokens_;
  const std::string name = to_string(action);
  ++actions_[named_actions_.contains(name) ? name : "other"];
  (first ? first_token_ : token_).add(seconds);
}

void Metrics::count_finished(const Budget& realised, int effective_steps) {
  if (effective_steps == 0) return;
  const std::lock_guard lock(mutex_);
  realised_[0] += static_cast<double>(realised.kappa);
  realised_[1] += static_cast<double>(realised.rho);
  realised_[2] += static_cast<double>(realised.eta);
  ++realised_count_;
}

void Metrics::count_times(double dense, double policy, double model) {
  const std::lock_guard lock(mutex_);
  dense_seconds_ += dense;
  policy_seconds_ += policy;
  model_seconds_ += model;
}

void Metrics::set(const Gauges& gauges) {
  const std::lock_guard lock(mutex_);
  gauges_ = gauges;
}

Metrics::Gauges Metrics::gauges() const {
  const std::lock_guard lock(mutex_);
  return gauges_;
}

std::string Metrics::prometheus() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  header("sol_requests_total", "counter", "Requests answered, by path and status.", out);
  for (const auto& [key, count] : requests_)
    out += fmt::format("sol_requests_total{{path=\"{}\",status=\"{}\"}} {}\n", key.first,
                       key.second, count);
  single("sol_prompt_tokens_total", "counter", "Prompt tokens of sequences begun.", prompt_tokens_,
         out);
  single("sol_prompt_tokens_cached_total", "counter",
         "Of these, how many an earlier request had computed.", cached_tokens_, out);
  single("sol_generated_tokens_total", "counter", "Tokens decoded.", generated_tokens_, out);
  first_token_.print("sol_time_to_first_token_seconds", "From arrival to the first token.", out);
  token_.print("sol_token_seconds", "Between two tokens of a sequence.", out);
  single("sol_queue_sequences", "gauge", "Sequences waiting.", gauges_.queued, out);
  single("sol_running_sequences", "gauge", "Sequences being computed.", gauges_.running, out);
  single("sol_cache_reserved_tokens", "gauge", "Tokens that running sequences may come to hold.",
         gauges_.reserved_tokens, out);
  single("sol_cache_prefix_tokens", "gauge", "Tokens kept for prompts that begin alike.",
         gauges_.prefix_tokens, out);
  single("sol_cache_limit_tokens", "gauge", "Tokens that both may be together.",
         gauges_.limit_tokens, out);
  single("sol_cache_blocks", "gauge", "Cache blocks in use.", gauges_.cache_blocks, out);
  single("sol_cache_bytes", "gauge", "Their bytes.", gauges_.cache_bytes, out);
  header("sol_realised_budget", "summary", "Realised averages of finished sequences, by axis.",
         out);
  const std::array<const char*, 3> axes{"keep", "prune", "bits"};
  for (size_t i = 0; i < axes.size(); ++i) {
    const double unit = i == 2 ? 16.0 : 1.0;
    out += fmt::format("sol_realised_budget_sum{{axis=\"{}\"}} {}\n", axes[i], unit * realised_[i]);
    out += fmt::format("sol_realised_budget_count{{axis=\"{}\"}} {}\n", axes[i], realised_count_);
  }
  header("sol_actions_total", "counter", "Decode steps, by action.", out);
  for (const auto& [action, count] : actions_)
    out += fmt::format("sol_actions_total{{action=\"{}\"}} {}\n", action, count);
  single("sol_dense_seconds_total", "counter", "Time in prompts and refreshes.", dense_seconds_,
         out);
  single("sol_policy_seconds_total", "counter", "Time in choosing actions.", policy_seconds_, out);
  single("sol_model_seconds_total", "counter", "Time in decode steps.", model_seconds_, out);
  return out;
}

}  // namespace sol
