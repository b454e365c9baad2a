#include "serve_load/answer_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "sol/action.h"

namespace sol::load {
namespace {

// By status, as the documentation's table has them.
const std::map<int, std::string> error_types{
    {400, "invalid_request_error"}, {401, "authentication_error"},  {403, "invalid_request_error"},
    {404, "invalid_request_error"}, {405, "invalid_request_error"}, {408, "invalid_request_error"},
    {413, "invalid_request_error"}, {414, "invalid_request_error"}, {415, "invalid_request_error"},
    {417, "invalid_request_error"}, {431, "invalid_request_error"}, {429, "rate_limit_error"},
    {500, "server_error"},          {501, "invalid_request_error"}, {503, "server_error"},
    {505, "invalid_request_error"}};

constexpr std::array axes{"keep", "prune", "bits"};

double unit_of(const char* axis) {
  return axis == axes[2] ? 16.0 : 1.0;
}

class AnswerCheck {
 public:
  AnswerCheck(const Request& request, const Answer& answer)
      : body_(request.body), answer_(answer), faults_(answer.malformed) {}

  std::vector<std::string> run() {
    if (body_.value("stream", false)) require(answer_.done, "the stream ends without [DONE]");
    const auto wanted = body_.value("n", size_t{1});
    require(answer_.choices.size() == wanted, "{} choices instead of {}", answer_.choices.size(),
            wanted);
    for (const ChoiceAnswer& choice : answer_.choices) check(choice);
    check_usage();
    return std::move(faults_);
  }

