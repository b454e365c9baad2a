#include "sol/episode.h"

#include <cmath>

#include "base/fail.h"
#include "policy/axis.h"
#include "policy/cost_table.h"
#include "sol/frozen_model.h"

namespace sol {

Episode::Episode(const ActionSpace& space, const Budget& budget, const EpisodeOptions& options)
    : space_(&space),
      budget_(options.costs ? budget : space.clamp_off_axes(budget)),
      options_(options) {
  if (options.costs) require_times_fit(space);
  for (const Axis axis : all_axes) {
    const float target = value(budget_, axis);
    if (!(target >= 0.0f && target <= 1.0f))
      fail("budget {} = {}: must lie in [0, 1]", name(axis), target);
  }
  if (options.horizon < 1) fail("horizon {}: must be at least 1 step", options.horizon);
  const auto possible = [](int count) { return count >= 0 && count <= most_forced_tokens; };
  if (!possible(options.sinks) || !possible(options.window))
    fail("{} sinks and a window of {}: both must lie in 0..{}", options.sinks, options.window,
         most_forced_tokens);
  executed_.reserve(static_cast<size_t>(options.horizon));
}

bool Episode::effective(int key_count) const {
  return key_count > options_.sinks + options_.window + 1;
}

Features Episode::features(int key_count) const {
  Features f{};
  f[0] = static_cast<float>(steps() + 1) / static_cast<float>(options_.horizon);
  f[1] = effective(key_count) ? 1.0f : 0.0f;
  f[2] = budget_.kappa;
  f[3] = budget_.rho;
  f[4] = budget_.eta;
  if (effective_steps() > 0 && timed()) {
    f[5] = f[6] = realised_time() - budget_.kappa;
  } else if (effective_steps() > 0) {
    const Budget mean = realised();
    f[5] = mean.kappa - budget_.kappa;
    f[6] = mean.rho - budget_.rho;
    f[7] = mean.eta - budget_.eta;
  }
  return f;
}

int Episode::record(int chosen, int key_count) {
  if (finished()) fail("episode: all {} steps are recorded; begin a new one", options_.horizon);
  // Looked up even where it is not executed: a wrong index must not depend on the prefix's length.
  const Action action = space_->action(chosen);
  if (!effective(key_count)) {
    executed_.push_back(space_->dense_index());
    return executed_.back();
  }
  average_.add(action);
  if (timed())
    time_.add(options_.costs->step_ms(action.kappa, action.rho, key_count),
              options_.costs->step_ms(1.0f, 1.0f, key_count));
  executed_.push_back(chosen);
  return chosen;
}

}  // namespace sol
