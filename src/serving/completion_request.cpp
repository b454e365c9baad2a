#include "serving/completion_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace sol {
namespace {

constexpr int most_choices = 128;
constexpr int most_stops = 16;
constexpr int most_alternatives = 20;  // OpenAI's limit for chats

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
}

void check_model(RequestFields& fields, const ServedModel& served) {
  const auto model = fields.text("model");
  if (model && *model != served.name)
    throw ApiError(
        404, "invalid_request_error", "model_not_found",
        fmt::format("model: no \"{}\" here; this server has \"{}\"", *model, served.name), "model");
}

struct Common {
  GenerationOptions options;
  std::vector<std::string> stops;
  Dial dial;
  ResolvedDial resolved;
  std::string party;
  int choices = 1;
};

// All that both interfaces share.
Common read_common(RequestFields& fields, const ServedModel& served, const std::string& party,
                   CompletionRequest& request) {
  Common common;
  check_model(fields, served);
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

  common.stops = fields.text_or_texts("stop").value_or(std::vector<std::string>{});
  if (common.stops.size() > most_stops)
    throw bad_field(
        "stop", fmt::format("has {} texts; at most {} are taken", common.stops.size(), most_stops),
        "out_of_range");
  if (std::ranges::find(common.stops, "") != common.stops.end())
    throw bad_field("stop", "an empty text would stop everything");

  common.choices = static_cast<int>(fields.integer("n", 1, most_choices).value_or(1));
  accept_neutral_fields(fields, common.choices);
  request.choices_per_prompt = common.choices;
  request.stream = fields.boolean("stream").value_or(false);
  if (const Json* options = fields.find("stream_options")) {
    RequestFields stream(*options, "stream_options.");
    request.include_usage = stream.boolean("include_usage").value_or(false);
    stream.reject_unknown();
    if (!request.stream) throw bad_field("stream_options", "needs \"stream\": true");
  }
  common.party = fields.text("user").value_or(party);
  common.dial = read_dial(fields, served);
  common.resolved = resolve_dial(common.dial, served);
  request.actions = common.dial.actions;
  return common;
}

void check_ids(const std::vector<int32_t>& ids, const ServedModel& served) {
  const int vocab = served.model->config().vocab_size;
  for (const int32_t id : ids)
    if (id < 0 || id >= vocab)
      throw bad_field("prompt", fmt::format("token {} is outside the vocabulary of {}", id, vocab),
                      "out_of_range");
}

std::vector<int32_t> read_ids(const Json& list) {
  std::vector<int32_t> ids;
  ids.reserve(list.size());
  for (const Json& item : list) {
    if (!item.is_number_integer() || item.get<int64_t>() < 0 || item.get<int64_t>() > 0x7fffffff)
      throw bad_field("prompt", "a list of token ids holds something else", "invalid_type");
    ids.push_back(item.get<int32_t>());
  }
  return ids;
}

std::vector<std::vector<int32_t>> read_prompts(RequestFields& fields, const ServedModel& served) {
  const Json* prompt = fields.find("prompt");
  if (!prompt) throw bad_field("prompt", "is missing", "missing");
  const auto encoded = [&](const Json& text) {
    return served.tokenizer->encode(text.get_ref<const std::string&>());
  };
  std::vector<std::vector<int32_t>> prompts;
  if (prompt->is_string()) {
    prompts.push_back(encoded(*prompt));
  } else if (!prompt->is_array() || prompt->empty()) {
    throw bad_field("prompt",
                    "must be a text, a list of texts or token ids, or a list of such lists",
                    "invalid_type");
  } else if (prompt->front().is_number()) {
    prompts.push_back(read_ids(*prompt));
  } else {
    for (const Json& item : *prompt) {
      if (!item.is_string() && !item.is_array())
        throw bad_field("prompt", "a list of prompts holds something else", "invalid_type");
      prompts.push_back(item.is_string() ? encoded(item) : read_ids(item));
    }
  }
  for (const auto& ids : prompts) {
    check_ids(ids, served);
    if (ids.empty())
      throw bad_field("prompt", "is empty, and the model has no begin token to start from",
                      "empty");
  }
  return prompts;
}

// How many tokens may follow `prompt`. `asked`: by the request, if it says so.
int answer_length(size_t prompt, std::optional<int64_t> asked, int fallback,
                  const ServedModel& served, const std::string& field) {
  const int64_t left = served.context - static_cast<int64_t>(prompt);
  const int64_t wanted = asked.value_or(std::min<int64_t>(fallback, std::max<int64_t>(left, 1)));
  if (wanted > left)
    throw ApiError(400, "invalid_request_error", "context_length_exceeded",
                   fmt::format("{}: the prompt has {} tokens and {} are to follow, but the context "
                               "is {}",
                               field, prompt, wanted, served.context),
                   field);
  return static_cast<int>(wanted);
}

void add_jobs(CompletionRequest& request, const Common& common, std::vector<int32_t> prompt,
              int answer) {
  JobRequest job;
  job.options = common.options;
  job.dial = common.resolved;
  job.stops = common.stops;
  job.logprobs = request.logprobs;
  job.party = common.party;
  job.no_answer = answer == 0;
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

}  // namespace

