#include "reproduction/training_log.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string>
#include <vector>

#include "base/fail.h"
#include "base/file_io.h"
#include "policy/network.h"
#include "sol/controller.h"

namespace sol {
namespace {

constexpr size_t most_points = 200;

struct Line {
  double update = 0, seconds = 0, steps = 0;
  double reward = 0, perplexity = 0, entropy = 0, clip_fraction = 0;
  std::array<double, 3> gap{};
};

Line read_line(const std::string& text, const std::string& where) {
  const Json json = parse_json(text, where);
  const auto number = [&](const char* field) {
    // What is not finite is written as null.
    return json.contains(field) && json[field].is_null() ? 0.0
                                                         : json_get<double>(json, field, where);
  };
  Line line;
  line.update = number("update");
  line.seconds = number("seconds");
  line.steps = number("steps");
  line.reward = number("reward");
  line.perplexity = number("perplexity");
  line.entropy = number("entropy");
  line.clip_fraction = number("clip_fraction");
  const auto gap = json.find("gap");
  if (gap == json.end() || !gap->is_array() || gap->size() != 3)
    fail("{}: field \"gap\" must be a list of 3 numbers", where);
  for (size_t axis = 0; axis < 3; ++axis)
    line.gap[axis] = (*gap)[axis].is_number() ? (*gap)[axis].get<double>() : 0.0;
  return line;
}

// The mean of lines [begin, end); update and time are the last one's.
Json curve_point(const std::vector<Line>& lines, size_t begin, size_t end, double seconds) {
  Line mean;
  const double n = static_cast<double>(end - begin);
  for (size_t i = begin; i < end; ++i) {
    mean.reward += lines[i].reward / n;
    mean.perplexity += lines[i].perplexity / n;
    mean.entropy += lines[i].entropy / n;
    mean.clip_fraction += lines[i].clip_fraction / n;
    for (size_t axis = 0; axis < 3; ++axis) mean.gap[axis] += lines[i].gap[axis] / n;
  }
  return {{"update", lines[end - 1].update},    {"seconds", seconds}, {"reward", mean.reward},
          {"perplexity", mean.perplexity},      {"gap", mean.gap},    {"entropy", mean.entropy},
          {"clip_fraction", mean.clip_fraction}};
}

}  // namespace

Json training_summary(const std::filesystem::path& dir) {
  const std::filesystem::path file = dir / "train.jsonl";
  std::istringstream text(read_file(file));
  std::vector<Line> lines;
  std::string line;
  for (int number = 1; std::getline(text, line); ++number)
    lines.push_back(read_line(line, fmt::format("{}, line {}", file.string(), number)));
  if (lines.empty()) fail("{}: no collection is recorded", file.string());

  double seconds = 0, steps = 0;
  Json curve = Json::array();
  const size_t together = (lines.size() + most_points - 1) / most_points;
  for (size_t begin = 0; begin < lines.size(); begin += together) {
    const size_t end = std::min(begin + together, lines.size());
    for (size_t i = begin; i < end; ++i) {
      seconds += lines[i].seconds;
      steps += lines[i].steps;
    }
    curve.push_back(curve_point(lines, begin, end, seconds));
  }
  const Controller controller = Controller::load(dir);
  return {{"updates", lines.back().update},
          {"seconds", seconds},
          {"steps", steps},
          {"collections", lines.size()},
          {"policy_parameters", controller.network().parameter_count()},
          {"curve", curve}};
}

}  // namespace sol
