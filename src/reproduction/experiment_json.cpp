#include "reproduction/experiment_json.h"

#include "base/fail.h"
#include "policy/action_json.h"

namespace sol {
namespace {

const Json& member(const Json& json, const char* field, const std::string& where) {
  if (!json.is_object() || !json.contains(field)) fail("{}: \"{}\" is missing", where, field);
  return json[field];
}

template <typename T>
std::vector<T> numbers(const Json& json, const char* field, const std::string& where) {
  const Json& list = member(json, field, where);
  try {
    return list.get<std::vector<T>>();
  } catch (const Json::exception&) {
    fail("{}: \"{}\" must be a list of {}", where, field,
         std::is_same_v<T, std::string> ? "strings" : "numbers");
  }
}

template <typename T, typename Read>
std::vector<T> items(const Json& json, const char* field, const std::string& where,
                     const Read& read) {
  const Json& list = member(json, field, where);
  if (!list.is_array()) fail("{}: \"{}\" must be a list", where, field);
  std::vector<T> result;
  for (const Json& item : list) result.push_back(read(item));
  return result;
}

Budget budget(const Json& json, const char* field, const std::string& where) {
  return budget_from_json(member(json, field, where), where);
}

Json outcome_to_json(const Outcome& outcome) {
  return {{"asked", budget_to_json(outcome.asked)},
          {"realised", budget_to_json(outcome.realised)},
          {"net_keep", outcome.net_keep},
          {"perplexity", outcome.perplexity},
          {"attended", outcome.attended},
          {"seconds_per_token", outcome.seconds_per_token},
          {"steps", outcome.steps},
          {"effective_steps", outcome.effective_steps},
          {"nll", outcome.nll}};
}

Outcome outcome_from_json(const Json& json, const std::string& where) {
  Outcome outcome;
  outcome.asked = budget(json, "asked", where);
  outcome.realised = budget(json, "realised", where);
  outcome.net_keep = json_get<double>(json, "net_keep", where);
  outcome.perplexity = json_get<double>(json, "perplexity", where);
  outcome.attended = json_get<double>(json, "attended", where);
  outcome.seconds_per_token = json_get<double>(json, "seconds_per_token", where);
  outcome.steps = json_get<int64_t>(json, "steps", where);
  outcome.effective_steps = json_get<int64_t>(json, "effective_steps", where);
  outcome.nll = numbers<double>(json, "nll", where);
  return outcome;
}

Json outcomes_to_json(const std::vector<Outcome>& outcomes) {
  Json list = Json::array();
  for (const Outcome& outcome : outcomes) list.push_back(outcome_to_json(outcome));
  return list;
}

std::vector<Outcome> outcomes(const Json& json, const char* field, const std::string& where) {
  return items<Outcome>(json, field, where,
                        [&](const Json& item) { return outcome_from_json(item, where); });
}

Json schedule_to_json(const ScheduleOutcome& schedule) {
  return Json::array({schedule.net_keep, schedule.perplexity});
}

ScheduleOutcome schedule_from_json(const Json& json, const std::string& where) {
  if (!json.is_array() || json.size() != 2 || !json[0].is_number() || !json[1].is_number())
    fail("{}: a schedule must be [net keep-rate, perplexity]", where);
  return {json[0].get<double>(), json[1].get<double>()};
}

Json groups_to_json(const std::vector<StepGroup>& groups) {
  Json list = Json::array();
  for (const StepGroup& group : groups)
    list.push_back({{"label", group.label},
                    {"steps", group.steps},
                    {"spent", budget_to_json(group.spent)},
                    {"net_keep", group.net_keep},
                    {"surprisal", group.surprisal},
                    {"increase", group.increase}});
  return list;
}

std::vector<StepGroup> groups(const Json& json, const char* field, const std::string& where) {
  return items<StepGroup>(json, field, where, [&](const Json& item) {
    return StepGroup{json_get<std::string>(item, "label", where),
                     json_get<int64_t>(item, "steps", where),
                     budget(item, "spent", where),
                     json_get<double>(item, "net_keep", where),
                     json_get<double>(item, "surprisal", where),
                     json_get<double>(item, "increase", where)};
  });
}

Json free_outcome_to_json(const FreeOutcome& outcome) {
  return {{"asked", budget_to_json(outcome.asked)},
          {"realised", budget_to_json(outcome.realised)},
          {"net_keep", outcome.net_keep},
          {"perplexity", outcome.perplexity},
          {"repetition", outcome.repetition},
          {"agreement", outcome.agreement},
          {"first_difference", outcome.first_difference}};
}

FreeOutcome free_outcome(const Json& json, const char* field, const std::string& where) {
  const Json& item = member(json, field, where);
  return {budget(item, "asked", where),
          budget(item, "realised", where),
          json_get<double>(item, "net_keep", where),
          json_get<double>(item, "perplexity", where),
          json_get<double>(item, "repetition", where),
          json_get<double>(item, "agreement", where),
          json_get<double>(item, "first_difference", where)};
}

}  // namespace

Json sweep_to_json(const Sweep& sweep) {
  const ProtocolOptions& protocol = sweep.protocol;
  Json points = Json::array();
  for (const SweepPoint& point : sweep.points)
    points.push_back({{"requested", budget_to_json(point.requested)},
                      {"inside", point.inside},
                      {"policy", outcome_to_json(point.policy)},
                      {"at_realised", outcomes_to_json(point.realised)},
                      {"at_requested", outcomes_to_json(point.requested_budget)}});
  Json json = {{"policy", sweep.policy},
               {"baselines", sweep.baselines},
               {"space", action_space_to_json(sweep.space)},
               {"context", protocol.context},
               {"horizon", protocol.horizon}};
  json.update(to_json(protocol.sequence));
  json.update({{"timed", protocol.timed},
               {"blocks", sweep.blocks},
               {"dense", outcome_to_json(sweep.dense)},
               {"seconds", sweep.seconds},
               {"decoded_tokens", sweep.decoded_tokens},
               {"points", points}});
  return json;
}

Sweep sweep_from_json(const Json& json, const std::string& where) {
  ProtocolOptions protocol;
  protocol.context = json_get<int>(json, "context", where);
  protocol.horizon = json_get<int>(json, "horizon", where);
  protocol.sequence.page_size = json_get<int>(json, "page_size", where);
  protocol.sequence.sinks = json_get<int>(json, "sinks", where);
  protocol.sequence.window = json_get<int>(json, "window", where);
  protocol.sequence.force_sinks = json_get<bool>(json, "force_sinks", where);
  protocol.timed = json_get<bool>(json, "timed", where);
  Sweep sweep{.policy = json_get<std::string>(json, "policy", where),
              .baselines = numbers<std::string>(json, "baselines", where),
              .space = action_space_from_json(member(json, "space", where), where),
              .protocol = protocol,
              .blocks = numbers<int64_t>(json, "blocks", where),
              .points = {},
              .dense = outcome_from_json(member(json, "dense", where), where),
              .seconds = json_get<double>(json, "seconds", where),
              .decoded_tokens = json_get<int64_t>(json, "decoded_tokens", where)};
  sweep.points = items<SweepPoint>(json, "points", where, [&](const Json& item) {
    SweepPoint point;
    point.requested = budget(item, "requested", where);
    point.inside = json_get<bool>(item, "inside", where);
    point.policy = outcome_from_json(member(item, "policy", where), where);
    point.realised = outcomes(item, "at_realised", where);
    point.requested_budget = outcomes(item, "at_requested", where);
    return point;
  });
  return sweep;
}

Json beside_heuristics_to_json(const BesideHeuristics& fixed) {
  Json json = Json::object();
  for (const auto& [name, perplexities] : fixed) json[name] = perplexities;
  return json;
}

BesideHeuristics beside_heuristics_from_json(const Json& json, const std::string& where) {
  BesideHeuristics fixed;
  for (const auto& [name, list] : json.items())
    fixed[name] = numbers<double>(json, name.c_str(), where);
  return fixed;
}

Json search_to_json(const std::vector<SearchPoint>& points) {
  Json list = Json::array();
  for (const SearchPoint& point : points) {
    Json random = Json::array();
    for (const RandomSchedules& one : point.random) {
      Json schedules = Json::array();
      for (const ScheduleOutcome& schedule : one.schedules)
        schedules.push_back(schedule_to_json(schedule));
      random.push_back({{"policy", one.policy}, {"schedules", schedules}});
    }
    list.push_back({{"requested", budget_to_json(point.requested)},
                    {"realised", budget_to_json(point.realised)},
                    {"policy", schedule_to_json(point.policy)},
                    {"fixed", schedule_to_json(point.fixed)},
                    {"random", random}});
  }
  return {{"points", list}};
}

std::vector<SearchPoint> search_from_json(const Json& json, const std::string& where) {
  std::vector<SearchPoint> points =
      items<SearchPoint>(json, "points", where, [&](const Json& item) {
        SearchPoint point;
        point.requested = budget(item, "requested", where);
        point.realised = budget(item, "realised", where);
        point.policy = schedule_from_json(member(item, "policy", where), where);
        point.fixed = schedule_from_json(member(item, "fixed", where), where);
        point.random = items<RandomSchedules>(item, "random", where, [&](const Json& one) {
          RandomSchedules random{json_get<std::string>(one, "policy", where), {}};
          random.schedules = items<ScheduleOutcome>(
              one, "schedules", where,
              [&](const Json& schedule) { return schedule_from_json(schedule, where); });
          if (random.schedules.empty()) fail("{}: random schedules without any", where);
          return random;
        });
        return point;
      });
  for (const SearchPoint& point : points)
    if (point.random.empty() || point.random.size() != points.front().random.size())
      fail(
          "{}: not all points have the same kinds of random schedules; delete the file to run the "
          "job again",
          where);
  return points;
}

Json pollution_to_json(const Pollution& pollution) {
  Json settings = Json::array();
  for (const PollutionSetting& setting : pollution.settings)
    settings.push_back({{"axis", static_cast<int>(setting.axis)},
                        {"action", to_string(setting.action)},
                        {"direct_percent", setting.direct},
                        {"tail_percent", setting.tail},
                        {"tail_peak_p90_percent", setting.peak_p90},
                        {"median", setting.median},
                        {"low", setting.low},
                        {"high", setting.high}});
  return {{"windows", pollution.windows},
          {"dense_perplexity", pollution.dense_perplexity},
          {"settings", settings}};
}

Pollution pollution_from_json(const Json& json, const std::string& where) {
  Pollution pollution;
  pollution.windows = numbers<int64_t>(json, "windows", where);
  pollution.dense_perplexity = json_get<double>(json, "dense_perplexity", where);
  pollution.settings = items<PollutionSetting>(json, "settings", where, [&](const Json& item) {
    PollutionSetting setting;
    const int axis = json_get<int>(item, "axis", where);
    if (axis < 0 || axis > 2) fail("{}: axis {} does not exist", where, axis);
    setting.axis = static_cast<Axis>(axis);
    setting.action = parse_action(json_get<std::string>(item, "action", where));
    setting.direct = json_get<double>(item, "direct_percent", where);
    setting.tail = json_get<double>(item, "tail_percent", where);
    setting.peak_p90 = json_get<double>(item, "tail_peak_p90_percent", where);
    setting.median = numbers<double>(item, "median", where);
    setting.low = numbers<double>(item, "low", where);
    setting.high = numbers<double>(item, "high", where);
    if (setting.low.size() != setting.median.size() || setting.high.size() != setting.median.size())
      fail(
          "{}: median, low and high are not as long as each other; delete the file to run the job "
          "again",
          where);
    return setting;
  });
  return pollution;
}

Json behaviour_to_json(const Behaviour& behaviour) {
  return {{"by_surprisal", groups_to_json(behaviour.by_surprisal)},
          {"by_previous", groups_to_json(behaviour.by_previous)},
          {"by_step", groups_to_json(behaviour.by_step)},
          {"by_kind", groups_to_json(behaviour.by_kind)},
          {"rank_correlation", behaviour.rank_correlation},
          {"rank_correlation_previous", behaviour.rank_correlation_previous}};
}

Behaviour behaviour_from_json(const Json& json, const std::string& where) {
  Behaviour behaviour;
  behaviour.by_surprisal = groups(json, "by_surprisal", where);
  behaviour.by_previous = groups(json, "by_previous", where);
  behaviour.by_step = groups(json, "by_step", where);
  behaviour.by_kind = groups(json, "by_kind", where);
  behaviour.rank_correlation = json_get<double>(json, "rank_correlation", where);
  behaviour.rank_correlation_previous = json_get<double>(json, "rank_correlation_previous", where);
  return behaviour;
}

Json free_generation_to_json(const FreeGeneration& found) {
  Json pairs = Json::array();
  for (const FreePair& pair : found.pairs)
    pairs.push_back({{"policy", free_outcome_to_json(pair.policy)},
                     {"fixed", free_outcome_to_json(pair.fixed)}});
  return {{"dense", free_outcome_to_json(found.dense)}, {"pairs", pairs}};
}

FreeGeneration free_generation_from_json(const Json& json, const std::string& where) {
  FreeGeneration found;
  found.dense = free_outcome(json, "dense", where);
  found.pairs = items<FreePair>(json, "pairs", where, [&](const Json& item) {
    return FreePair{free_outcome(item, "policy", where), free_outcome(item, "fixed", where)};
  });
  return found;
}

}  // namespace sol
