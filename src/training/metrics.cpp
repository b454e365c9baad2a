#include "training/metrics.h"

#include <limits>
#include <string_view>
#include <type_traits>

#include "base/fail.h"
#include "policy/axis.h"

namespace sol {
namespace {

// Every field by its name in the log, in the log's order.
template <typename Metrics, typename Visit>
void visit_fields(Metrics& m, const Visit& visit) {
  visit("collection", m.collection);
  visit("update", m.update);
  visit("updates", m.updates);
  visit("position", m.position);
  visit("epoch", m.epoch);
  visit("steps", m.steps);
  visit("reward", m.reward);
  visit("log_likelihood", m.log_likelihood);
  visit("perplexity", m.perplexity);
  visit("requested", m.requested);
  visit("realised", m.realised);
  visit("gap", m.gap);
  visit("requested_time", m.requested_time);
  visit("realised_time", m.realised_time);
  visit("time_gap", m.time_gap);
  visit("budget_range_share", m.budget_range_share);
  visit("penalty", m.penalty);
  visit("advantage_deviation", m.advantage_deviation);
  visit("loss", m.loss);
  visit("entropy", m.entropy);
  visit("entropy_weight", m.entropy_weight);
  visit("clip_fraction", m.clip_fraction);
  visit("distil_share", m.distil_share);
  visit("distil_loss", m.distil_loss);
  visit("gradient_norm", m.gradient_norm);
  visit("learning_rate", m.learning_rate);
  visit("network_disagreement", m.network_disagreement);
  visit("seconds_prefill", m.seconds_prefill);
  visit("seconds_rollout", m.seconds_rollout);
  visit("seconds_policy", m.seconds_policy);
  visit("seconds_update", m.seconds_update);
  visit("seconds", m.seconds);
  visit("prefill_tokens_per_second", m.prefill_tokens_per_second);
  visit("decode_tokens_per_second", m.decode_tokens_per_second);
  visit("seconds_left", m.seconds_left);
  visit("prices", m.prices);
  visit("actions", m.actions);
}

using ActionCounts = std::array<std::vector<LevelCount>, 3>;

// {"kappa": [[level, count], ...], "rho": ..., "bits": ...}
Json to_json(const ActionCounts& actions) {
  Json json = Json::object();
  for (size_t axis = 0; axis < actions.size(); ++axis) {
    Json& levels = json[action_axis_names[axis]] = Json::array();
    for (const LevelCount& level : actions[axis])
      levels.push_back(Json::array({level.level, level.count}));
  }
  return json;
}

void read(const Json& json, const char* field, ActionCounts& out, const std::string& where) {
  if (!json.contains(field)) return;
  const Json& actions = json[field];
  for (size_t axis = 0; axis < out.size(); ++axis) {
    const char* name = action_axis_names[axis];
    if (!actions.is_object() || !actions.contains(name) || !actions[name].is_array())
      fail("{}: field \"{}\" must have a list \"{}\"", where, field, name);
    for (const Json& pair : actions[name]) {
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number() ||
          !pair[1].is_number_integer() || pair[1].get<int64_t>() < 0)
        fail("{}: field \"{}\" must list pairs of a level and a count", where, field);
      out[axis].push_back({pair[0].get<double>(), pair[1].get<int64_t>()});
    }
  }
}

void read(const Json& json, const char* field, std::array<double, 3>& out,
          const std::string& where) {
  const auto found = json.find(field);
  if (found == json.end() || !found->is_array() || found->size() != out.size())
    fail("{}: field \"{}\" must be a list of {} numbers", where, field, out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (!(*found)[i].is_number()) fail("{}: field \"{}\" holds no numbers", where, field);
    out[i] = (*found)[i].get<double>();
  }
}

// {"kappa": [price, ...], "rho": ..., "eta": ...}
Json to_json(const PriceTable& prices) {
  Json json = Json::object();
  for (const Axis axis : all_axes)
    json[std::string(name(axis))] = prices[static_cast<size_t>(axis)];
  return json;
}

void read(const Json& json, const char* field, std::optional<PriceTable>& out,
          const std::string& where) {
  if (!json.contains(field)) return;
  out.emplace();
  const Json& axes = json[field];
  for (const Axis axis : all_axes) {
    const std::string key(name(axis));
    const auto wrong = [&] {
      fail("{}: field \"{}\" must have a list \"{}\" of {} prices", where, field, key,
           price_places);
    };
    if (!axes.is_object() || !axes.contains(key)) wrong();
    const Json& list = axes[key];
    if (!list.is_array() || list.size() != price_places) wrong();
    for (size_t k = 0; k < list.size(); ++k) {
      if (!list[k].is_number() && !list[k].is_null()) wrong();
      (*out)[static_cast<size_t>(axis)][k] =
          list[k].is_null() ? std::numeric_limits<double>::quiet_NaN() : list[k].get<double>();
    }
  }
}

void refuse_negative(const char* field, double value, const std::string& where) {
  if (value < 0) fail("{}: field \"{}\" is {}; it cannot be negative", where, field, value);
}

// What is left is an estimate.
bool is_magnitude(std::string_view field) {
  return field == "perplexity" || (field.starts_with("seconds") && field != "seconds_left");
}

// JSON has neither NaN nor infinity: both are written as null.
void read(const Json& json, const char* field, double& out, const std::string& where) {
  const auto found = json.find(field);
  const bool null = found != json.end() && found->is_null();
  out = null ? std::numeric_limits<double>::quiet_NaN() : json_get<double>(json, field, where);
  if (is_magnitude(field)) refuse_negative(field, out, where);
}

void read(const Json& json, const char* field, std::optional<double>& out,
          const std::string& where) {
  if (json.contains(field)) read(json, field, out.emplace(), where);
}

void read(const Json& json, const char* field, int64_t& out, const std::string& where) {
  out = json_get<int64_t>(json, field, where);
  refuse_negative(field, static_cast<double>(out), where);
}

template <typename T>
void write(Json& json, const char* field, const T& value) {
  json[field] = value;
}

void write(Json& json, const char* field, const ActionCounts& value) {
  json[field] = to_json(value);
}

void write(Json& json, const char* field, const std::optional<double>& value) {
  if (value) json[field] = *value;
}

void write(Json& json, const char* field, const std::optional<PriceTable>& value) {
  if (value) json[field] = to_json(*value);
}

}  // namespace

Json to_json(const CollectionMetrics& metrics) {
  Json json = Json::object();
  visit_fields(metrics, [&](const char* field, const auto& value) { write(json, field, value); });
  return json;
}

CollectionMetrics metrics_from_json(const Json& json, const std::string& where) {
  CollectionMetrics metrics;
  visit_fields(metrics, [&](const char* field, auto& value) {
    if (std::string_view(field) == "learning_rate" && !json.contains(field)) return;
    read(json, field, value, where);
  });
  return metrics;
}

}  // namespace sol
