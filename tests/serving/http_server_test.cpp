// The server as a client sees it.
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <future>
#include <regex>

#include "base/file_io.h"
#include "served.h"

namespace sol::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// Loading takes longer than most tests; none of them changes the server.
TestServer& server() {
  static auto* const shared = new TestServer;
  return *shared;
}

Json completion(Json fields) {
  fields["prompt"] = fields.value("prompt", Json("The old house stood at the end of the village"));
  return fields;
}

std::string text_of(const TestServer::Answer& answer, size_t choice = 0) {
  return answer.json.at("choices").at(choice).at("text");
}

TEST(HttpServer, GreedyTextIsThatOfGeneration) {
  const ServedModel& served = server().served();
  const std::string prompt = "It was a dark night, and the wind";
  GenerationOptions options;
  options.sequence = served.sequence;
  options.horizon = served.horizon;
  options.max_tokens = 40;
  options.ignore_end = true;
  options.budget = served.controller->budget_for_net_keep(0.6);
  options.make_up = true;
  const GenerationResult expected =
      generate(*served.model, *served.learned, served.tokenizer->encode(prompt), options);

  const auto answer =
      server().post("/v1/completions", {{"prompt", prompt},
                                        {"max_tokens", 40},
                                        {"temperature", 0},
                                        {"ignore_eos", true},
                                        {"sol", {{"budget", 0.6}, {"actions", true}}}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(text_of(answer), served.tokenizer->decode(expected.tokens, true));
  const Json& sol = answer.json["choices"][0]["sol"];
  EXPECT_EQ(sol["policy"], "learned");
  EXPECT_EQ(sol["steps"], 40);
  EXPECT_EQ(sol["effective_steps"], expected.effective_steps);
  EXPECT_NEAR(sol["realised"]["keep"].get<double>(), static_cast<double>(expected.realised.kappa),
              1e-5);
  EXPECT_NEAR(sol["realised"]["prune"].get<double>(), static_cast<double>(expected.realised.rho),
              1e-5);
  EXPECT_EQ(sol["actions"].size(), 40u);
  std::string spoken;
  for (const Json& action : sol["actions"]) spoken += action["text"].get<std::string>();
  EXPECT_THAT(text_of(answer), StartsWith(spoken));
  EXPECT_EQ(answer.json["usage"]["completion_tokens"], 40);
  EXPECT_EQ(answer.json["choices"][0]["finish_reason"], "length");
}

TEST(HttpServer, StreamsTheSameText) {
  Json request =
      completion({{"max_tokens", 30}, {"seed", 5}, {"logprobs", 1}, {"sol", {{"keep", 0.5}}}});
  const auto whole = server().post("/v1/completions", request);
  request["stream"] = true;
  request["stream_options"] = {{"include_usage", true}};
  const auto stream = server().post("/v1/completions", request);
  ASSERT_EQ(stream.status, 200) << stream.body;
  const std::vector<std::string> events = events_of(stream.body);
  ASSERT_GE(events.size(), 4u);
  EXPECT_EQ(events.back(), "[DONE]");
  std::string text;
  size_t tokens = 0;
  for (size_t i = 0; i + 2 < events.size(); ++i) {
    const Json event = Json::parse(events[i]);
    EXPECT_EQ(event["object"], "text_completion");
    EXPECT_TRUE(event["usage"].is_null());
    text += event["choices"][0]["text"];
    if (!event["choices"][0]["logprobs"].is_null())
      tokens += event["choices"][0]["logprobs"]["tokens"].size();
  }
  EXPECT_EQ(text, text_of(whole));
  EXPECT_EQ(tokens, whole.json["choices"][0]["logprobs"]["tokens"].size());
  const Json usage = Json::parse(events[events.size() - 2]);
  EXPECT_TRUE(usage["choices"].empty());
  EXPECT_EQ(usage["usage"]["completion_tokens"], whole.json["usage"]["completion_tokens"]);
  const Json last = Json::parse(events[events.size() - 3]);
  EXPECT_FALSE(last["choices"][0]["finish_reason"].is_null());
  EXPECT_EQ(last["choices"][0]["sol"]["realised"], whole.json["choices"][0]["sol"]["realised"]);
}

// The same seed and budget give the same text alone, beside others, and on a shared prefix.
TEST(HttpServer, LoadChangesNoBitWithDeterministicProducts) {
  std::vector<Json> requests;
  for (int i = 0; i < 6; ++i)
    requests.push_back(completion(
        {{"max_tokens", 24 + 4 * i},
         {"seed", i},
         {"sol", i % 2 ? Json{{"budget", 0.5 + 0.05 * i}} : Json{{"fixed", "k030-s060-q6"}}}}));
  requests[3]["prompt"] = std::string(300, 'a') + " long ago";
  std::vector<std::string> alone;
  for (const Json& request : requests) {
    TestServer fresh;
    alone.push_back(text_of(fresh.post("/v1/completions", request)));
  }
  std::vector<std::future<std::string>> together;
  for (const Json& request : requests)
    together.push_back(std::async(
        std::launch::async, [&] { return text_of(server().post("/v1/completions", request)); }));
  for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(together[i].get(), alone[i]) << i;
}

TEST(HttpServer, PromptsThatBeginAlikeAreComputedOnce) {
  std::string text = "Once upon a time there was a very long beginning that many shared. ";
  text += text + text;
  const auto first =
      server().post("/v1/completions", {{"prompt", text + "One"}, {"max_tokens", 4}});
  const auto second =
      server().post("/v1/completions", {{"prompt", text + "Two"}, {"max_tokens", 4}});
  EXPECT_EQ(first.json["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
  EXPECT_GT(second.json["usage"]["prompt_tokens_details"]["cached_tokens"], 30);
}

TEST(HttpServer, ChoicesAreDrawnApartAndNumberedThroughThePrompts) {
  const auto answer = server().post(
      "/v1/completions",
      {{"prompt", {"The sea", "The hill"}}, {"n", 2}, {"max_tokens", 20}, {"seed", 3}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  ASSERT_EQ(answer.json["choices"].size(), 4u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(answer.json["choices"][i]["index"], i);
  EXPECT_NE(text_of(answer, 0), text_of(answer, 1));
  EXPECT_NE(text_of(answer, 2), text_of(answer, 3));
  const auto again = server().post(
      "/v1/completions",
      {{"prompt", {"The sea", "The hill"}}, {"n", 2}, {"max_tokens", 20}, {"seed", 3}});
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(text_of(answer, i), text_of(again, i));
}

TEST(HttpServer, StopsBeforeAStopText) {
  const auto whole =
      server().post("/v1/completions",
                    completion({{"max_tokens", 60}, {"temperature", 0}, {"ignore_eos", true}}));
  const std::string text = text_of(whole);
  const std::string stop = text.substr(text.size() / 2, 4);
  const auto stopped = server().post(
      "/v1/completions",
      completion(
          {{"max_tokens", 60}, {"temperature", 0}, {"ignore_eos", true}, {"stop", {stop, "@@@"}}}));
  EXPECT_EQ(text_of(stopped), text.substr(0, text.find(stop)));
  EXPECT_EQ(stopped.json["choices"][0]["finish_reason"], "stop");
}

// As lm-evaluation-harness' local-completions asks and reads.
TEST(HttpServer, ScoresPromptsAsTheHarnessAsks) {
  const ServedModel& served = server().served();
  const std::vector<int32_t> ids =
      served.tokenizer->encode("The village lies on the river, and its church was built in 1820.");
  Json request{{"prompt", Json::array({ids, std::vector<int32_t>(ids.begin(), ids.begin() + 9)})},
               {"max_tokens", 1},
               {"logprobs", 1},
               {"echo", true},
               {"temperature", 0},
               {"seed", 1234}};
  const auto answer = server().post("/v1/completions", request);
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json& logprobs = answer.json["choices"][0]["logprobs"];
  ASSERT_EQ(logprobs["token_logprobs"].size(), ids.size() + 1);
  EXPECT_EQ(answer.json["choices"][1]["logprobs"]["token_logprobs"].size(), 10u);
  EXPECT_TRUE(logprobs["token_logprobs"][0].is_null());
  EXPECT_TRUE(logprobs["top_logprobs"][0].is_null());

  // The engine's own, in one dense pass.
  std::vector<float> expected(ids.size() - 1);
  auto sequence = served.model->create(served.sequence);
  ExtendItem item{sequence.get(), ids, {}};
  for (size_t i = 0; i + 1 < ids.size(); ++i)
    item.wanted.push_back({i, {.target = ids[i + 1], .log_prob = &expected[i]}});
  {
    // The server is idle: nobody else uses the model.
    ASSERT_TRUE(server().becomes_idle());
    served.model->extend({&item, 1});
  }
  std::string spoken;
  for (size_t i = 0; i < ids.size() + 1; ++i) {
    spoken += logprobs["tokens"][i].get<std::string>();
    if (i == 0) continue;
    const double log_prob = logprobs["token_logprobs"][i];
    if (i < ids.size()) {
      EXPECT_NEAR(log_prob, static_cast<double>(expected[i - 1]), 1e-4) << i;
    }
    double top = -1e9;
    for (const auto& [token, value] : logprobs["top_logprobs"][i].items())
      top = std::max(top, value.get<double>());
    EXPECT_GE(top, log_prob);
    EXPECT_TRUE(logprobs["top_logprobs"][i].contains(logprobs["tokens"][i].get<std::string>()));
  }
  EXPECT_THAT(spoken, HasSubstr("The village lies on the river, and its church"));

  // Step by step under the dense action it is the same; under a sparse one it is not.
  request["prompt"] = ids;
  request["max_tokens"] = 0;
  request["sol"] = {{"fixed", "k100-s100-q16"}, {"scoring", "decode"}, {"scored_from", 4}};
  const auto dense = server().post("/v1/completions", request);
  request["sol"]["fixed"] = "k010-s030-q4";
  const auto sparse = server().post("/v1/completions", request);
  ASSERT_EQ(dense.status, 200) << dense.body;
  const Json& steps = dense.json["choices"][0]["logprobs"]["token_logprobs"];
  ASSERT_EQ(steps.size(), ids.size());
  double difference = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(steps[i].is_null(), i < 4) << i;
    if (i < 4) continue;
    EXPECT_NEAR(steps[i].get<double>(), static_cast<double>(expected[i - 1]), 1e-3) << i;
    difference +=
        std::abs(sparse.json["choices"][0]["logprobs"]["token_logprobs"][i].get<double>() -
                 steps[i].get<double>());
  }
  EXPECT_GT(difference, 0.5);
  EXPECT_EQ(dense.json["usage"]["completion_tokens"], 0);
  EXPECT_EQ(dense.json["usage"]["prompt_tokens"], ids.size());
}

TEST(HttpServer, APromptOfOneTokenIsScoredToo) {
  const auto answer = server().post(
      "/v1/completions", {{"prompt", {70}}, {"max_tokens", 1}, {"logprobs", 1}, {"echo", true}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.json["choices"][0]["logprobs"]["token_logprobs"].size(), 2u);
  EXPECT_TRUE(answer.json["choices"][0]["logprobs"]["token_logprobs"][0].is_null());
}

TEST(HttpServer, BytesOfSplitCharactersAreTold) {
  const auto answer =
      server().post("/v1/completions",
                    {{"prompt", "\U0001F600"}, {"max_tokens", 0}, {"logprobs", 0}, {"echo", true}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_THAT(text_of(answer), HasSubstr("\U0001F600"));
  std::string names;
  for (const Json& token : answer.json["choices"][0]["logprobs"]["tokens"])
    names += token.get<std::string>();
  EXPECT_THAT(names, HasSubstr("bytes:\\xf0"));
}

TEST(HttpServer, Chats) {
  Json request{{"messages", {{{"role", "user"}, {"content", "Hello"}}}},
               {"max_tokens", 8},
               {"seed", 1},
               {"logprobs", true},
               {"top_logprobs", 2},
               {"ignore_eos", true}};
  const auto answer = server().post("/v1/chat/completions", request);
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.json["object"], "chat.completion");
  const Json& choice = answer.json["choices"][0];
  EXPECT_EQ(choice["message"]["role"], "assistant");
  EXPECT_EQ(choice["logprobs"]["content"].size(), 8u);
  EXPECT_EQ(choice["logprobs"]["content"][0]["top_logprobs"].size(), 2u);
  EXPECT_FALSE(choice["logprobs"]["content"][0]["bytes"].empty());
  // The same as the template's text as a prompt.
  const ServedModel& served = server().served();
  const auto ids = served.tokenizer->encode(
      served.tokenizer->token_bytes(served.tokenizer->bos_token_id()) + "user: Hello\nassistant: ",
      {.add_special_tokens = false});
  const auto plain = server().post(
      "/v1/completions", {{"prompt", ids}, {"max_tokens", 8}, {"seed", 1}, {"ignore_eos", true}});
  EXPECT_EQ(choice["message"]["content"], text_of(plain));

  request["stream"] = true;
  const auto events = events_of(server().post("/v1/chat/completions", request).body);
  EXPECT_EQ(events.back(), "[DONE]");
  const Json first = Json::parse(events.front());
  EXPECT_EQ(first["object"], "chat.completion.chunk");
  EXPECT_EQ(first["choices"][0]["delta"]["role"], "assistant");
  std::string text;
  for (size_t i = 0; i + 1 < events.size(); ++i)
    text += Json::parse(events[i])["choices"][0]["delta"].value("content", "");
  EXPECT_EQ(text, text_of(plain));
}

TEST(HttpServer, EffortIsABudget) {
  const auto answer = server().post("/v1/completions",
                                    completion({{"reasoning_effort", "low"}, {"max_tokens", 4}}));
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.json["choices"][0]["sol"]["requested"]["budget"], 0.5);
}

TEST(HttpServer, TimesAreAnsweredWithWhatBecameOfThem) {
  const auto answer = server().post(
      "/v1/completions",
      completion({{"max_tokens", 33}, {"ignore_eos", true}, {"sol", {{"ms_per_token", 0.001}}}}));
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json& latency = answer.json["choices"][0]["sol"]["latency"];
  EXPECT_EQ(latency["target_ms"], 0.001);
  EXPECT_EQ(latency["attained"], false);
  EXPECT_GT(latency["measured_ms"], 0.001);
  const auto easy = server().post(
      "/v1/completions",
      completion({{"max_tokens", 33}, {"ignore_eos", true}, {"sol", {{"ms_per_token", 1e5}}}}));
  EXPECT_EQ(easy.json["choices"][0]["sol"]["latency"]["attained"], true);
}

TEST(HttpServer, RealisedBudgetsAreThoseAskedFor) {
  for (const char* policy : {"learned", "fixed"}) {
    for (const double budget : {0.4, 0.6, 0.8}) {
      const auto answer = server().post(
          "/v1/completions", completion({{"max_tokens", 96},
                                         {"seed", 2},
                                         {"ignore_eos", true},
                                         {"sol", {{"budget", budget}, {"policy", policy}}}}));
      ASSERT_EQ(answer.status, 200) << answer.body;
      EXPECT_NEAR(answer.json["choices"][0]["sol"]["realised"]["net"].get<double>(), budget, 0.05)
          << policy;
    }
    const auto answer = server().post(
        "/v1/completions",
        completion({{"max_tokens", 96},
                    {"seed", 3},
                    {"ignore_eos", true},
                    {"sol", {{"keep", 0.3}, {"prune", 0.8}, {"bits", 12}, {"policy", policy}}}}));
    ASSERT_EQ(answer.status, 200) << answer.body;
    const Json& realised = answer.json["choices"][0]["sol"]["realised"];
    EXPECT_NEAR(realised["keep"].get<double>(), 0.3, 0.05) << policy;
    EXPECT_NEAR(realised["prune"].get<double>(), 0.8, 0.05) << policy;
    EXPECT_NEAR(realised["bits"].get<double>() / 16, 12.0 / 16, 0.05) << policy;
  }
}

struct BadRequest {
  const char* name;
  const char* path;
  Json body;
  int status;
  const char* param;
  const char* code;
};
void PrintTo(const BadRequest& request, std::ostream* stream) {
  *stream << request.name;
}

class BadRequests : public testing::TestWithParam<BadRequest> {};

TEST_P(BadRequests, NameTheField) {
  const BadRequest& bad = GetParam();
  const auto answer = server().post(bad.path, bad.body);
  EXPECT_EQ(answer.status, bad.status) << answer.body;
  ASSERT_TRUE(answer.json.contains("error")) << answer.body;
  const Json& error = answer.json["error"];
  EXPECT_EQ(error["param"].is_null() ? "" : error["param"].get<std::string>(), bad.param)
      << answer.body;
  EXPECT_EQ(error["code"], bad.code) << answer.body;
  EXPECT_FALSE(error["message"].get<std::string>().empty());
  EXPECT_EQ(error["type"], "invalid_request_error");
}

constexpr const char* complete = "/v1/completions";
constexpr const char* chat = "/v1/chat/completions";
Json with_sol(Json sol) {
  return {{"prompt", "x"}, {"sol", std::move(sol)}};
}

INSTANTIATE_TEST_SUITE_P(
    All, BadRequests,
    testing::Values(
        BadRequest{"list", complete, Json::array(), 400, "the request", "invalid_type"},
        BadRequest{"no_prompt", complete, Json::object(), 400, "prompt", "missing"},
        BadRequest{"prompt_number", complete, {{"prompt", 3}}, 400, "prompt", "invalid_type"},
        BadRequest{"prompt_mixed", complete, {{"prompt", {1, "a"}}}, 400, "prompt", "invalid_type"},
        BadRequest{
            "prompt_empty", complete, {{"prompt", Json::array()}}, 400, "prompt", "invalid_type"},
        BadRequest{
            "token_unknown", complete, {{"prompt", {1000000}}}, 400, "prompt", "out_of_range"},
        BadRequest{"token_negative", complete, {{"prompt", {-1}}}, 400, "prompt", "invalid_type"},
        BadRequest{"model",
                   complete,
                   {{"prompt", "x"}, {"model", "gpt-4"}},
                   404,
                   "model",
                   "model_not_found"},
        BadRequest{"unknown",
                   complete,
                   {{"prompt", "x"}, {"temprature", 1}},
                   400,
                   "temprature",
                   "unknown_field"},
        BadRequest{"temperature",
                   complete,
                   {{"prompt", "x"}, {"temperature", 3}},
                   400,
                   "temperature",
                   "out_of_range"},
        BadRequest{"temperature_text",
                   complete,
                   {{"prompt", "x"}, {"temperature", "1"}},
                   400,
                   "temperature",
                   "invalid_type"},
        BadRequest{
            "top_p", complete, {{"prompt", "x"}, {"top_p", 0}}, 400, "top_p", "out_of_range"},
        BadRequest{"n", complete, {{"prompt", "x"}, {"n", 0}}, 400, "n", "out_of_range"},
        BadRequest{
            "n_large", complete, {{"prompt", "x"}, {"n", 100000000000}}, 400, "n", "out_of_range"},
        BadRequest{"seed", complete, {{"prompt", "x"}, {"seed", 1.5}}, 400, "seed", "invalid_type"},
        BadRequest{"seed_large",
                   complete,
                   {{"prompt", "x"}, {"seed", 18446744073709551615u}},
                   400,
                   "seed",
                   "out_of_range"},
        BadRequest{"too_long",
                   complete,
                   {{"prompt", "x"}, {"max_tokens", 600}},
                   400,
                   "prompt",
                   "context_length_exceeded"},
        BadRequest{"max_tokens",
                   complete,
                   {{"prompt", "x"}, {"max_tokens", -1}},
                   400,
                   "max_tokens",
                   "out_of_range"},
        BadRequest{"nothing",
                   complete,
                   {{"prompt", "x"}, {"max_tokens", 0}},
                   400,
                   "max_tokens",
                   "out_of_range"},
        BadRequest{
            "stop_empty", complete, {{"prompt", "x"}, {"stop", ""}}, 400, "stop", "invalid_value"},
        BadRequest{
            "stop_number", complete, {{"prompt", "x"}, {"stop", {1}}}, 400, "stop", "invalid_type"},
        BadRequest{"logprobs",
                   complete,
                   {{"prompt", "x"}, {"logprobs", 21}},
                   400,
                   "logprobs",
                   "out_of_range"},
        BadRequest{"echo_stream",
                   complete,
                   {{"prompt", "x"}, {"echo", true}, {"stream", true}},
                   400,
                   "echo",
                   "conflicting_fields"},
        BadRequest{"stream_options",
                   complete,
                   {{"prompt", "x"}, {"stream_options", {{"include_usage", true}}}},
                   400,
                   "stream_options",
                   "invalid_value"},
        BadRequest{"stream_option",
                   complete,
                   {{"prompt", "x"}, {"stream", true}, {"stream_options", {{"a", 1}}}},
                   400,
                   "stream_options.a",
                   "unknown_field"},
        BadRequest{"penalty",
                   complete,
                   {{"prompt", "x"}, {"presence_penalty", 0.5}},
                   400,
                   "presence_penalty",
                   "unsupported"},
        BadRequest{"logit_bias",
                   complete,
                   {{"prompt", "x"}, {"logit_bias", {{"5", 1}}}},
                   400,
                   "logit_bias",
                   "unsupported"},
        BadRequest{
            "best_of", complete, {{"prompt", "x"}, {"best_of", 2}}, 400, "best_of", "unsupported"},
        BadRequest{
            "too_many", complete, {{"prompt", "x"}, {"n", 128}}, 400, "", "too_many_prompts"},
        BadRequest{"effort",
                   complete,
                   {{"prompt", "x"}, {"reasoning_effort", "huge"}},
                   400,
                   "reasoning_effort",
                   "invalid_value"},
        BadRequest{"effort_and_sol",
                   complete,
                   {{"prompt", "x"}, {"reasoning_effort", "low"}, {"sol", {{"budget", 0.5}}}},
                   400,
                   "reasoning_effort",
                   "conflicting_fields"},
        BadRequest{
            "sol_text", complete, {{"prompt", "x"}, {"sol", "much"}}, 400, "sol", "invalid_type"},
        BadRequest{"sol_unknown", complete, with_sol({{"budgett", 0.5}}), 400, "sol.budgett",
                   "unknown_field"},
        BadRequest{"budget_high", complete, with_sol({{"budget", 1.2}}), 400, "sol.budget",
                   "out_of_range"},
        BadRequest{"budget_low", complete, with_sol({{"budget", 0.01}}), 400, "sol.budget",
                   "out_of_range"},
        BadRequest{"keep_low", complete, with_sol({{"keep", 0.001}}), 400, "sol.keep",
                   "out_of_range"},
        BadRequest{"bits_high", complete, with_sol({{"bits", 17}}), 400, "sol.bits",
                   "out_of_range"},
        BadRequest{"bits_low", complete, with_sol({{"bits", 2}}), 400, "sol.bits", "out_of_range"},
        BadRequest{"two_ways", complete, with_sol({{"budget", 0.5}, {"keep", 0.5}}), 400, "sol",
                   "conflicting_fields"},
        BadRequest{"fixed", complete, with_sol({{"fixed", "k050"}}), 400, "sol.fixed",
                   "invalid_value"},
        BadRequest{"fixed_policy", complete,
                   with_sol({{"fixed", "k050-s050-q8"}, {"policy", "fixed"}}), 400, "sol.policy",
                   "conflicting_fields"},
        BadRequest{"policy", complete, with_sol({{"budget", 0.5}, {"policy", "best"}}), 400,
                   "sol.policy", "invalid_value"},
        BadRequest{"ms", complete, with_sol({{"ms_per_token", 0}}), 400, "sol.ms_per_token",
                   "out_of_range"},
        BadRequest{"scoring", complete, with_sol({{"scoring", "decode"}}), 400, "sol.scoring",
                   "conflicting_fields"},
        BadRequest{"scored_from", complete, with_sol({{"scored_from", 2}}), 400, "sol.scored_from",
                   "conflicting_fields"},
        BadRequest{"no_messages", chat, Json::object(), 400, "messages", "missing"},
        BadRequest{
            "messages_empty", chat, {{"messages", Json::array()}}, 400, "messages", "invalid_type"},
        BadRequest{
            "role", chat, {{"messages", {{{"content", "x"}}}}}, 400, "messages[0].role", "missing"},
        BadRequest{"content",
                   chat,
                   {{"messages", {{{"role", "user"}, {"content", 3}}}}},
                   400,
                   "messages[0].content",
                   "invalid_type"},
        BadRequest{"image",
                   chat,
                   {{"messages", {{{"role", "user"}, {"content", {{{"type", "image_url"}}}}}}}},
                   400,
                   "messages[0].content",
                   "unsupported"},
        BadRequest{"prompt_in_chat",
                   chat,
                   {{"messages", {{{"role", "user"}, {"content", "x"}}}}, {"prompt", "x"}},
                   400,
                   "prompt",
                   "unknown_field"},
        BadRequest{"tools",
                   chat,
                   {{"messages", {{{"role", "user"}, {"content", "x"}}}}, {"tools", Json::array()}},
                   400,
                   "tools",
                   "unknown_field"},
        BadRequest{"top_logprobs",
                   chat,
                   {{"messages", {{{"role", "user"}, {"content", "x"}}}}, {"top_logprobs", 2}},
                   400,
                   "top_logprobs",
                   "invalid_value"},
        BadRequest{"tokens", "/detokenize", {{"tokens", {-1}}}, 400, "tokens", "out_of_range"},
        BadRequest{"tokenize", "/tokenize", Json::object(), 400, "prompt", "missing"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(HttpServer, WhatIsNoJsonIsAnError) {
  for (const char* body : {"", "{", "{\"prompt\": \"x\", \"prompt\": \"y\"}", "\xff\xfe", "null"}) {
    const auto answer = server().post(complete, std::string(body));
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_TRUE(answer.json.contains("error")) << answer.body;
  }
  // Shapes that would take minutes to build or a stack to print.
  const auto nested = [](int n) { return std::string(n, '[') + std::string(n, ']'); };
  std::string objects = "{\"messages\":[{}", fields = "{\"a0\":0";
  for (int i = 1; i < 300000; ++i) objects += ",{}";
  for (int i = 1; i < 300; ++i) fields += ",\"a" + std::to_string(i) + "\":0";
  for (const std::string& body :
       {nested(100000), "{\"tokens\":" + nested(100000) + "}", objects + "]}", fields + "}"})
    for (const char* path : {complete, "/detokenize"}) {
      const auto refused = server().post(path, body);
      EXPECT_EQ(refused.status, 400);
      EXPECT_EQ(refused.json["error"]["code"], "invalid_json") << refused.body;
    }
  EXPECT_EQ(
      server().post("/detokenize", std::string(R"({"tokens": [1, [[2]]]})")).json["error"]["code"],
      "out_of_range");
  EXPECT_EQ(server().get("/health").status, 200);
}

TEST(HttpServer, OtherPathsMethodsTypesAndHostsAreErrors) {
  EXPECT_EQ(server().get("/nope").json["error"]["code"], "not_found");
  EXPECT_EQ(server().get("/v1/completions").status, 405);
  EXPECT_EQ(server().post("/health", Json::object()).status, 405);
  auto client = server().client();
  auto result = client.Delete("/nope");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, 404);
  result = client.Delete("/v1/models");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, 405);
  result = client.Post(complete, R"({"prompt":"x"})", "text/plain");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, 415);
  result = client.Get("/health", {{"Host", "evil.example"}});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, 403);
}

TEST(HttpServer, DescribesItself) {
  const auto models = server().get("/v1/models");
  ASSERT_EQ(models.status, 200);
  const Json& model = models.json["data"][0];
  EXPECT_EQ(model["id"], "default");
  EXPECT_EQ(model["sol"]["chat"], true);
  EXPECT_EQ(model["sol"]["controller"]["name"], "2l-harsh");
  EXPECT_GT(model["sol"]["axes"]["bits"]["high"], 15);
  EXPECT_LT(model["sol"]["budget"]["low"], model["sol"]["budget"]["high"]);
  EXPECT_EQ(model["sol"]["latency"]["dense_ms"], 10);
  const auto page = server().get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, AllOf(StartsWith("<!doctype html>"), HasSubstr("</html>")));
  EXPECT_EQ(server().get("/style.css").status, 200);
  const auto info = server().get("/tokenizer_info");
  EXPECT_EQ(info.json["chat_template"], made_chat_template());
  const auto tokens =
      server().post("/tokenize", Json{{"prompt", "Hello there"}, {"add_special_tokens", false}});
  const auto text = server().post("/detokenize", Json{{"tokens", tokens.json["tokens"]}});
  EXPECT_EQ(text.json["prompt"], "Hello there");
  server().post(complete, completion({{"max_tokens", 2}}));
  EXPECT_THAT(server().get("/metrics").body,
              AllOf(HasSubstr("sol_requests_total{path=\"/v1/completions\",status=\"200\"}"),
                    HasSubstr("sol_generated_tokens_total")));
}

// What the harness' local-chat-completions and clients that send nulls say.
TEST(HttpServer, TakesWhatClientsAddWithoutMeaningAnything) {
  const auto answer = server().post(
      chat, {{"messages", {{{"role", "user"}, {"content", "Hello"}, {"type", "text"}}}},
             {"max_tokens", 2},
             {"tools", nullptr},
             {"sol", nullptr}});
  EXPECT_EQ(answer.status, 200) << answer.body;
}

// A chat that does not say how much must fit a server for one request at a time.
TEST(HttpServer, AChatWithoutALimitFits) {
  SchedulerOptions options = TestServer::default_options();
  options.batch = 1;
  options.cache_tokens = 512;
  TestServer narrow(options);
  const auto answer =
      narrow.post(chat, {{"messages", {{{"role", "user"}, {"content", "Hello"}}}}, {"stop", "e"}});
  EXPECT_EQ(answer.status, 200) << answer.body;
}

TEST(HttpServer, OffsetsPointIntoTheText) {
  const auto answer = server().post(complete, {{"prompt", "Gr\u00fc\u00dfe \U0001F600, said he."},
                                               {"max_tokens", 0},
                                               {"logprobs", 0},
                                               {"echo", true}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json& logprobs = answer.json["choices"][0]["logprobs"];
  std::u32string text;
  for (const char32_t c : U"Gr\u00fc\u00dfe \U0001F600, said he.") text += c;
  text.pop_back();
  for (size_t i = 0; i < logprobs["tokens"].size(); ++i) {
    const std::string token = logprobs["tokens"][i];
    const size_t offset = logprobs["text_offset"][i];
    ASSERT_LE(offset, text.size());
    if (token.size() == 1 && token[0] >= ' ') {
      EXPECT_EQ(text[offset], static_cast<char32_t>(token[0])) << i;
    }
  }
  EXPECT_EQ(logprobs["text_offset"][1], 0);  // the begin token is not text
  EXPECT_EQ(answer.json["choices"][0]["finish_reason"], "length");
}

TEST(HttpServer, AsksForItsKey) {
  HttpOptions http;
  http.api_key = "secret";
  TestServer locked(TestServer::default_options(), http);
  EXPECT_EQ(locked.get("/health").status, 200);
  EXPECT_EQ(locked.get("/").status, 200);
  const auto refused = locked.get("/v1/models");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.json["error"]["type"], "authentication_error");
  for (const char* key : {"Bearer secre", "Bearer secrets", "secret", "Bearer "}) {
    const auto result = locked.client().Get("/v1/models", {{"Authorization", key}});
    ASSERT_TRUE(result);
    EXPECT_EQ(result->status, 401) << key;
  }
  const auto allowed = locked.client().Get("/v1/models", {{"Authorization", "Bearer secret"}});
  ASSERT_TRUE(allowed);
  EXPECT_EQ(allowed->status, 200);
}

TEST(HttpServer, WithoutAControllerTheFixedPolicySpendsTheBudget) {
  TestServer plain(TestServer::default_options(), {}, false);
  const auto answer = plain.post(
      complete, completion({{"max_tokens", 64}, {"ignore_eos", true}, {"sol", {{"budget", 0.6}}}}));
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json& sol = answer.json["choices"][0]["sol"];
  EXPECT_EQ(sol["policy"], "fixed");
  EXPECT_NEAR(sol["realised"]["net"].get<double>(), 0.6, 0.03);
  const auto refused =
      plain.post(complete, completion({{"sol", {{"budget", 0.6}, {"policy", "learned"}}}}));
  EXPECT_EQ(refused.json["error"]["code"], "no_controller");
  const auto effort = plain.post(complete, completion({{"reasoning_effort", "low"}}));
  EXPECT_EQ(effort.json["error"]["code"], "not_configured");
}

TEST(HttpServer, LimitsBodies) {
  HttpOptions http;
  http.body_limit = 1000;
  TestServer small(TestServer::default_options(), http);
  const auto answer = small.post(complete, Json{{"prompt", std::string(5000, 'x')}});
  EXPECT_EQ(answer.status, 413);
  EXPECT_EQ(answer.json["error"]["code"], "body_too_large");
  EXPECT_EQ(small.get("/health").status, 200);
  EXPECT_EQ(small.post(complete, Json{{"prompt", "x"}, {"stop", std::string(1025, 'x')}}).status,
            413);
}

// Bytes as they are, for what no client library would send; returns what comes back until the
// server closes, or `seconds` are over.
class RawConnection {
 public:
  explicit RawConnection(const TestServer& server) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(server.port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
      throw std::runtime_error("connect failed");
    const timeval patience{0, 20000};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  ~RawConnection() { close(socket_); }

  bool send(const std::string& bytes) {
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t sent = ::send(socket_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return false;
      at += static_cast<size_t>(sent);
    }
    return true;
  }
  // Whether the server has closed within so many seconds; what it said is kept.
  bool closed_within(double seconds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (std::chrono::steady_clock::now() < end) {
      char buffer[4096];
      const ssize_t got = recv(socket_, buffer, sizeof(buffer), 0);
      if (got > 0)
        answer.append(buffer, static_cast<size_t>(got));
      else if (got == 0 || errno == ECONNRESET)
        return true;
    }
    return false;
  }
  std::string answer;

 private:
  int socket_;
};

// However a request is framed, it has one size and one time.
TEST(HttpServer, RequestsWithoutAnEndAreGivenUp) {
  HttpOptions http;
  http.body_limit = 100000;
  http.request_seconds = 0.5;
  TestServer small(TestServer::default_options(), http);
  const std::string head =
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
      "Content-Type: application/json\r\n";
  for (const std::string& begin :
       {std::string("GET /"), head + "X-Long: ", head + "Transfer-Encoding: chunked\r\n\r\n"}) {
    RawConnection connection(small);
    const bool chunked = begin.find("chunked") != std::string::npos;
    const std::string more =
        chunked ? "1000\r\n" + std::string(0x1000, ' ') + "\r\n" : std::string(4096, 'x');
    bool open = connection.send(begin);
    int64_t sent = 0;
    for (; open && sent < (64 << 20); sent += 4096) open = connection.send(more);
    EXPECT_FALSE(open && !connection.closed_within(2)) << begin;
    EXPECT_LT(sent, 40 << 20) << begin;  // what sockets buffer, and what is read and forgotten
  }
  // A byte at a time.
  RawConnection slow(small);
  bool closed = false;
  for (int i = 0; i < 60 && !closed; ++i) closed = !slow.send("a") || slow.closed_within(0.05);
  EXPECT_TRUE(closed);
  const auto compressed = small.client().Post(complete, {{"Content-Encoding", "gzip"}},
                                              std::string("\x1f\x8b"), "application/json");
  ASSERT_TRUE(compressed);
  EXPECT_EQ(compressed->status, 415);
  EXPECT_EQ(small.get("/health").status, 200);
}

// The body of a request that was refused unread is not the next request.
TEST(HttpServer, RefusedBodiesAreNotRequests) {
  RawConnection connection(server());
  const std::string inner = "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n";
  connection.send(
      "POST /v1/completions HTTP/1.1\r\nHost: evil.example\r\nContent-Type: text/plain\r\n"
      "Content-Length: " +
      std::to_string(inner.size()) + "\r\n\r\n" + inner);
  EXPECT_TRUE(connection.closed_within(3));
  EXPECT_THAT(connection.answer, HasSubstr(" 403 "));
  EXPECT_THAT(connection.answer, testing::Not(HasSubstr(" 200 ")));
}

TEST(HttpServer, RangesAndEncodingsOfAnswersAreIgnored) {
  const auto whole = server().client().Get(
      "/v1/models", {{"Range", "bytes=0-1,0-1"}, {"Accept-Encoding", "br, gzip"}});
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->status, 200);
  EXPECT_FALSE(whole->has_header("Content-Encoding"));
  EXPECT_FALSE(Json::parse(whole->body)["data"].empty());
}

// A stream whose first event has come, read on when asked to.
class OpenStream {
 public:
  OpenStream(const TestServer& server, const Json& request) {
    thread_ = std::thread([this, &server, body = request.dump()] {
      auto client = server.client();
      httplib::Request http;
      http.method = "POST";
      http.path = complete;
      http.headers = {{"Content-Type", "application/json"}};
      http.body = body;
      http.content_receiver = [this](const char* data, size_t size, uint64_t, uint64_t) {
        text_.append(data, size);
        if (!begun_.exchange(true)) first_.set_value();
        return !leave_;
      };
      client.send(http);
      if (!begun_.exchange(true)) first_.set_value();
    });
    first_.get_future().wait();
  }
  ~OpenStream() {
    leave();
    if (thread_.joinable()) thread_.join();
  }
  void leave() { leave_ = true; }
  std::string rest() {
    thread_.join();
    return text_;
  }

 private:
  std::promise<void> first_;
  std::atomic<bool> begun_{false}, leave_{false};
  std::string text_;
  std::thread thread_;
};

Json long_stream() {
  return completion({{"max_tokens", 480}, {"ignore_eos", true}, {"stream", true}});
}

TEST(HttpServer, AFullQueueIsSaidWithWhenToComeBack) {
  SchedulerOptions options = TestServer::default_options();
  options.batch = 1;
  options.queue = 1;
  TestServer narrow(options);
  OpenStream running(narrow, long_stream());
  auto waiting = std::async(std::launch::async, [&] {
    return narrow.post(complete, completion({{"max_tokens", 2}})).status;
  });
  while (narrow.metrics().gauges().queued == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const auto refused = narrow.post(complete, completion({{"max_tokens", 2}}));
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.json["error"]["code"], "queue_full");
  ASSERT_TRUE(refused.headers.contains("Retry-After"));
  EXPECT_GE(std::stoi(refused.headers.find("Retry-After")->second), 1);
  running.leave();
  EXPECT_EQ(waiting.get(), 200);
}

TEST(HttpServer, AClientThatLeavesFreesItsPlace) {
  TestServer fresh;
  {
    OpenStream stream(fresh, long_stream());
    // Gauges are set after the step that gave the first token.
    while (fresh.metrics().gauges().running != 1)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(fresh.becomes_idle());
  EXPECT_EQ(fresh.metrics().gauges().reserved_tokens, 0);
  // What is left of the cache are kept beginnings.
  EXPECT_LE(fresh.served().model->cache_use().blocks, 512u / 32u);
  // One that waits for the whole answer.
  auto client = fresh.client();
  client.set_read_timeout(0, 50000);
  client.Post(complete, completion({{"max_tokens", 480}, {"ignore_eos", true}}).dump(),
              "application/json");
  EXPECT_TRUE(fresh.becomes_idle());
  EXPECT_EQ(fresh.metrics().gauges().reserved_tokens, 0);
}

TEST(HttpServer, DrainsInOrder) {
  TestServer fresh;
  OpenStream stream(fresh, long_stream());
  fresh.http().refuse();
  const auto refused = fresh.post(complete, completion({{"max_tokens", 2}}));
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.json["error"]["code"], "shutting_down");
  EXPECT_EQ(fresh.get("/health").status, 503);
  fresh.scheduler().drain(60);
  EXPECT_EQ(events_of(stream.rest()).back(), "[DONE]");
}

TEST(HttpServer, WhatIsNotDoneWhenTheTimeIsUpEndsWithAnError) {
  TestServer fresh;
  OpenStream stream(fresh, long_stream());
  fresh.scheduler().drain(0);
  fresh.scheduler().stop();
  const auto events = events_of(stream.rest());
  ASSERT_FALSE(events.empty());
  EXPECT_THAT(events.back(), HasSubstr("shutting down"));
}

TEST(HttpServer, LoadsBeforeItServes) {
  Metrics metrics;
  HttpOptions http;
  http.port = 0;
  HttpServer loading(http, metrics);
  const int port = loading.start();
  httplib::Client client("127.0.0.1", port);
  for (const char* path : {"/health", "/v1/models"}) {
    const auto result = client.Get(path);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->status, 503);
    EXPECT_EQ(Json::parse(result->body)["error"]["code"], "loading");
  }
  const auto page = client.Get("/");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  EXPECT_THROW(
      {
        HttpOptions taken;
        taken.port = port;
        HttpServer(taken, metrics).start();
      },
      Error);
}

// Every example of docs/http-api.md gives the status that stands behind it.
TEST(HttpServer, DocumentedExamplesWork) {
  const std::string text = read_file(source_dir() / "docs/http-api.md");
  static const std::regex block("```http\n(POST|GET) (\\S+) -> (\\d+)\n([^`]*)```");
  int examples = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), block), end; it != end; ++it) {
    ++examples;
    const auto answer = server().post((*it)[2], std::string((*it)[4]));
    EXPECT_EQ(answer.status, std::stoi((*it)[3])) << (*it)[4] << answer.body;
    if (std::string((*it)[4]).find("\"stream\"") != std::string::npos) {
      EXPECT_EQ(events_of(answer.body).back(), "[DONE]");
    }
  }
  EXPECT_GE(examples, 12);
}

}  // namespace
}  // namespace sol::test
