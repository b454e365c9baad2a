// What the server counts, as Prometheus reads it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "sol/action_space.h"

namespace sol {

// Cumulative buckets, as in Prometheus' text format. Not safe for several threads by itself.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds);  // ascending
  void add(double value);
  // Appends the lines of a histogram of this name.
  void print(const std::string& name, const std::string& help, std::string& out) const;

 private:
  std::vector<double> bounds_;
  std::vector<uint64_t> counts_;  // by bound, the last without one
  double sum_ = 0;
  uint64_t count_ = 0;
};

class Metrics {
 public:
  Metrics();

  // Any thread may call any of these.
  // Whose actions are counted by name, beside the dense one: a client may think of any number of
  // others, which are counted together.
  void name_actions(const ActionSpace& space);
  void count_request(const std::string& endpoint, int status);
  void count_prompt(int tokens, int cached);
  void count_token(const Action& action, double seconds, bool first);
  void count_finished(const Budget& realised, int effective_steps);
  void count_times(double dense, double policy, double model);  // seconds, of the engine's thread
  struct Gauges {
    size_t queued = 0, running = 0;
    int64_t reserved_tokens = 0, prefix_tokens = 0, limit_tokens = 0;
    uint64_t cache_blocks = 0, cache_bytes = 0;
  };
  void set(const Gauges& gauges);
  Gauges gauges() const;

  std::string prometheus() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, uint64_t> requests_;
  uint64_t prompt_tokens_ = 0, cached_tokens_ = 0, generated_tokens_ = 0;
  Histogram first_token_, token_;
  std::set<std::string> named_actions_{to_string(Action{})};
  std::map<std::string, uint64_t> actions_;
  std::array<double, 3> realised_{};
  uint64_t realised_count_ = 0;
  double dense_seconds_ = 0, policy_seconds_ = 0, model_seconds_ = 0;
  Gauges gauges_;
};

}  // namespace sol
