// A price of spending, which is not in the paper (docs/arithmetic.md, "A price of spending"): from
// a step's reward goes what its levels cost. How much that is depends on what was left of the
// budget per step before it, and moves from batch to batch until, of each such state, as much is
// spent as was left: shadow prices by dual ascent, as in budget pacing.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "sol/action_space.h"
#include "training/price_table.h"
#include "training/schedule.h"

namespace sol {

class SpendingPrices {
 public:
  // `rate`: how far a price moves in a batch, in deviations of the rewards within their groups,
  // where the whole way between an axis' levels too much is spent; more than 0. `space`, of the
  // schedules' actions, is copied.
  SpendingPrices(const ActionSpace& space, double rate);

  // Fills the charges of a loader batch, groups of `group_size` neighbours that share an input.
  // Before the first batch there is no price: it starts, everywhere on an axis, at what one step's
  // spending on it explains of that step's reward in this batch, by least squares over all axes,
  // but not below 0.
  void charge(std::span<Schedule> schedules, int group_size);
  // Then moves the prices by what these schedules spent.
  void adjust(std::span<const Schedule> schedules, int group_size);

  // Empty before the first batch.
  const std::optional<PriceTable>& table() const { return table_; }
  // Throws Error for prices that are negative, not finite or beyond reason.
  void restore(const PriceTable& table);

 private:
  // What an axis' levels are over the way from its lowest to its highest, in [0, 1].
  using Shares = std::array<double, 3>;
  struct Step {
    bool counts = false;
    bool last = false;  // of those that count: what is spent there is decided by then
    Shares spent{}, left{};
  };
  std::vector<Step> steps_of(const Schedule& schedule) const;
  PriceTable first_prices(std::span<const Schedule> schedules, int group_size) const;

  ActionSpace space_;
  double rate_;
  std::optional<PriceTable> table_;
};

}  // namespace sol
