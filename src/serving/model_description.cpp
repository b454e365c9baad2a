#include "serving/model_description.h"

#include <fmt/format.h>

#include "policy/action_json.h"
#include "serving/dial.h"
#include "serving/request_fields.h"
#include "serving/rounded.h"

namespace sol {
namespace {

Json axis_json(const ServedModel& served, Axis axis) {
  const double unit = axis == Axis::eta ? 16.0 : 1.0;
  // As decimals that a request may repeat: they are read as the same float32.
  const auto shown = [&](float value) { return unit * shortest_decimal(value); };
  const std::vector<float> values = served.space().levels(axis);
  Json levels = Json::array();
  for (const float level : values) levels.push_back(shown(level));
  const Budget low = lowest_budget(served);
  const float lowest = axis == Axis::kappa ? low.kappa : axis == Axis::rho ? low.rho : low.eta;
  return {{"levels", std::move(levels)}, {"low", shown(lowest)}, {"high", shown(values.back())}};
}

Json token_text(const ServedModel& served, int id) {
  return id < 0 ? Json() : Json(served.tokenizer->token_bytes(id));
}

}  // namespace

Json describe_model(const ServedModel& served) {
  Json sol;
  sol["context"] = served.context;
  sol["chat"] = served.chat.has_value();
  sol["policies"] = served.learned ? Json::array({"learned", "fixed"}) : Json::array({"fixed"});
  sol["axes"] = {{"keep", axis_json(served, Axis::kappa)},
                 {"prune", axis_json(served, Axis::rho)},
                 {"bits", axis_json(served, Axis::eta)}};
  const std::optional<NetRange> range = net_range(served, served.learned != nullptr);
  sol["budget"] = range ? Json{{"low", range->low}, {"high", range->high}} : Json();
  sol["latency"] = nullptr;
  if (served.costs) {
    const int keys = served.costs->lengths().front().keys;
    sol["latency"] = {
        {"fastest_ms", rounded(served.costs->fastest_ms(keys, lowest_budget(served)))},
        {"dense_ms", rounded(served.costs->dense_ms(keys))}};
  }
  sol["controller"] = nullptr;
  if (served.controller)
    sol["controller"] = {{"name", served.controller_name},
                         {"horizon", served.horizon},
                         {"timed", served.controller->settings().costs != nullptr}};
  sol["reasoning_effort"] =
      served.reasoning_effort.empty() ? Json() : Json(served.reasoning_effort);
  return {{"id", served.name},
          {"object", "model"},
          {"created", served.loaded_at},
          {"owned_by", "sol"},
          {"sol", std::move(sol)}};
}

Json describe_models(const ServedModel& served) {
  return {{"object", "list"}, {"data", Json::array({describe_model(served)})}};
}

Json describe_tokenizer(const ServedModel& served) {
  const Tokenizer& tokenizer = *served.tokenizer;
  return {{"bos_token", token_text(served, tokenizer.bos_token_id())},
          {"eos_token", token_text(served, tokenizer.eos_token_id())},
          {"vocab_size", tokenizer.vocab_size()},
          {"model_max_length", served.context},
          {"fingerprint", tokenizer.fingerprint()},
          {"chat_template", served.chat ? Json(served.chat->source()) : Json()}};
}

Json tokenize(const Json& request, const ServedModel& served) {
  RequestFields fields(request);
  const auto prompt = fields.text("prompt");
  if (!prompt) throw bad_field("prompt", "is missing", "missing");
  const bool special = fields.boolean("add_special_tokens").value_or(true);
  fields.reject_unknown();
  const std::vector<int32_t> ids =
      served.tokenizer->encode(*prompt, {.add_special_tokens = special});
  return {{"tokens", ids}, {"count", ids.size()}, {"max_model_len", served.context}};
}

Json detokenize(const Json& request, const ServedModel& served) {
  RequestFields fields(request);
  const Json* tokens = fields.find("tokens");
  if (!tokens || !tokens->is_array())
    throw bad_field("tokens", "must be a list of token ids", tokens ? "invalid_type" : "missing");
  fields.reject_unknown();
  std::vector<int32_t> ids;
  for (const Json& token : *tokens) {
    const int32_t id = read_token_id(token, "tokens", ids.size(), served.tokenizer->vocab_size());
    if (!served.tokenizer->has_token(id))
      throw bad_field(fmt::format("tokens[{}]", ids.size()), "is no token's id", "out_of_range");
    ids.push_back(id);
  }
  return {{"prompt", served.tokenizer->decode(ids)}};
}

}  // namespace sol