CompletionRequest read_completion(const Json& json, const ServedModel& served,
                                  const std::string& party) {
  RequestFields fields(json);
  CompletionRequest request;
  const Common common = read_common(fields, served, party, request);
  std::vector<std::vector<int32_t>> prompts = read_prompts(fields, served);
  const auto max_tokens = fields.integer("max_tokens", 0);
  const auto logprobs = fields.integer("logprobs", 0, most_alternatives);
  if (logprobs) request.logprobs = static_cast<int>(*logprobs);
  request.echo = fields.boolean("echo").value_or(false);
  fields.reject_unknown();

  if (request.echo && request.stream)
    throw bad_field("echo", "cannot be streamed", "conflicting_fields");
  if (common.dial.decode_scoring && !(request.echo && request.logprobs))
    throw bad_field("sol.scoring", "\"decode\" needs \"echo\" and \"logprobs\"",
                    "conflicting_fields");
  if (max_tokens == 0 && !request.echo)
    throw bad_field("max_tokens", "0 gives nothing unless \"echo\" is true", "out_of_range");
  if (prompts.size() * static_cast<size_t>(common.choices) > most_choices)
    throw bad_field("prompt",
                    fmt::format("{} prompts with {} choices each are more than {}", prompts.size(),
                                common.choices, most_choices),
                    "out_of_range");
  for (auto& prompt : prompts) {
    const int answer = answer_length(prompt.size(), max_tokens, 16, served, "prompt");
    add_jobs(request, common, std::move(prompt), answer);
  }
  return request;
}

namespace {

// A text, or OpenAI's list of parts of which only texts are known.
std::string read_content(const Json& message, const std::string& where) {
  const auto content = message.find("content");
  if (content != message.end() && content->is_string()) return content->get<std::string>();
  if (content == message.end() || !content->is_array())
    throw bad_field(where + ".content", "must be a text or a list of texts", "invalid_type");
  std::string text;
  for (const Json& part : *content) {
    RequestFields fields(part, where + ".content.");
    if (fields.text("type").value_or("") != "text")
      throw bad_field(where + ".content", "only parts of type \"text\" are supported",
                      "unsupported");
    text += fields.text("text").value_or("");
    fields.reject_unknown();
  }
  return text;
}

Json read_messages(RequestFields& fields) {
  const Json* messages = fields.find("messages");
  if (!messages) throw bad_field("messages", "is missing", "missing");
  if (!messages->is_array() || messages->empty())
    throw bad_field("messages", "must be a list of messages, not empty", "invalid_type");
  Json read = Json::array();
  for (size_t i = 0; i < messages->size(); ++i) {
    const std::string where = fmt::format("messages[{}]", i);
    const Json& message = (*messages)[i];
    RequestFields parts(message, where + ".");
    const auto role = parts.text("role");
    if (!role) throw bad_field(where + ".role", "is missing", "missing");
    parts.find("content");
    parts.reject_unknown();
    read.push_back({{"role", *role}, {"content", read_content(message, where)}});
  }
  return read;
}

}  // namespace

CompletionRequest read_chat_completion(const Json& json, const ServedModel& served,
                                       const std::string& party) {
  RequestFields fields(json);
  CompletionRequest request;
  request.chat = true;
  const Common common = read_common(fields, served, party, request);
  const Json messages = read_messages(fields);
  auto max_tokens = fields.integer("max_tokens", 1);
  if (const auto also = fields.integer("max_completion_tokens", 1)) {
    if (max_tokens && *max_tokens != *also)
      throw bad_field("max_completion_tokens", "contradicts max_tokens", "conflicting_fields");
    max_tokens = also;
  }
  const bool logprobs = fields.boolean("logprobs").value_or(false);
  const auto alternatives = fields.integer("top_logprobs", 0, most_alternatives);
  if (alternatives && !logprobs) throw bad_field("top_logprobs", "needs \"logprobs\": true");
  if (logprobs) request.logprobs = static_cast<int>(alternatives.value_or(0));
  fields.reject_unknown();
  if (common.dial.decode_scoring)
    throw bad_field("sol.scoring", "is for completions with \"echo\"", "conflicting_fields");
  if (!served.chat)
    throw ApiError(400, "invalid_request_error", "no_chat_template",
                   "the model has no chat template; use /v1/completions, or start the server with "
                   "--chat-template FILE",
                   "messages");
  std::vector<int32_t> prompt;
  try {
    // The template writes the begin token itself.
    prompt = served.tokenizer->encode(served.chat->apply(messages), {.add_special_tokens = false});
  } catch (const Error& error) {
    throw bad_field("messages", error.what());
  }
  if (prompt.empty())
    throw bad_field("messages", "the chat template makes an empty prompt", "empty");
  check_ids(prompt, served);
  const int answer = answer_length(prompt.size(), max_tokens, served.context, served, "messages");
  add_jobs(request, common, std::move(prompt), answer);
  return request;
}

}  // namespace sol