 private:
  template <typename... Args>
  void require(bool held, fmt::format_string<Args...> format, Args&&... args) {
    if (!held) faults_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void check(const ChoiceAnswer& choice) {
    require(choice.finish_reason == "stop" || choice.finish_reason == "length",
            "finish_reason is {}", to_text(choice.finish_reason));
    if (choice.sol.is_null()) return require(false, "a choice without \"sol\"");
    const auto steps = choice.sol.at("steps").get<int64_t>();
    const auto most = body_["max_tokens"].get<int64_t>();
    require(steps >= 1 && steps <= most, "{} steps for max_tokens {}", steps, most);
    if (choice.finish_reason == "length")
      require(steps == most, "ended for its length after {} of {} tokens", steps, most);
    else
      require(body_.contains("stop") || !body_.value("ignore_eos", false),
              "stopped without a reason to");
    steps_ += steps;
    require(!body_.contains("seed") || choice.sol["seed"] == body_["seed"], "another seed");
    check_tokens(choice, steps);
    check_realised(choice);
    check_actions(choice, steps);
    check_latency(choice);
    require(choice.sol["ms_per_token"].is_number() == (steps > 1), "ms_per_token is {}",
            to_text(choice.sol["ms_per_token"]));
  }

  void check_tokens(const ChoiceAnswer& choice, int64_t steps) {
    const bool asked = body_.contains("logprobs") && body_["logprobs"] != false;
    if (!asked) return require(choice.tokens.empty(), "log-probabilities that nobody asked for");
    int64_t expected = steps;
    if (body_.value("echo", false)) expected += answer_.usage.at("prompt_tokens").get<int64_t>();
    require(static_cast<int64_t>(choice.tokens.size()) == expected,
            "log-probabilities of {} tokens instead of {}", choice.tokens.size(), expected);
  }

  void check_realised(const ChoiceAnswer& choice) {
    const Json& realised = choice.sol["realised"];
    const bool counts = choice.sol["effective_steps"].get<int64_t>() > 0;
    require(realised.is_null() != counts, "realised is {} with {} steps that count",
            to_text(realised), to_text(choice.sol["effective_steps"]));
    if (!counts || !realised.is_object()) return;
    const Json sol = body_.value("sol", Json::object());
    const Json& requested = choice.sol["requested"];
    const bool constant = sol.contains("fixed") || !requested.contains("budget");
    const bool averaged = sol.contains("keep") || sol.contains("prune") || sol.contains("bits");
    for (const char* axis : axes) {
      const double got = realised[axis].get<double>() / unit_of(axis);
      require(got > 0 && got <= 1.0 + 1e-6, "realised {} is {}", axis, got);
      if (!constant || averaged || sol.contains("ms_per_token")) continue;
      const double asked = requested[axis].get<double>() / unit_of(axis);
      require(std::abs(got - asked) < 1e-4, "realised {} is {}, but every step had {}", axis, got,
              asked);
    }
  }

  // Their texts and averages are what the rest of the answer says.
  void check_actions(const ChoiceAnswer& choice, int64_t steps) {
    const bool asked = body_.contains("sol") && body_["sol"].value("actions", false);
    if (!asked) return require(choice.actions.empty(), "actions that nobody asked for");
    require(static_cast<int64_t>(choice.actions.size()) == steps, "{} actions of {} steps",
            choice.actions.size(), steps);
    std::string text;
    std::array<double, 3> sums{};
    int64_t counted = 0;
    for (const Json& entry : choice.actions) {
      text += entry.at("text").get<std::string>();
      if (!entry.at("effective").get<bool>()) continue;
      const Action action = parse_action(entry.at("action").get<std::string>());
      const std::array<float, 3> shares{action.kappa, action.rho, action.eta()};
      for (size_t i = 0; i < 3; ++i) sums[i] += static_cast<double>(shares[i]);
      ++counted;
    }
    if (!body_.value("echo", false))
      require(choice.text.starts_with(text), "the actions' texts are not the answer's");
    require(counted == choice.sol["effective_steps"], "{} of the actions count instead of {}",
            counted, to_text(choice.sol["effective_steps"]));
    for (size_t i = 0; i < 3 && counted > 0; ++i) {
      const double said = choice.sol["realised"][axes[i]].get<double>() / unit_of(axes[i]);
      require(std::abs(sums[i] / static_cast<double>(counted) - said) < 1e-4,
              "realised {} is not the actions' average", axes[i]);
    }
  }

  void check_latency(const ChoiceAnswer& choice) {
    const bool asked = body_.contains("sol") && body_["sol"].contains("ms_per_token");
    require(choice.sol.contains("latency") == asked, "\"latency\" is {}",
            asked ? "missing" : "there unasked");
    if (!asked || !choice.sol.contains("latency")) return;
    const Json& latency = choice.sol["latency"];
    require(latency["measured_ms"] == choice.sol["ms_per_token"], "two times for one answer");
    if (!latency["measured_ms"].is_number()) return;
    const double target = latency["target_ms"].get<double>();
    const double ratio = latency["measured_ms"].get<double>() / target;
    const bool below_dense = target < latency["dense_ms"].get<double>();
    // The numbers shown are rounded: near the bounds they do not tell.
    if (std::abs(ratio - 1.1) < 2e-3 || std::abs(ratio - 0.9) < 2e-3) return;
    require(latency["attained"] == (ratio <= 1.1 && (ratio >= 0.9 || !below_dense)),
            "\"attained\" is {}, but {} was measured for {}", to_text(latency["attained"]),
            to_text(latency["measured_ms"]), target);
  }

  void check_usage() {
    const bool streams = body_.value("stream", false);
    const bool asked = !streams || (body_.contains("stream_options") &&
                                    body_["stream_options"].value("include_usage", false));
    require(answer_.usage.is_null() != asked, "usage is {}", to_text(answer_.usage));
    if (!asked || !answer_.usage.is_object()) return;
    const auto prompt = answer_.usage.at("prompt_tokens").get<int64_t>();
    const auto answered = answer_.usage.at("completion_tokens").get<int64_t>();
    require(answered == steps_, "usage has {} tokens, the choices {}", answered, steps_);
    require(answer_.usage.at("total_tokens") == prompt + answered, "usage does not add up");
    const auto cached = answer_.usage.at("prompt_tokens_details").at("cached_tokens");
    require(cached >= 0 && cached < prompt, "{} of {} prompt tokens cached", to_text(cached),
            prompt);
  }

  const Json& body_;
  const Answer& answer_;
  std::vector<std::string> faults_;
  int64_t steps_ = 0;
};

}  // namespace

std::vector<std::string> faults_of_answer(const Request& request, const Answer& answer) {
  try {
    return AnswerCheck(request, answer).run();
  } catch (const std::exception& error) {
    return {fmt::format("a field is missing or has another type: {}", json_reason(error.what()))};
  }
}

std::vector<std::string> faults_of_error(int status, const Json& error, int retry_after) {
  std::vector<std::string> faults;
  const auto type = error_types.find(status);
  if (type == error_types.end()) return {fmt::format("status {} is not documented", status)};
  if (!error.is_object()) return {fmt::format("status {} without an error object", status)};
  const auto is_text = [&](const char* field, bool or_null) {
    const auto value = error.find(field);
    return value != error.end() && ((or_null && value->is_null()) ||
                                    (value->is_string() && !value->get<std::string>().empty()));
  };
  if (!is_text("message", false)) faults.push_back("an error without a message");
  if (!is_text("param", true) || !is_text("code", true))
    faults.push_back("an error without \"param\" or \"code\"");
  if (error.value("type", std::string()) != type->second)
    faults.push_back(fmt::format("status {} with type {}", status, to_text(error["type"])));
  if (status == 429 && (retry_after < 1 || retry_after > 60))
    faults.push_back(fmt::format("429 with Retry-After {}", retry_after));
  return faults;
}

}  // namespace sol::load
