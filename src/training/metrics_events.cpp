#include "training/metrics_events.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <map>
#include <string>
#include <string_view>

namespace sol {
namespace {

// Tag by field of the log. A field that is not listed here goes under its own name.
const std::map<std::string, std::string, std::less<>>& tags() {
  static const std::map<std::string, std::string, std::less<>> all{
      {"update", "progress/update"},
      {"updates", "progress/updates"},
      {"position", "progress/position"},
      {"epoch", "progress/epoch"},
      {"steps", "progress/steps"},
      {"seconds_left", "progress/seconds_left"},
      {"reward", "reward/mean"},
      {"log_likelihood", "reward/log_likelihood"},
      {"penalty", "reward/penalty"},
      {"advantage_deviation", "reward/advantage_deviation"},
      {"requested", "budget_requested"},
      {"realised", "budget_realised"},
      {"gap", "budget_gap"},
      {"requested_time", "budget_requested/time"},
      {"realised_time", "budget_realised/time"},
      {"time_gap", "budget_gap/time"},
      {"budget_range_share", "budget_range_share"},
      {"loss", "policy/loss"},
      {"entropy", "policy/entropy"},
      {"entropy_weight", "policy/entropy_weight"},
      {"clip_fraction", "policy/clip_fraction"},
      {"distil_share", "policy/distil_share"},
      {"distil_loss", "policy/distil_loss"},
      {"gradient_norm", "policy/gradient_norm"},
      {"learning_rate", "policy/learning_rate"},
      {"network_disagreement", "policy/network_disagreement"},
      {"seconds_prefill", "time/prefill"},
      {"seconds_rollout", "time/rollout"},
      {"seconds_policy", "time/policy"},
      {"seconds_update", "time/update"},
      {"seconds", "time/collection"},
      {"prefill_tokens_per_second", "throughput/prefill_tokens_per_second"},
      {"decode_tokens_per_second", "throughput/decode_tokens_per_second"},
  };
  return all;
}

constexpr std::array<std::string_view, 3> axis_names{"kappa", "rho", "eta"};

}  // namespace

std::vector<EventScalar> metric_scalars(const CollectionMetrics& metrics) {
  std::vector<EventScalar> scalars;
  const Json json = to_json(metrics);
  const auto number = [](const Json& value) {
    return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
  };
  for (const auto& [field, value] : json.items()) {
    if (field == "prices") {
      for (const auto& [axis, prices] : value.items())
        for (size_t k = 0; k < prices.size(); ++k)
          scalars.push_back(
              {fmt::format("price_{}/{:.1f}", axis, static_cast<double>(k) / (price_places - 1)),
               number(prices[k])});
    }
    if (field == "collection" || value.is_object()) continue;
    const auto found = tags().find(field);
    const std::string tag = found == tags().end() ? field : found->second;
    if (!value.is_array()) scalars.push_back({tag, number(value)});
    for (size_t i = 0; value.is_array() && i < value.size(); ++i)
      scalars.push_back(
          {tag + "/" + (i < axis_names.size() ? std::string(axis_names[i]) : std::to_string(i)),
           number(value[i])});
  }
  return scalars;
}

std::vector<EventHistogram> metric_histograms(const CollectionMetrics& metrics) {
  std::vector<EventHistogram> histograms;
  for (size_t axis = 0; axis < metrics.actions.size(); ++axis) {
    EventHistogram histogram{"actions/" + std::string(action_axis_names[axis]), {}, {}};
    for (const LevelCount& level : metrics.actions[axis]) {
      histogram.values.push_back(level.level);
      histogram.counts.push_back(static_cast<double>(level.count));
    }
    histograms.push_back(std::move(histogram));
  }
  return histograms;
}

}  // namespace sol
