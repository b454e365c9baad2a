#include "serving/request_common.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace sol {
namespace {

constexpr int most_stops = 16;
constexpr size_t most_stop_bytes = 1024, most_user_bytes = 256;

// OpenAI's fields that this server does not have, at the values that change nothing.
void accept_neutral_fields(RequestFields& fields, int choices) {
  for (const char* name : {"presence_penalty", "frequency_penalty"})
    if (const auto value = fields.number(name, -2.0, 2.0); value && *value != 0.0)
      throw bad_field(name, "is not supported; leave it out or give 0", "unsupported");
  if (const Json* bias = fields.find("logit_bias"); bias && !(bias->is_object() && bias->empty()))
    throw bad_field("logit_bias", "is not supported; leave it out", "unsupported");
  if (const auto best = fields.integer("best_of", 1); best && *best != choices)
    throw bad_field("best_of", "is not supported; leave it out or give n", "unsupported");
  if (const auto suffix = fields.text("suffix"); suffix && !suffix->empty())
    throw bad_field("suffix", "is not supported; leave it out", "unsupported");
  // Defaults that clients send along.
  if (fields.boolean("store").value_or(false))
    throw bad_field("store", "is not supported; leave it out or give false", "unsupported");
  if (const Json* tools = fields.find("tools"); tools && !(tools->is_array() && tools->empty()))
    throw bad_field("tools", "is not supported; leave it out", "unsupported");
  if (const Json* data = fields.find("metadata"); data && !(data->is_object() && data->empty()))
    throw bad_field("metadata", "is not kept; leave it out", "unsupported");
  if (const Json* format = fields.find("response_format");
      format && *format != Json{{"type", "text"}})
    throw bad_field("response_format", "only {\"type\": \"text\"} is supported", "unsupported");
  fields.allow_null_only({"audio", "function_call", "functions", "modalities",
                          "parallel_tool_calls", "prediction", "prompt_cache_key",
                          "safety_identifier", "service_tier", "tool_choice", "verbosity",
                          "web_search_options"});
}

}  // namespace

void check_model_name(const std::string& name, const ServedModel& served) {
  if (name == served.name) return;
  throw ApiError(
      404, "invalid_request_error", "model_not_found",
      fmt::format("model: no \"{}\" here; this server has \"{}\"", shortened(name), served.name),
      "model");
}

CommonFields read_common(RequestFields& fields, const ServedModel& served, const Party& party,
                         CompletionRequest& request) {
  CommonFields common;
  if (const auto model = fields.text("model")) check_model_name(*model, served);
  SamplingOptions& sampling = common.options.sampling;
  sampling.temperature = fields.number("temperature", 0.0, 2.0).value_or(1.0);
  sampling.top_p = fields.number("top_p", 0.0, 1.0, true).value_or(1.0);
  sampling.top_k = static_cast<int>(fields.integer("top_k", 0, 1 << 30).value_or(0));
  const auto seed = fields.integer("seed", 0);
  request.seed = seed ? static_cast<uint64_t>(*seed) : std::random_device()();
  sampling.seed = request.seed;
  common.options.ignore_end = fields.boolean("ignore_eos").value_or(false);
  common.options.sequence = served.sequence;
  common.options.horizon = served.horizon;

  const Json* stop_field = fields.find("stop");
  const bool stops_are_listed = stop_field && stop_field->is_array();
  common.stops = fields.text_or_texts("stop").value_or(std::vector<std::string>{});
  if (common.stops.size() > most_stops)
    throw bad_field(
        "stop", fmt::format("has {} texts; at most {} are taken", common.stops.size(), most_stops),
        "out_of_range");
  for (size_t i = 0; i < common.stops.size(); ++i) {
    const std::string& stop = common.stops[i];
    const std::string name = stops_are_listed ? fmt::format("stop[{}]", i) : "stop";
    if (stop.empty()) throw bad_field(name, "an empty text would stop everything");
    if (stop.size() > most_stop_bytes)
      throw bad_field(name,
                      fmt::format("a text of {} bytes is too long; at most {} are taken",
                                  stop.size(), most_stop_bytes),
                      "out_of_range");
  }

  common.choices = static_cast<int>(fields.integer("n", 1, most_choices).value_or(1));
  accept_neutral_fields(fields, common.choices);
  request.choices_per_prompt = common.choices;
  request.stream = fields.boolean("stream").value_or(false);
  if (const Json* options = fields.find("stream_options")) {
    RequestFields stream(*options, "stream_options.");
    request.include_usage = stream.boolean("include_usage").value_or(false);
    // Padding against those who measure packets; clients say that they need none.
    if (stream.boolean("include_obfuscation").value_or(false))
      throw bad_field("stream_options.include_obfuscation",
                      "is not supported; leave it out or give false", "unsupported");
    stream.reject_unknown();
    if (!request.stream) throw bad_field("stream_options", "needs \"stream\": true");
  }
  common.party = party;
  if (const auto user = fields.text("user")) {
    if (user->size() > most_user_bytes)
      throw bad_field("user", fmt::format("is longer than {} bytes", most_user_bytes),
                      "out_of_range");
    common.party = *user;
  }
  common.dial = read_dial(fields, served);
  common.resolved = resolve_dial(common.dial, served);
  request.actions = common.dial.actions;
  return common;
}

