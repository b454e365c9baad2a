#include "training/checkpoint.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "base/fail.h"
#include "base/json_difference.h"
#include "model/safetensors.h"

namespace sol {
namespace {

constexpr int format_version = 4;

constexpr const char* parameter_prefix = "parameter.";
constexpr const char* gradient_prefix = "gradient.";
constexpr const char* first_prefix = "first_moment.";
constexpr const char* second_prefix = "second_moment.";

Parameter read_tensor(const TensorStore& store, const std::string& name,
                      const std::vector<int64_t>& shape) {
  const TensorView& view = store.get(name);
  if (view.shape != shape)
    fail("{}: must be [{}], as the configuration's policy network has it", view.describe(),
         fmt::join(shape, ", "));
  return {view.shape, view.to_floats()};
}

void require_same(const std::string& where, const Json& saved, const Json& current) {
  const auto difference = first_difference(saved, current);
  if (!difference) return;
  if (difference->field == "config/optimisation/updates")
    fail(
        "{}: the run was begun for {} updates and is now to have {}, but something falls until the "
        "last of them (final_learning_rate, final_entropy or a curriculum): such a run cannot be "
        "prolonged; start another one from its controller with --init",
        where, difference->first, difference->second);
  fail(
      "{}: belongs to another run: {} was {} and is now {}; resume with the same configuration, "
      "model and "
      "data, or train into another directory",
      where, difference->field, difference->first, difference->second);
}

// A diverged run must neither replace its last good checkpoint nor go on from a bad one.
void require_finite(const std::string& where, const std::string& name,
                    const std::vector<float>& values) {
  if (std::ranges::all_of(values, [](float x) { return std::isfinite(x); })) return;
  fail(
      "{}: {} holds infinite values or NaN: training has diverged; lower "
      "optimisation.learning_rate",
      where, name);
}

// Of a file that may be damaged: within what arithmetic on them can bear.
int64_t read_counter(const Json& document, const char* field, int64_t high,
                     const std::string& where) {
  const int64_t value = json_get<int64_t>(document, field, where);
  if (value < 0 || value > high)
    fail("{}: {} = {} must be from 0 to {}", where, field, value, high);
  return value;
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const TrainingState& state,
                     const Json& identity) {
  std::vector<TensorToWrite> tensors;
  const auto add = [&](const std::string& name, const std::vector<int64_t>& shape,
                       const std::vector<float>& values) {
    require_finite(path.string() + ": not saved", name, values);
    tensors.push_back({name, DType::f32, shape, std::as_bytes(std::span(values))});
  };
  for (const auto& [name, parameter] : state.parameters) {
    add(parameter_prefix + name, parameter.shape, parameter.values);
    add(gradient_prefix + name, parameter.shape, state.gradients.at(name).values);
    add(first_prefix + name, parameter.shape, state.moments.at(name).first);
    add(second_prefix + name, parameter.shape, state.moments.at(name).second);
  }
  const Json document{{"format_version", format_version}, {"identity", identity},
                      {"collections", state.collections}, {"position", state.position},
                      {"minibatches", state.minibatches}, {"updates", state.updates},
                      {"seconds", state.seconds},         {"metrics", to_json(state.metrics)}};
  write_checked_safetensors(path, tensors, {{"state", to_text(document)}});
}

TrainingState load_checkpoint(const std::filesystem::path& path, const Json& identity,
                              const PolicyNetworkShape& shape) {
  const TensorStore store = TensorStore::open_file(path);
  const std::string where = path.string();
  const auto text = store.metadata().find("state");
  if (text == store.metadata().end())
    fail("{}: not a training checkpoint: no \"state\" in its metadata", where);
  const Json document = parse_json(text->second, where);
  const int version = json_get<int>(document, "format_version", where);
  if (version != format_version) {
    fail("{}: checkpoint format {}, but this program reads {}", where, version, format_version);
  }
  require_checksum(store);
  if (!document.contains("identity") || !document.at("identity").is_object())
    fail("{}: the field identity is missing or no object", where);
  require_same(where, document.at("identity"), identity);

  TrainingState state;
  constexpr int64_t largest_count = std::numeric_limits<int>::max();
  // Random draws are keyed by the position, which has 40 bits there.
  constexpr int64_t largest_position = (int64_t{1} << 40) - largest_count;
  state.collections = read_counter(document, "collections", largest_count, where);
  state.position = read_counter(document, "position", largest_position, where);
  state.minibatches = read_counter(document, "minibatches", largest_count, where);
  state.updates = read_counter(document, "updates", largest_count, where);
  state.seconds = json_get<double>(document, "seconds", where);
  if (!(state.seconds >= 0 && state.seconds <= 1e12))
    fail("{}: seconds = {} makes no sense", where, state.seconds);
  if (!document.contains("metrics")) fail("{}: the field metrics is missing", where);
  state.metrics = metrics_from_json(document.at("metrics"), where + ": metrics");
  for (const auto& [name, dimensions] : policy_parameter_shapes(shape)) {
    const auto read = [&](const char* prefix) {
      return read_tensor(store, prefix + name, dimensions);
    };
    state.parameters[name] = read(parameter_prefix);
    state.gradients[name] = read(gradient_prefix);
    state.moments[name] = {read(first_prefix).values, read(second_prefix).values};
    for (const auto* values : {&state.parameters[name].values, &state.gradients[name].values,
                               &state.moments[name].first, &state.moments[name].second})
      require_finite(where, name, *values);
  }
  return state;
}

}  // namespace sol
