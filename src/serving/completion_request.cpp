#include "serving/completion_request.h"

#include <fmt/format.h>

#include "serving/request_common.h"

namespace sol {
namespace {

constexpr int default_answer = 16;  // OpenAI's

// `name` is the list's: "prompt", "prompt[3]".
std::vector<int32_t> read_ids(const Json& list, const std::string& name,
                              const ServedModel& served) {
  if (list.empty()) throw bad_field(name, "a list of token ids must not be empty", "empty");
  std::vector<int32_t> ids;
  ids.reserve(list.size());
  const int vocab = served.model->config().vocab_size;
  for (const Json& item : list) ids.push_back(read_token_id(item, name, ids.size(), vocab));
  return ids;
}

// A text may be empty where the model has a token to begin with.
std::vector<int32_t> read_text(const Json& text, const std::string& name,
                               const ServedModel& served) {
  std::vector<int32_t> ids = served.tokenizer->encode(text.get_ref<const std::string&>());
  if (ids.empty())
    throw bad_field(name, "is empty, and the model has no begin token to start from", "empty");
  check_ids(ids, served, name);
  return ids;
}

struct Prompt {
  std::string name;  // as errors call it: "prompt", or "prompt[3]" of a list
  const Json* json;
};

// Looks at nothing but their number: what is in them takes time.
std::vector<Prompt> find_prompts(RequestFields& fields) {
  const Json* prompt = fields.find("prompt");
  if (!prompt) throw bad_field("prompt", "is missing", "missing");
  if (!prompt->is_string() && (!prompt->is_array() || prompt->empty()))
    throw bad_field("prompt",
                    "must be a text, a list of texts or token ids, or a list of such lists",
                    "invalid_type");
  if (prompt->is_string() || prompt->front().is_number()) return {{"prompt", prompt}};
  std::vector<Prompt> prompts;
  for (const Json& item : *prompt)
    prompts.push_back({fmt::format("prompt[{}]", prompts.size()), &item});
  return prompts;
}

std::vector<int32_t> read_prompt(const Prompt& prompt, const ServedModel& served) {
  if (prompt.json->is_string()) return read_text(*prompt.json, prompt.name, served);
  if (prompt.json->is_array()) return read_ids(*prompt.json, prompt.name, served);
  throw bad_field(prompt.name, "must be a text or a list of token ids", "invalid_type");
}

}  // namespace

CompletionRequest read_completion(const Json& json, const ServedModel& served, const Party& party) {
  RequestFields fields(json);
  CompletionRequest request;
  const CommonFields common = read_common(fields, served, party, request);
  const std::vector<Prompt> prompts = find_prompts(fields);
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
  // One after the other, so that nobody's second prompt is read where the first does not fit.
  for (const Prompt& prompt : prompts) {
    std::vector<int32_t> ids = read_prompt(prompt, served);
    const int answer =
        answer_length(ids.size(), max_tokens, default_answer, served, prompt.name, "max_tokens");
    add_jobs(request, common, std::move(ids), answer);
  }
  return request;
}

}  // namespace sol