void check_ids(const std::vector<int32_t>& ids, const ServedModel& served,
               const std::string& field) {
  const int vocab = served.model->config().vocab_size;
  for (const int32_t id : ids)
    if (id < 0 || id >= vocab)
      throw bad_field(field, fmt::format("token {} is outside the vocabulary of {}", id, vocab),
                      "out_of_range");
}

int answer_length(size_t prompt, std::optional<int64_t> asked, int fallback,
                  const ServedModel& served, const std::string& prompt_field,
                  const std::string& length_field) {
  const int64_t left = served.context - static_cast<int64_t>(prompt);
  const int64_t wanted = asked.value_or(std::min<int64_t>(fallback, std::max<int64_t>(left, 1)));
  // A prompt that leaves no room is at fault whatever is asked for.
  const std::string& field = asked && left > 0 ? length_field : prompt_field;
  if (wanted > left)
    throw ApiError(400, "invalid_request_error", "context_length_exceeded",
                   fmt::format("{}: the prompt has {} tokens and {} are to follow, but the context "
                               "is {}",
                               field, prompt, wanted, served.context),
                   field);
  return static_cast<int>(wanted);
}

void add_jobs(CompletionRequest& request, const CommonFields& common, std::vector<int32_t> prompt,
              int answer) {
  JobRequest job;
  job.options = common.options;
  job.dial = common.resolved;
  job.stops = common.stops;
  job.logprobs = request.logprobs;
  job.party = common.party;
  job.no_answer = answer == 0;
  job.continues = !request.chat;  // a chat's answer is a text of its own
  answer = std::max(answer, 1);
  job.show_prompt = request.echo && request.logprobs;
  job.score_prompt = job.show_prompt && !common.dial.decode_scoring;
  if (common.dial.decode_scoring) {
    const auto from = static_cast<size_t>(common.dial.scored_from);
    if (from > prompt.size())
      throw bad_field("sol.scored_from",
                      fmt::format("is {}, but a prompt has only {} tokens", from, prompt.size()),
                      "out_of_range");
    job.options.given.assign(prompt.begin() + static_cast<std::ptrdiff_t>(from), prompt.end());
    prompt.resize(from);
  }
  job.prompt = std::move(prompt);
  job.options.max_tokens = answer + static_cast<int>(job.options.given.size());
  for (int i = 0; i < common.choices; ++i) {
    job.options.index = request.jobs.size();
    request.jobs.push_back(job);
  }
}

}  // namespace sol
