#include <fmt/format.h>

#include "serving/completion_request.h"
#include "serving/request_common.h"

namespace sol {
namespace {

// Where the request says nothing: what a conversation needs, without reserving a whole context.
constexpr int default_answer = 1024;

// A text, or OpenAI's list of parts of which only texts are known.
std::string read_content(const Json& message, const std::string& where) {
  const auto content = message.find("content");
  if (content == message.end() || content->is_null())
    throw bad_field(where + ".content", "is missing", "missing");
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array())
    throw bad_field(where + ".content", "must be a text or a list of texts", "invalid_type");
  std::string text;
  for (size_t i = 0; i < content->size(); ++i) {
    const std::string name = fmt::format("{}.content[{}]", where, i);
    RequestFields fields((*content)[i], name + ".");
    const auto type = fields.text("type");
    if (!type) throw bad_field(name + ".type", "is missing", "missing");
    if (*type != "text")
      throw bad_field(name + ".type", "only parts of type \"text\" are supported", "unsupported");
    const auto part_text = fields.text("text");
    if (!part_text) throw bad_field(name + ".text", "is missing", "missing");
    text += *part_text;
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
    parts.choice("type", {"text"});  // lm-evaluation-harness says so of every message
    // What OpenAI's library writes of an answer that is sent back.
    parts.allow_null_only(
        {"annotations", "audio", "function_call", "name", "refusal", "tool_call_id", "tool_calls"});
    parts.reject_unknown();
    read.push_back({{"role", *role}, {"content", read_content(message, where)}});
  }
  return read;
}

}  // namespace

CompletionRequest read_chat_completion(const Json& json, const ServedModel& served,
                                       const Party& party) {
  RequestFields fields(json);
  CompletionRequest request;
  request.chat = true;
  const CommonFields common = read_common(fields, served, party, request);
  const Json messages = read_messages(fields);
  auto max_tokens = fields.integer("max_tokens", 1);
  std::string length_field = "max_tokens";
  if (const auto also = fields.integer("max_completion_tokens", 1)) {
    if (!max_tokens) length_field = "max_completion_tokens";
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
    throw bad_field("messages", shortened(error.what(), 300));
  }
  if (prompt.empty())
    throw bad_field("messages", "the chat template makes an empty prompt", "empty");
  check_ids(prompt, served, "messages");
  const int answer =
      answer_length(prompt.size(), max_tokens, default_answer, served, "messages", length_field);
  add_jobs(request, common, std::move(prompt), answer);
  return request;
}

}  // namespace sol
