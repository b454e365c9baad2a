#include "serving/completion_response.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string_view>

#include "model/utf8.h"
#include "serving/api_error.h"
#include "serving/rounded.h"

namespace sol {
namespace {

Json finish_reason(const std::optional<Outcome>& outcome) {
  if (!outcome) return nullptr;
  switch (outcome->finish) {
    case FinishReason::end_token:
    case FinishReason::stopped:
      return "stop";
    case FinishReason::max_tokens:
    case FinishReason::context_end:
      return "length";
    default:
      return "cancelled";
  }
}

std::string new_id(bool chat) {
  std::random_device random;
  return fmt::format("{}-{:08x}{:08x}", chat ? "chatcmpl" : "cmpl", random(), random());
}

int64_t characters(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; });
}

// The answer's tokens; those of a prompt that was scored step by step do not count.
int64_t answer_tokens(const Outcome& outcome, const JobRequest& job) {
  const auto all = static_cast<int64_t>(outcome.result.tokens.size());
  return job.no_answer ? 0 : all - static_cast<int64_t>(job.options.given.size());
}

}  // namespace

CompletionResponse::CompletionResponse(const CompletionRequest& request, const ServedModel& served)
    : request_(request),
      served_(served),
      id_(new_id(request.chat)),
      created_(std::chrono::duration_cast<std::chrono::seconds>(
                   std::chrono::system_clock::now().time_since_epoch())
                   .count()),
      choices_(request.jobs.size()) {
  for (size_t i = 0; i < choices_.size() && request.logprobs && !request.chat; ++i) {
    const JobRequest& job = request.jobs[i];
    choices_[i].spoken.emplace(*served.tokenizer, job.show_prompt
                                                      ? std::span<const int32_t>()
                                                      : std::span<const int32_t>(job.prompt));
  }
}

std::vector<std::string> CompletionResponse::take(Outbox::Delivery delivery) {
  Choice& choice = choices_[delivery.index];
  if (delivery.outcome) {
    if (delivery.outcome->error) throw api_error_of(delivery.outcome->error);
    choice.outcome = std::move(delivery.outcome);
    ++finished_;
  }
  std::string text;
  for (const TokenOutput& token : delivery.tokens) text += token.text;
  if (choice.outcome) text += choice.outcome->text;

  std::vector<std::string> events;
  if (!request_.stream) {
    choice.text += text;
    std::move(delivery.tokens.begin(), delivery.tokens.end(), std::back_inserter(choice.tokens));
    return events;
  }
  const bool told = request_.logprobs || request_.actions;
  if (text.empty() && !choice.outcome && !(told && !delivery.tokens.empty())) return events;
  Json event = envelope();
  event["choices"] = Json::array({event_choice(delivery.index, delivery.tokens, text)});
  if (request_.include_usage) event["usage"] = nullptr;
  events.push_back(to_text(event));
  return events;
}

Json CompletionResponse::envelope() const {
  const char* object = !request_.chat    ? "text_completion"
                       : request_.stream ? "chat.completion.chunk"
                                         : "chat.completion";
  return {{"id", id_}, {"object", object}, {"created", created_}, {"model", served_.name}};
}

Json CompletionResponse::event_choice(size_t index, const std::vector<TokenOutput>& tokens,
                                      const std::string& text) {
  Choice& choice = choices_[index];
  Json json{{"index", index}};
  if (request_.chat) {
    Json delta = Json::object();
    if (!choice.begun) delta["role"] = "assistant";
    if (!choice.begun || !text.empty()) delta["content"] = text;
    choice.begun = true;
    json["delta"] = std::move(delta);
  } else {
    json["text"] = text;
  }
  json["logprobs"] = request_.logprobs && !tokens.empty() ? logprobs_of(choice, tokens) : Json();
  json["finish_reason"] = finish_reason(choice.outcome);
  if (choice.outcome) json["sol"] = sol_of(choice, request_.jobs[index], false);
  if (request_.actions) json["sol"]["actions"] = actions_of(tokens);
  return json;
}

std::optional<std::string> CompletionResponse::last_event() const {
  if (!request_.include_usage) return std::nullopt;
  Json event = envelope();
  event["choices"] = Json::array();
  event["usage"] = usage();
  return to_text(event);
}

Json CompletionResponse::whole() {
  Json choices = Json::array();
  for (size_t i = 0; i < choices_.size(); ++i) {
    Choice& choice = choices_[i];
    const JobRequest& job = request_.jobs[i];
    Json json{{"index", i}};
    if (request_.chat) {
      json["message"] = {{"role", "assistant"}, {"content", choice.text}};
    } else {
      json["text"] = request_.echo ? choice.outcome->before + choice.text : choice.text;
    }
    json["logprobs"] = request_.logprobs ? logprobs_of(choice, choice.tokens) : Json();
    json["finish_reason"] = finish_reason(choice.outcome);
    json["sol"] = sol_of(choice, job, request_.actions);
    choices.push_back(std::move(json));
  }
  Json response = envelope();
  response["choices"] = std::move(choices);
  response["usage"] = usage();
  return response;
}

