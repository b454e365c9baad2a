// Controllers on disk (docs/formats.md, "Controller").
#include <optional>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "model/safetensors.h"
#include "policy/action_json.h"
#include "policy/cost_table.h"
#include "policy/network.h"
#include "sol/controller.h"

namespace sol {
namespace {

namespace fs = std::filesystem;

constexpr const char* settings_name = "controller.json";
constexpr const char* kind = "sol controller";

// Named by what it holds, so that an old controller and a new one can lie side by side until
// controller.json, in one rename, says which of them counts.
std::string weights_name(const std::string& checksum) {
  return fmt::format("controller-{}.safetensors", checksum.substr(0, 16));
}

bool is_weights_name(const std::string& name) {
  constexpr std::string_view before = "controller-", after = ".safetensors";
  constexpr size_t digits = 16;
  if (name == "controller.safetensors") return true;  // of format version 1
  return name.size() == before.size() + digits + after.size() && name.starts_with(before) &&
         name.ends_with(after) &&
         name.find_first_not_of("0123456789abcdef", before.size()) == before.size() + digits;
}

Json network_to_json(const PolicyNetworkShape& shape) {
  Json json{{"hidden_size", shape.hidden_size}, {"actions", shape.actions},
            {"d_model", shape.d_model},         {"heads", shape.heads},
            {"layers", shape.layers},           {"mlp_ratio", shape.mlp_ratio},
            {"action_dim", shape.action_dim},   {"max_length", shape.max_length}};
  if (shape.surprisal) json["surprisal"] = true;
  return json;
}

PolicyNetworkShape network_from_json(const Json& json, const std::string& where) {
  PolicyNetworkShape shape;
  shape.hidden_size = json_get<int>(json, "hidden_size", where);
  shape.actions = json_get<int>(json, "actions", where);
  shape.d_model = json_get<int>(json, "d_model", where);
  shape.heads = json_get<int>(json, "heads", where);
  shape.layers = json_get<int>(json, "layers", where);
  shape.mlp_ratio = json_get<double>(json, "mlp_ratio", where);
  shape.action_dim = json_get<int>(json, "action_dim", where);
  shape.max_length = json_get<int>(json, "max_length", where);
  shape.surprisal = json_get_or<bool>(json, "surprisal", false, where);
  return shape;
}

Json range_to_json(const BudgetRange& range) {
  return Json::array({range.low, range.high});
}

BudgetRange range_from_json(const Json& ranges, const char* axis, const std::string& where) {
  const auto found = ranges.find(axis);
  if (found == ranges.end() || !found->is_array() || found->size() != 2 ||
      !(*found)[0].is_number() || !(*found)[1].is_number())
    fail("{}: \"{}\" must be a list of two numbers", where, axis);
  return {(*found)[0].get<double>(), (*found)[1].get<double>()};
}

Json frontier_to_json(const std::vector<FrontierPoint>& frontier) {
  Json list = Json::array();
  for (const FrontierPoint& point : frontier) {
    Json entry{{"net_keep", point.net_keep}};
    entry.update(budget_to_json(point.budget));
    entry["perplexity"] = point.perplexity;
    list.push_back(std::move(entry));
  }
  return list;
}

std::vector<FrontierPoint> frontier_from_json(const Json& list, const std::string& where) {
  std::vector<FrontierPoint> frontier;
  for (const Json& entry : list) {
    const std::string point = fmt::format("{}: frontier point {}", where, frontier.size());
    if (!entry.is_object()) fail("{}: must be an object", point);
    frontier.push_back({json_get<double>(entry, "net_keep", point), budget_from_json(entry, point),
                        json_get<double>(entry, "perplexity", point)});
  }
  return frontier;
}

// A field that must be an object, or a list.
const Json& nested(const Json& json, const char* field, bool object, const std::string& where) {
  const auto found = json.find(field);
  if (found == json.end() || (object ? !found->is_object() : !found->is_array()))
    fail("{}: \"{}\" must be {}", where, field, object ? "an object" : "a list");
  return *found;
}

Json to_json(const Controller& controller, const std::string& weights_checksum) {
  const ControllerSettings& settings = controller.settings();
  Json json{{"kind", kind},
            {"format_version", controller.network().shape().surprisal ? 6
                               : settings.budget_prior > 0            ? 5
                               : settings.enforced                    ? 4
                               : settings.costs                       ? 3
                                                                      : 2},
            {"model_fingerprint", settings.model_fingerprint},
            {"weights", weights_name(weights_checksum)},
            {"weights_checksum", weights_checksum},
            {"horizon", settings.horizon},
            {"page_size", settings.sequence.page_size},
            {"sinks", settings.sequence.sinks},
            {"window", settings.sequence.window},
            {"action_space", action_space_to_json(controller.space())},
            {"network", network_to_json(controller.network().shape())},
            {"budget_ranges",
             {{"kappa", range_to_json(settings.ranges.kappa)},
              {"rho", range_to_json(settings.ranges.rho)},
              {"eta", range_to_json(settings.ranges.eta)}}},
            {"frontier", frontier_to_json(settings.frontier)},
            {"training", parse_json(settings.training_json, "training record")}};
  if (settings.costs) {
    json["time_range"] = range_to_json(settings.time);
    json["costs"] = settings.costs->to_json();
  }
  if (settings.enforced) json["enforced_budgets"] = true;
  if (settings.budget_prior > 0) json["budget_prior"] = settings.budget_prior;
  return json;
}

ControllerSettings settings_from_json(const Json& json, const std::string& where) {
  ControllerSettings settings;
  settings.horizon = json_get<int>(json, "horizon", where);
  settings.sequence.page_size = json_get<int>(json, "page_size", where);
  settings.sequence.sinks = json_get<int>(json, "sinks", where);
  settings.sequence.window = json_get<int>(json, "window", where);
  settings.model_fingerprint = json_get<std::string>(json, "model_fingerprint", where);
  const Json& ranges = nested(json, "budget_ranges", true, where);
  settings.ranges.kappa = range_from_json(ranges, "kappa", where + ": budget_ranges");
  settings.ranges.rho = range_from_json(ranges, "rho", where + ": budget_ranges");
  settings.ranges.eta = range_from_json(ranges, "eta", where + ": budget_ranges");
  settings.frontier = frontier_from_json(nested(json, "frontier", false, where), where);
  if (json.contains("costs")) {
    settings.time = range_from_json(json, "time_range", where);
    settings.costs =
        std::make_shared<const CostTable>(CostTable::from_json(json["costs"], where + ": costs"));
  }
  settings.enforced = json_get_or<bool>(json, "enforced_budgets", false, where);
  settings.budget_prior = json_get_or<double>(json, "budget_prior", 0.0, where);
  if (const auto training = json.find("training"); training != json.end())
    settings.training_json = training->dump();
  return settings;
}

void write_weights(const fs::path& path, const Parameters& parameters) {
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, parameter] : parameters)
    tensors.push_back(
        {name, DType::f32, parameter.shape, std::as_bytes(std::span(parameter.values))});
  write_safetensors(path, tensors, {{"format", "sol controller"}});
}

