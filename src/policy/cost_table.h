// What a decoded token costs in time on this machine, by action and length of the context: measured
// once, then looked up. Turns a time into shares (docs/design.md, "The latency target").
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "sol/action_space.h"

namespace sol {

// A step's time as a sum, milliseconds: dense at that length, less what a share of the channels
// saves, less what a share of the context saves at that length. Channels and context are different
// parts of the pass, so their savings add. q saves no time.
class CostTable {
 public:
  // One measured length of the context.
  struct Length {
    int keys = 0;
    double dense_ms = 0;
    double refresh_ms = 0;         // T tokens, densely
    std::vector<double> saved_ms;  // by shares()
  };

  // Throws Error for tables that make no sense: no length, shares that do not ascend or leave
  // (0, 1), another number of savings than of shares, times that are not positive.
  CostTable(int horizon, std::vector<float> shares, std::vector<Length> lengths,
            std::vector<double> channels_saved_ms);

  double step_ms(float kappa, float rho, int keys) const;
  // The same with an episode's refresh divided among its T tokens; there is none for dense ones.
  double token_ms(float kappa, float rho, int keys) const;

  // Dense, and the faster of dense and the lowest shares: a refresh may cost more than they save.
  double dense_ms(int keys) const { return token_ms(1.0f, 1.0f, keys); }
  double fastest_ms(int keys, const Budget& lowest) const;

  // The shares of least loss that take at most `ms` per token, η = 1: each axis is lowered in
  // proportion to what it saves, which minimises the sum of squares of what is dropped. `lowest`
  // bounds them; where even that takes longer, it or dense is the result, whichever is faster.
  Budget budget_for(double ms, int keys, const Budget& lowest) const;

  // The share of a dense step's time that leaves `ms` per token, the refresh being paid for, for a
  // policy that meets shares of the time (time_budget). No lower than `lowest` allows or than
  // `least`, and no higher than `most`; 1 where dense steps are fast enough, or not slower than the
  // fastest.
  double share_for(double ms, int keys, const Budget& lowest, double least = 0,
                   double most = 1) const;
  // The inverse: milliseconds per token at a share.
  double share_ms(double share, int keys) const;

  int horizon() const { return horizon_; }
  const std::vector<float>& shares() const { return shares_; }
  const std::vector<Length>& lengths() const { return lengths_; }

  // Whether any share takes less time than the dense step anywhere in the table.
  bool saves_time() const;

  Json to_json() const;
  // Throws Error naming document and field; also for what nothing can have measured: times that are
  // not positive or of weeks, savings that alone or together leave no time or make a step a hundred
  // times as slow, a longer context that takes less than half the time of a shorter one.
  static CostTable from_json(const Json& json, const std::string& where);

 private:
  double context_saved_ms(const Length& length, float kappa) const;
  double refresh_ms_per_token(int keys) const;
  template <typename Value>
  double at_length(int keys, const Value& value) const;

  int horizon_;
  std::vector<float> shares_;  // ascending, below 1
  std::vector<Length> lengths_;
  std::vector<double> channels_saved_ms_;  // by shares_
};

// Throws Error for a space with levels of less than 16 bits: they save no time, so a policy that
// is asked for times would have no reason to choose among them.
void require_times_fit(const ActionSpace& space);

}  // namespace sol
