#include "training/checkpoint.h"

#include <span>
#include <vector>

#include "base/fail.h"
#include "model/safetensors.h"

namespace sol {
namespace {

constexpr int format_version = 2;

constexpr const char* parameter_prefix = "parameter.";
constexpr const char* gradient_prefix = "gradient.";
constexpr const char* first_prefix = "first_moment.";
constexpr const char* second_prefix = "second_moment.";

Parameter read_tensor(const TensorStore& store, const std::string& name) {
  const TensorView& view = store.get(name);
  return {view.shape, view.to_floats()};
}

void require_same(const std::string& where, const Json& saved, const Json& current) {
  const Json difference = Json::diff(saved, current);
  if (difference.empty()) return;
  const std::string field = difference[0].at("path").get<std::string>();
  const Json::json_pointer pointer(field);
  const auto shown = [&](const Json& document) {
    return document.contains(pointer) ? document.at(pointer).dump() : std::string("absent");
  };
  fail(
      "{}: belongs to another run: {} was {} and is now {}; resume with the same configuration, "
      "model and "
      "data, or train into another directory",
      where, field.substr(1), shown(saved), shown(current));
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const TrainingState& state,
                     const Json& identity) {
  std::vector<TensorToWrite> tensors;
  const auto add = [&](const std::string& name, const std::vector<int64_t>& shape,
                       const std::vector<float>& values) {
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
  write_safetensors(path, tensors, {{"state", document.dump()}});
}

TrainingState load_checkpoint(const std::filesystem::path& path, const Json& identity) {
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
  if (!document.contains("identity")) fail("{}: the field identity is missing", where);
  require_same(where, document.at("identity"), identity);

  TrainingState state;
  state.collections = json_get<int64_t>(document, "collections", where);
  state.position = json_get<int64_t>(document, "position", where);
  state.minibatches = json_get<int64_t>(document, "minibatches", where);
  state.updates = json_get<int64_t>(document, "updates", where);
  state.seconds = json_get<double>(document, "seconds", where);
  if (state.collections < 0 || state.position < 0 || state.minibatches < 0 || state.updates < 0) {
    fail("{}: negative counters", where);
  }
  if (!document.contains("metrics")) fail("{}: the field metrics is missing", where);
  state.metrics = metrics_from_json(document.at("metrics"), where + ": metrics");
  for (const auto& [full_name, view] : store.tensors()) {
    if (!full_name.starts_with(parameter_prefix)) continue;
    const std::string name = full_name.substr(std::string(parameter_prefix).size());
    state.parameters[name] = read_tensor(store, full_name);
    state.gradients[name] = read_tensor(store, gradient_prefix + name);
    state.moments[name] = {read_tensor(store, first_prefix + name).values,
                           read_tensor(store, second_prefix + name).values};
  }
  return state;
}

}  // namespace sol