// The parameters that controller.json speaks of: a file that was damaged or comes from another save
// is an error.
Parameters read_weights(const fs::path& dir, const Json& json, int version,
                        const std::string& where) {
  const std::string expected = json_get<std::string>(json, "weights_checksum", where);
  const std::string name =
      version == 1 ? "controller.safetensors" : json_get<std::string>(json, "weights", where);
  if (!is_weights_name(name))
    fail("{}: \"weights\" is \"{}\", which no file of weights is called", where, name);
  const fs::path path = dir / name;
  const TensorStore store = TensorStore::open_file(path);
  Parameters parameters;
  for (const auto& [tensor_name, tensor] : store.tensors())
    parameters[tensor_name] = {tensor.shape, tensor.to_floats()};
  // Version 1 counted the file's bytes.
  const std::string found =
      version == 1 ? hash_128(MappedFile(path).bytes()) : parameters_checksum(parameters);
  if (found != expected)
    fail("{}: does not belong to {} (its checksum differs): the file is damaged; copy both again",
         path.string(), settings_name);
  return parameters;
}

void remove_other_weights(const fs::path& dir, const std::string& kept) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(dir, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name != kept && is_weights_name(name)) fs::remove(entry.path(), ignored);
  }
}

}  // namespace

void Controller::save(const fs::path& dir) const {
  const std::string weights_checksum = parameters_checksum(network_->parameters());
  const std::string text = to_json(*this, weights_checksum).dump(2) + "\n";
  const fs::path weights = dir / weights_name(weights_checksum);
  std::error_code ignored;
  const bool dir_existed = fs::exists(dir, ignored);
  bool weights_existed = false;
  std::optional<AtomicFile> settings;
  try {
    ensure_writable_directory(dir);
    weights_existed = fs::exists(weights, ignored);
    settings.emplace(dir / settings_name);
    settings->write(text);
    write_weights(weights, network_->parameters());
    settings->flush();
  } catch (...) {
    settings.reset();
    if (!weights_existed) fs::remove(weights, ignored);
    if (!dir_existed) fs::remove(dir, ignored);  // only if empty
    throw;
  }
  settings->commit();
  remove_other_weights(dir, weights.filename().string());
}

Controller Controller::load(const fs::path& dir) {
  std::error_code unknown;
  if (!fs::is_directory(dir, unknown))
    fail("{}: not a directory; a controller is one", dir.string());
  const std::string where = (dir / settings_name).string();
  if (!path_exists(dir / settings_name))
    fail("{}: there is no {}; a controller is a directory that `sol train` wrote", dir.string(),
         settings_name);
  const Json json = read_json(dir / settings_name);
  if (!json.is_object() || json_get_or<std::string>(json, "kind", "", where) != kind)
    fail("{}: not a controller's settings (\"kind\" is not \"{}\")", where, kind);
  const int version = json_get<int>(json, "format_version", where);
  if (version < 1 || version > format_version)
    fail(
        "{}: format version {}, but this program reads versions 1 to {}; train it again or use the "
        "program that wrote it",
        where, version, format_version);

  ControllerSettings settings = settings_from_json(json, where);
  ActionSpace space = action_space_from_json(nested(json, "action_space", true, where), where);
  const PolicyNetworkShape shape =
      network_from_json(nested(json, "network", true, where), where + ": network");
  Parameters parameters = read_weights(dir, json, version, where);
  try {
    auto network = std::make_shared<const PolicyNetwork>(shape, std::move(parameters));
    return Controller(std::move(space), std::move(settings), std::move(network));
  } catch (const Error& error) {
    fail("{}: {}", dir.string(), error.what());
  }
}

}  // namespace sol
