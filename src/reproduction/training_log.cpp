#include "reproduction/training_log.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/fail.h"
#include "policy/network.h"
#include "sol/controller.h"
#include "training/run_history.h"

namespace sol {
namespace {

constexpr size_t most_points = 200;

// What is not finite is written as null.
double number(const Json& json, const char* field, const std::string& where) {
  if (json.contains(field) && json[field].is_null())
    return std::numeric_limits<double>::quiet_NaN();
  return json_get<double>(json, field, where);
}

// Of updates, steps or seconds: neither null nor negative.
double amount(const Json& json, const char* field, const std::string& where) {
  const double value = json_get<double>(json, field, where);
  if (value < 0) fail("{}: field \"{}\" is negative", where, field);
  return value;
}

Json finite(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

TrainingPoint point_from_json(const Json& json, const std::string& where) {
  TrainingPoint point;
  point.update = amount(json, "update", where);
  point.seconds = amount(json, "seconds", where);
  point.reward = number(json, "reward", where);
  point.perplexity = number(json, "perplexity", where);
  if (point.perplexity < 0) fail("{}: field \"perplexity\" is negative", where);
  point.entropy = number(json, "entropy", where);
  point.clip_fraction = number(json, "clip_fraction", where);
  const auto gap = json.find("gap");
  if (gap == json.end() || !gap->is_array() || gap->size() != 3)
    fail("{}: field \"gap\" must be a list of 3 numbers", where);
  for (size_t axis = 0; axis < 3; ++axis) {
    if (!(*gap)[axis].is_number()) fail("{}: field \"gap\" holds no numbers", where);
    point.gap[axis] = (*gap)[axis].get<double>();
  }
  return point;
}

// Over the values that are finite.
template <typename Value>
double mean(const std::vector<TrainingPoint>& points, size_t begin, size_t end,
            const Value& value) {
  double sum = 0;
  int count = 0;
  for (size_t i = begin; i < end; ++i)
    if (std::isfinite(value(points[i]))) {
      sum += value(points[i]);
      ++count;
    }
  return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

TrainingPoint mean_point(const std::vector<TrainingPoint>& points, size_t begin, size_t end) {
  TrainingPoint result = points[end - 1];  // update and time
  const auto of = [&](double TrainingPoint::*field) {
    result.*field = mean(points, begin, end, [&](const TrainingPoint& p) { return p.*field; });
  };
  of(&TrainingPoint::reward);
  of(&TrainingPoint::perplexity);
  of(&TrainingPoint::entropy);
  of(&TrainingPoint::clip_fraction);
  for (size_t axis = 0; axis < 3; ++axis)
    result.gap[axis] =
        mean(points, begin, end, [&](const TrainingPoint& p) { return p.gap[axis]; });
  return result;
}

}  // namespace

TrainingSummary training_summary(const std::filesystem::path& dir) {
  std::vector<TrainingPoint> points;
  TrainingSummary summary;
  for (const CollectionMetrics& m : read_training_log(dir)) {
    summary.seconds += m.seconds;
    summary.steps += static_cast<double>(m.steps);
    points.push_back({.update = static_cast<double>(m.update),
                      .seconds = summary.seconds,
                      .reward = m.reward,
                      .perplexity = m.perplexity,
                      .entropy = m.entropy,
                      .clip_fraction = m.clip_fraction,
                      .gap = m.gap});
  }
  const size_t together = (points.size() + most_points - 1) / most_points;
  for (size_t begin = 0; begin < points.size(); begin += together)
    summary.curve.push_back(mean_point(points, begin, std::min(begin + together, points.size())));
  summary.updates = points.back().update;
  summary.policy_parameters = Controller::load(dir).network().parameter_count();
  return summary;
}

double training_seconds(const std::filesystem::path& dir) {
  double seconds = 0;
  for (const CollectionMetrics& m : read_training_log(dir)) seconds += m.seconds;
  return seconds;
}

Json training_summary_to_json(const TrainingSummary& summary) {
  Json curve = Json::array();
  for (const TrainingPoint& point : summary.curve)
    curve.push_back({{"update", point.update},
                     {"seconds", point.seconds},
                     {"reward", finite(point.reward)},
                     {"perplexity", finite(point.perplexity)},
                     {"gap", point.gap},
                     {"entropy", finite(point.entropy)},
                     {"clip_fraction", finite(point.clip_fraction)}});
  return {{"updates", summary.updates},
          {"seconds", summary.seconds},
          {"steps", summary.steps},
          {"policy_parameters", summary.policy_parameters},
          {"curve", curve}};
}

TrainingSummary training_summary_from_json(const Json& json, const std::string& where) {
  TrainingSummary summary;
  summary.updates = amount(json, "updates", where);
  summary.seconds = amount(json, "seconds", where);
  summary.steps = amount(json, "steps", where);
  summary.policy_parameters = json_get<int64_t>(json, "policy_parameters", where);
  if (!json.contains("curve") || !json["curve"].is_array() || json["curve"].empty())
    fail("{}: \"curve\" must be a list of points", where);
  for (const Json& point : json["curve"]) summary.curve.push_back(point_from_json(point, where));
  return summary;
}

}  // namespace sol