Json CompletionResponse::sol_of(const Choice& choice, const JobRequest& job,
                                bool with_actions) const {
  const Outcome& outcome = *choice.outcome;
  const GenerationResult& result = outcome.result;
  Json json{{"policy", job.dial.policy->name()}, {"requested", job.dial.requested}};
  const bool counts = result.effective_steps > 0;
  json["realised"] = counts ? budget_json(result.realised, served_) : Json();
  json["attended"] = rounded(result.attended);
  json["steps"] = result.steps;
  json["effective_steps"] = result.effective_steps;
  const bool timed = outcome.ms_per_token > 0;  // there was a second token
  json["ms_per_token"] = timed ? Json(rounded(outcome.ms_per_token)) : Json();
  json["policy_share"] = timed ? Json(rounded(outcome.policy_share)) : Json();
  json["refresh_share"] = timed ? Json(rounded(outcome.refresh_share)) : Json();
  json["seed"] = request_.seed;
  if (!job.dial.outside.empty()) json["outside_trained_ranges"] = job.dial.outside;
  if (job.dial.ms_per_token) {
    // Too fast is a fault only where a denser run would have met it, so not of one that was dense
    // itself, whatever the table expected of it.
    const double target = *job.dial.ms_per_token, measured = outcome.ms_per_token;
    const double dense = outcome.dense_ms.value_or(0);
    const bool was_dense = result.realised.kappa >= 1 && result.realised.rho >= 1;
    const bool attained = timed && measured <= 1.1 * target &&
                          (measured >= 0.9 * target || target >= dense || was_dense);
    json["latency"] = {{"target_ms", target},
                       {"measured_ms", timed ? Json(rounded(measured)) : Json()},
                       {"attained", attained},
                       {"fastest_ms", rounded(outcome.fastest_ms.value_or(0))},
                       {"dense_ms", rounded(dense)}};
  }
  if (with_actions) json["actions"] = actions_of(choice.tokens);
  return json;
}

Json CompletionResponse::actions_of(const std::vector<TokenOutput>& tokens) const {
  Json list = Json::array();
  for (const TokenOutput& token : tokens) {
    if (!token.action) continue;
    list.push_back({{"token", token.token},
                    {"text", token.text},
                    {"action", to_string(*token.action)},
                    {"effective", token.effective}});
  }
  return list;
}

// Of a token that the tokenizer does not have, nothing.
std::string CompletionResponse::bytes_of(int32_t token) const {
  return served_.tokenizer->has_token(token) ? served_.tokenizer->token_bytes(token) : "";
}

std::string CompletionResponse::shown(int32_t token) const {
  const std::string bytes = bytes_of(token);
  if (is_valid_utf8(bytes)) return bytes;
  std::string text = "bytes:";
  for (const char c : bytes) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return text;
}

Json CompletionResponse::logprobs_of(Choice& choice, const std::vector<TokenOutput>& tokens) const {
  return request_.chat ? chat_logprobs(tokens) : completion_logprobs(choice, tokens);
}

Json CompletionResponse::completion_logprobs(Choice& choice,
                                             const std::vector<TokenOutput>& tokens) const {
  Json names = Json::array(), log_probs = Json::array(), tops = Json::array(),
       offsets = Json::array();
  for (const TokenOutput& token : tokens) {
    const std::string name = shown(token.token);
    names.push_back(name);
    const std::string text = choice.spoken->push(token.token), own = bytes_of(token.token);
    const int64_t before = choice.offset;
    choice.offset += characters(text);
    // What was held back comes out before the text of the token that settles it.
    const bool at_end = is_valid_utf8(own) && text.ends_with(own);
    offsets.push_back(at_end ? choice.offset - characters(own) : before);
    if (!token.log_prob) {
      log_probs.push_back(nullptr);
      tops.push_back(nullptr);
      continue;
    }
    log_probs.push_back(*token.log_prob);
    // The token itself is always among them; of two tokens with one text the likelier stands.
    Json top = Json::object();
    for (const TokenLogProb& other : token.top)
      if (!top.contains(shown(other.token))) top[shown(other.token)] = other.log_prob;
    if (!top.contains(name)) top[name] = *token.log_prob;
    tops.push_back(std::move(top));
  }
  return {{"tokens", std::move(names)},
          {"token_logprobs", std::move(log_probs)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

Json CompletionResponse::chat_logprobs(const std::vector<TokenOutput>& tokens) const {
  const auto entry = [&](int32_t token, float log_prob) {
    const std::string bytes = bytes_of(token);
    Json list = Json::array();
    for (const char c : bytes) list.push_back(static_cast<unsigned char>(c));
    std::string text;
    append_lossy_utf8(bytes, text);
    return Json{{"token", text}, {"logprob", log_prob}, {"bytes", std::move(list)}};
  };
  Json content = Json::array();
  for (const TokenOutput& token : tokens) {
    Json json = entry(token.token, token.log_prob.value_or(0));
    json["top_logprobs"] = Json::array();
    for (const TokenLogProb& other : token.top)
      json["top_logprobs"].push_back(entry(other.token, other.log_prob));
    content.push_back(std::move(json));
  }
  return {{"content", std::move(content)}};
}

Json CompletionResponse::usage() const {
  int64_t prompt = 0, answer = 0, cached = 0;
  for (size_t i = 0; i < choices_.size(); ++i) {
    const JobRequest& job = request_.jobs[i];
    // The choices of one prompt share it.
    if (i % static_cast<size_t>(request_.choices_per_prompt) == 0) {
      prompt += static_cast<int64_t>(job.prompt.size() + job.options.given.size());
      cached += choices_[i].outcome->cached_tokens;
    }
    answer += answer_tokens(*choices_[i].outcome, job);
  }
  return {{"prompt_tokens", prompt},
          {"completion_tokens", answer},
          {"total_tokens", prompt + answer},
          {"prompt_tokens_details", {{"cached_tokens", cached}}}};
}

}  // namespace sol
