#include "checkpoint.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/fail.h"
#include "model/safetensors.h"

namespace sol::pretrain {
namespace {

constexpr int format_version = 2;

void require_finite(const std::string& where, const char* name, const std::vector<float>& values) {
  if (!std::ranges::all_of(values, [](float x) { return std::isfinite(x); }))
    fail("{}: {} hold infinite values or NaN; lower the learning rate", where, name);
}

void require_same(const std::string& where, const Json& saved, const Json& current) {
  const Json difference = Json::diff(saved, current);
  if (difference.empty()) return;
  const std::string field = difference[0].at("path").get<std::string>();
  const auto shown = [&](const Json& document) {
    const Json::json_pointer pointer(field);
    return document.contains(pointer) ? to_text(document.at(pointer)) : std::string("absent");
  };
  fail("{}: belongs to another run: {} was {} and is now {}", where,
       field.empty() ? field : field.substr(1), shown(saved), shown(current));
}

int64_t counter(const Json& document, const char* field, int64_t low, const std::string& where) {
  const int64_t value = json_get<int64_t>(document, field, where);
  if (value < low || value > int64_t{1} << 50)
    fail("{}: {} = {} makes no sense", where, field, value);
  return value;
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint,
                     const Json& identity) {
  const EngineState& s = checkpoint.state;
  const Progress& p = checkpoint.progress;
  require_finite(path.string() + ": not saved", "the weights", s.weights);
  const auto tensor = [](const char* name, const std::vector<float>& values) {
    return TensorToWrite{
        name, DType::f32, {static_cast<int64_t>(values.size())}, std::as_bytes(std::span(values))};
  };
  const std::vector<TensorToWrite> tensors{tensor("weights", s.weights),
                                           tensor("first_moments", s.first),
                                           tensor("second_moments", s.second)};
  const Json document{{"format_version", format_version},
                      {"identity", identity},
                      {"steps", s.steps},
                      {"tokens", p.tokens},
                      {"window", p.window},
                      {"position", p.position},
                      {"decay_begin", p.decay_begin},
                      {"muon", p.muon},
                      {"seconds", p.seconds}};
  write_checked_safetensors(path, tensors, {{"state", to_text(document)}});
}

Checkpoint load_checkpoint(const std::filesystem::path& path, const Json& identity) {
  const TensorStore store = TensorStore::open_file(path);
  const std::string where = path.string();
  const auto text = store.metadata().find("state");
  if (text == store.metadata().end())
    fail("{}: not a checkpoint of this program: no \"state\" in its metadata", where);
  const Json document = parse_json(text->second, where);
  const int version = json_get<int>(document, "format_version", where);
  if (version != format_version)
    fail("{}: checkpoint format {}, but this program reads {}", where, version, format_version);
  require_checksum(store);
  if (!document.contains("identity") || !document.at("identity").is_object())
    fail("{}: the field identity is missing or no object", where);
  require_same(where, document.at("identity"), identity);
  Checkpoint out;
  out.state.steps = counter(document, "steps", 0, where);
  out.progress = {.tokens = counter(document, "tokens", 0, where),
                  .window = static_cast<int>(counter(document, "window", 1, where)),
                  .position = counter(document, "position", 0, where),
                  .decay_begin = counter(document, "decay_begin", -1, where),
                  .muon = json_get_or(document, "muon", false, where),
                  .seconds = json_get<double>(document, "seconds", where)};
  out.state.weights = store.get("weights").to_floats();
  out.state.first = store.get("first_moments").to_floats();
  out.state.second = store.get("second_moments").to_floats();
  for (const auto* values : {&out.state.weights, &out.state.first, &out.state.second}) {
    require_finite(where, "its tensors", *values);
    if (values->size() != out.state.weights.size()) fail("{}: tensors of different sizes", where);
  }
  return out;
}

}  // namespace sol::pretrain
