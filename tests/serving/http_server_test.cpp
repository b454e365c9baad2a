// The server as a client sees it.
#include <gmock/gmock.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <future>
#include <regex>
#include <thread>

#include "base/file_io.h"
#include "served.h"

namespace sol::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

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
  request["stream_options"] = {{"include_usage", true}, {"include_obfuscation", false}};
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

TEST(HttpServer, FieldsThatClientsSendAtTheirDefaultsChangeNothing) {
  const Json plain = completion({{"max_tokens", 4}, {"seed", 1}});
  Json padded = plain;
  padded.update({{"store", false},
                 {"tools", Json::array()},
                 {"metadata", Json::object()},
                 {"response_format", {{"type", "text"}}}});
  const auto answer = server().post("/v1/completions", padded);
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.json["choices"][0]["text"],
            server().post("/v1/completions", plain).json["choices"][0]["text"]);
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

// Of many sequences together somebody keeps every channel, from the first token on.
TEST(HttpServer, ATimeLowersNoChannelsForManySequences) {
  SchedulerOptions options = TestServer::default_options();
  options.batch = 8;
  const TestServer wide(options);
  for (const int choices : {4, 5}) {
    const auto answer = wide.post(
        complete,
        completion({{"max_tokens", 12},
                    {"n", choices},
                    {"ignore_eos", true},
                    {"sol", {{"ms_per_token", 7}, {"policy", "fixed"}, {"actions", true}}}}));
    ASSERT_EQ(answer.status, 200) << answer.body;
    for (const Json& choice : answer.json["choices"]) {
      int lowered = 0;
      for (const Json& action : choice["sol"]["actions"])
        lowered += action["action"].get<std::string>().find("-s100-") == std::string::npos;
      EXPECT_EQ(lowered > 0, choices <= 4) << choice;
    }
  }
}

// The learned policy does not meet a budget of everything exactly; nobody asked it to save.
TEST(HttpServer, ATimeThatADenseRunMeetsIsDense) {
  for (const char* policy : {"learned", "fixed"}) {
    const auto answer = server().post(
        "/v1/completions",
        completion({{"max_tokens", 40},
                    {"ignore_eos", true},
                    {"sol", {{"ms_per_token", 1e6}, {"policy", policy}, {"actions", true}}}}));
    ASSERT_EQ(answer.status, 200) << answer.body;
    const Json& sol = answer.json["choices"][0]["sol"];
    ASSERT_EQ(sol["actions"].size(), 40u);
    for (const Json& action : sol["actions"]) EXPECT_EQ(action["action"], "k100-s100-q16");
    EXPECT_EQ(sol["refresh_share"], 0);
    EXPECT_EQ(sol["policy"], policy);
  }
}

// What is shown as a range's end may be asked for.
TEST(HttpServer, TheEndsOfRangesAreTaken) {
  static const TestServer without(TestServer::default_options(), {}, false);
  const auto ask = [](const TestServer& server, const Json& sol) {
    return server.post("/v1/completions", completion({{"max_tokens", 1}, {"sol", sol}}));
  };
  for (const TestServer* server :
       {static_cast<const TestServer*>(&sol::test::server()), &without}) {
    const Json sol = server->get("/v1/models").json["data"][0]["sol"];
    for (const auto& [field, range] : sol["axes"].items())
      for (const char* end : {"low", "high"})
        EXPECT_EQ(ask(*server, {{field, range[end]}}).status, 200) << field << range;
    for (const char* end : {"low", "high"})
      EXPECT_EQ(ask(*server, {{"budget", sol["budget"][end]}}).status, 200) << sol["budget"];
    // In an error: "... 0.2657..0.9414, not ..."
    for (const char* field : {"budget", "keep", "prune"}) {
      const auto refused = ask(*server, {{field, 1e-5}});
      ASSERT_EQ(refused.status, 400) << refused.body;
      const std::string message = refused.json["error"]["message"];
      const size_t dots = message.find("..");
      ASSERT_NE(dots, std::string::npos) << message;
      const size_t begin = message.rfind(' ', dots) + 1;
      for (const size_t at : {begin, dots + 2})
        EXPECT_EQ(ask(*server, {{field, std::stod(message.substr(at))}}).status, 200) << message;
    }
  }
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
  EXPECT_EQ(server().get("/v1/models/default").json, model);
  EXPECT_EQ(server().get("/v1/models/other").status, 404);
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
  // A request is counted once its answer has been sent, so the next one may come before that.
  const std::string counted = "sol_requests_total{path=\"/v1/completions\",status=\"200\"}";
  std::string metrics;
  for (int tries = 0; tries < 1000 && metrics.find(counted) == std::string::npos; ++tries) {
    if (tries > 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    metrics = server().get("/metrics").body;
  }
  EXPECT_THAT(metrics, AllOf(HasSubstr(counted), HasSubstr("sol_generated_tokens_total")));
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
  EXPECT_THAT(refused.headers, testing::Contains(testing::Pair("WWW-Authenticate", "Bearer")));
  for (const char* key : {"Bearer %73ecret", "Bearer\tsecret", "Basic secret", "Bearer SECRET"})
    EXPECT_EQ(locked.client().Get("/v1/models", {{"Authorization", key}})->status, 401) << key;
  for (const char* key : {"Bearer secret", "bearer secret", "BEARER  secret"}) {
    const auto allowed = locked.client().Get("/v1/models", {{"Authorization", key}});
    ASSERT_TRUE(allowed);
    EXPECT_EQ(allowed->status, 200) << key;
    EXPECT_EQ(locked.client().Head("/v1/models", {{"Authorization", key}})->status, 200) << key;
  }
  EXPECT_EQ(locked.client().Head("/health")->status, 200);
  EXPECT_EQ(locked.client().Head("/v1/models")->status, 401);
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

// Every example of docs/http-api.md gives the status, and the error's code, that stand behind it.
TEST(HttpServer, DocumentedExamplesWork) {
  const std::string text = read_file(source_dir() / "docs/http-api.md");
  static const std::regex block("```http\n(POST|GET) (\\S+) -> (\\d+)( \\w+)?\n([^`]*)```");
  int examples = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), block), end; it != end; ++it) {
    ++examples;
    const std::string path = (*it)[2], code = (*it)[4], body = (*it)[5];
    const bool read = (*it)[1] == "GET";
    EXPECT_TRUE(!read || body.empty()) << body;
    const auto answer = read ? server().get(path) : server().post(path, body);
    EXPECT_EQ(answer.status, std::stoi((*it)[3])) << body << answer.body;
    if (body.find("\"stream\"") != std::string::npos) {
      EXPECT_EQ(events_of(answer.body).back(), "[DONE]");
    } else if (answer.status != 200) {
      ASSERT_FALSE(code.empty()) << body;
      EXPECT_EQ(answer.json["error"]["code"], code.substr(1)) << body;
    } else {
      EXPECT_FALSE(answer.json.is_discarded()) << answer.body;
      EXPECT_FALSE(answer.json.contains("error")) << answer.body;
      EXPECT_EQ(answer.json.contains("choices"), path.ends_with("completions")) << answer.body;
    }
  }
  EXPECT_GE(examples, 14);
}

}  // namespace
}  // namespace sol::test
