// What is wrong with a request is said with the field's name.
#include <gmock/gmock.h>

#include "served.h"

namespace sol::test {
namespace {

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

Json with_sol(Json sol) {
  return {{"prompt", "x"}, {"sol", std::move(sol)}};
}

INSTANTIATE_TEST_SUITE_P(
    All, BadRequests,
    testing::Values(
        BadRequest{"list", complete, Json::array(), 400, "the request", "invalid_type"},
        BadRequest{"no_prompt", complete, Json::object(), 400, "prompt", "missing"},
        BadRequest{"prompt_number", complete, {{"prompt", 3}}, 400, "prompt", "invalid_type"},
        BadRequest{
            "prompt_mixed", complete, {{"prompt", {1, "a"}}}, 400, "prompt[1]", "invalid_type"},
        BadRequest{
            "prompts_mixed", complete, {{"prompt", {"a", 1}}}, 400, "prompt[1]", "invalid_type"},
        BadRequest{"ids_empty", complete, {{"prompt", {Json::array()}}}, 400, "prompt[0]", "empty"},
        BadRequest{"id_of_second", complete, Json::parse(R"({"prompt": [[70], [71, -1]]})"), 400,
                   "prompt[1][1]", "out_of_range"},
        BadRequest{"second_outside", complete, Json::parse(R"({"prompt": [[70], [1000000]]})"), 400,
                   "prompt[1][0]", "out_of_range"},
        BadRequest{"id_half", complete, {{"prompt", {70, 1.5}}}, 400, "prompt[1]", "invalid_type"},
        BadRequest{"id_huge", complete, {{"prompt", {70, 1e30}}}, 400, "prompt[1]", "out_of_range"},
        // Neither what is in them nor what follows them is read before their number.
        BadRequest{"prompts_many",
                   complete,
                   {{"prompt", std::vector<Json>(129, Json::array())}},
                   400,
                   "prompt",
                   "out_of_range"},
        BadRequest{"first_of_two_too_long",
                   complete,
                   {{"prompt", {std::string(4000, '~'), 1}}},
                   400,
                   "prompt[0]",
                   "context_length_exceeded"},
        BadRequest{"only_prompt_too_long",
                   complete,
                   {{"prompt", {std::vector<int>(600, 70)}}},
                   400,
                   "prompt[0]",
                   "context_length_exceeded"},
        BadRequest{
            "prompt_empty", complete, {{"prompt", Json::array()}}, 400, "prompt", "invalid_type"},
        BadRequest{"token_unknown",
                   complete,
                   {{"prompt", {70, 1000000}}},
                   400,
                   "prompt[1]",
                   "out_of_range"},
        BadRequest{
            "token_negative", complete, {{"prompt", {-1}}}, 400, "prompt[0]", "out_of_range"},
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
        BadRequest{"seed_beyond_63_bits",
                   complete,
                   {{"prompt", "x"}, {"seed", 18446744073709551615u}},
                   400,
                   "seed",
                   "out_of_range"},
        BadRequest{"seed_beyond_64_bits",
                   complete,
                   {{"prompt", "x"}, {"seed", 1e30}},
                   400,
                   "seed",
                   "out_of_range"},
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
                   "max_tokens",
                   "context_length_exceeded"},
        BadRequest{"prompt_too_long",
                   complete,
                   {{"prompt", std::vector<int>(600, 70)}, {"max_tokens", 1}},
                   400,
                   "prompt",
                   "context_length_exceeded"},
        BadRequest{"prompt_too_long_alone",
                   complete,
                   {{"prompt", std::vector<int>(600, 70)}},
                   400,
                   "prompt",
                   "context_length_exceeded"},
        BadRequest{
            "chat_too_long",
            chat,
            {{"messages", {{{"role", "user"}, {"content", "x"}}}}, {"max_completion_tokens", 600}},
            400,
            "max_completion_tokens",
            "context_length_exceeded"},
        BadRequest{"unknown_null",
                   complete,
                   {{"prompt", "x"}, {"temprature", nullptr}},
                   400,
                   "temprature",
                   "unknown_field"},
        BadRequest{"not_null",
                   complete,
                   {{"prompt", "x"}, {"parallel_tool_calls", false}},
                   400,
                   "parallel_tool_calls",
                   "unsupported"},
        BadRequest{"sol_unknown_null", complete, with_sol({{"budget", 0.5}, {"keeep", nullptr}}),
                   400, "sol.keeep", "unknown_field"},
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
        BadRequest{"stop_long",
                   complete,
                   {{"prompt", "x"}, {"stop", std::string(1025, 'x')}},
                   400,
                   "stop",
                   "out_of_range"},
        BadRequest{"second_stop_long",
                   complete,
                   {{"prompt", "x"}, {"stop", {"a", std::string(1025, 'x')}}},
                   400,
                   "stop[1]",
                   "out_of_range"},
        BadRequest{"stops_many",
                   complete,
                   {{"prompt", "x"}, {"stop", std::vector<std::string>(17, "x")}},
                   400,
                   "stop",
                   "out_of_range"},
        BadRequest{"user_long",
                   complete,
                   {{"prompt", "x"}, {"user", std::string(257, 'x')}},
                   400,
                   "user",
                   "out_of_range"},
        BadRequest{"only_stop_empty",
                   complete,
                   {{"prompt", "x"}, {"stop", {""}}},
                   400,
                   "stop[0]",
                   "invalid_value"},
        BadRequest{"stop_number",
                   complete,
                   {{"prompt", "x"}, {"stop", {"a", 1}}},
                   400,
                   "stop[1]",
                   "invalid_type"},
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
        BadRequest{"obfuscation",
                   complete,
                   {{"prompt", "x"},
                    {"stream", true},
                    {"stream_options", {{"include_obfuscation", true}}}},
                   400,
                   "stream_options.include_obfuscation",
                   "unsupported"},
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
            "store", complete, {{"prompt", "x"}, {"store", true}}, 400, "store", "unsupported"},
        BadRequest{"some_tools",
                   complete,
                   {{"prompt", "x"}, {"tools", {{{"type", "function"}}}}},
                   400,
                   "tools",
                   "unsupported"},
        BadRequest{"metadata",
                   complete,
                   {{"prompt", "x"}, {"metadata", {{"a", "b"}}}},
                   400,
                   "metadata",
                   "unsupported"},
        BadRequest{"json_format",
                   complete,
                   {{"prompt", "x"}, {"response_format", {{"type", "json_object"}}}},
                   400,
                   "response_format",
                   "unsupported"},
        BadRequest{
            "best_of", complete, {{"prompt", "x"}, {"best_of", 2}}, 400, "best_of", "unsupported"},
        BadRequest{
            "too_many", complete, {{"prompt", "x"}, {"n", 128}}, 400, "n", "too_many_prompts"},
        BadRequest{"too_many_prompts",
                   complete,
                   {{"prompt", std::vector<std::string>(100, "x")}},
                   400,
                   "prompt",
                   "too_many_prompts"},
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
        BadRequest{"no_content",
                   chat,
                   {{"messages", {{{"role", "user"}}}}},
                   400,
                   "messages[0].content",
                   "missing"},
        BadRequest{"content_null",
                   chat,
                   {{"messages", {{{"role", "user"}, {"content", nullptr}}}}},
                   400,
                   "messages[0].content",
                   "missing"},
        BadRequest{"image",
                   chat,
                   {{"messages", {{{"role", "user"}, {"content", {{{"type", "image_url"}}}}}}}},
                   400,
                   "messages[0].content[0].type",
                   "unsupported"},
        BadRequest{"second_part", chat,
                   Json::parse(R"({"messages": [{"role": "user", "content": "x"},
                       {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text"}]}]})"),
                   400, "messages[1].content[1].text", "missing"},
        BadRequest{"part_field", chat, Json::parse(R"({"messages": [{"role": "user",
                       "content": [{"type": "text", "text": "a", "cache": null}]}]})"),
                   400, "messages[0].content[0].cache", "unknown_field"},
        BadRequest{"part_no_object", chat,
                   Json::parse(R"({"messages": [{"role": "user", "content": ["a"]}]})"), 400,
                   "messages[0].content[0]", "invalid_type"},
        BadRequest{"message_name", chat,
                   Json::parse(R"({"messages": [{"role": "user", "content": "a", "name": "b"}]})"),
                   400, "messages[0].name", "unsupported"},
        BadRequest{"prompt_in_chat",
                   chat,
                   {{"messages", {{{"role", "user"}, {"content", "x"}}}}, {"prompt", "x"}},
                   400,
                   "prompt",
                   "unknown_field"},
        BadRequest{"tools",
                   chat,
                   {{"messages", {{{"role", "user"}, {"content", "x"}}}},
                    {"tools", {{{"type", "function"}}}}},
                   400,
                   "tools",
                   "unsupported"},
        BadRequest{"top_logprobs",
                   chat,
                   {{"messages", {{{"role", "user"}, {"content", "x"}}}}, {"top_logprobs", 2}},
                   400,
                   "top_logprobs",
                   "invalid_value"},
        BadRequest{
            "tokens", "/detokenize", {{"tokens", {70, -1}}}, 400, "tokens[1]", "out_of_range"},
        BadRequest{
            "tokens_half", "/detokenize", {{"tokens", {1.5}}}, 400, "tokens[0]", "invalid_type"},
        BadRequest{
            "tokens_text", "/detokenize", {{"tokens", {"a"}}}, 400, "tokens[0]", "invalid_type"},
        BadRequest{"tokens_huge",
                   "/detokenize",
                   {{"tokens", {18446744073709551615u}}},
                   400,
                   "tokens[0]",
                   "out_of_range"},
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
      "invalid_type");
  // What is no part of the document is not left out.
  using namespace std::string_literals;
  for (const std::string& body :
       {"{\"tokens\":[72]}\0"s, "{\"tokens\":[72]}\0 and more"s, "\0{\"tokens\":[72]}"s,
        "{\"tokens\":\0[72]}"s, "{\"tokens\":[72]}}"s, "{\"tokens\":[72]} {}"s,
        "{\"tokens\":[72]}\x01"s, "{\"tokens\":[72],}"s}) {
    const auto refused = server().post("/detokenize", body);
    EXPECT_EQ(refused.status, 400) << body;
    EXPECT_EQ(refused.json["error"]["code"], "invalid_json") << refused.body;
  }
  EXPECT_EQ(server().post("/detokenize", " {\"tokens\":[72]}\r\n\t"s).status, 200);
  EXPECT_EQ(server().get("/health").status, 200);
}

TEST(HttpServer, ErrorsAreShortWhateverTheyRepeat) {
  const std::string much(100000, 'x');
  const Json messages = Json::array({{{"role", "user"}, {"content", "x"}}});
  const auto small = [](const char* path, const Json& body, int status) {
    const auto answer = server().post(path, body);
    EXPECT_EQ(answer.status, status) << answer.body;
    EXPECT_LT(answer.body.size(), 2000u) << answer.body.substr(0, 300);
    EXPECT_NE(answer.body.find("…"), std::string::npos) << answer.body;
  };
  small(complete, {{"prompt", "x"}, {"model", much}}, 404);
  small(complete, {{"prompt", "x"}, {much, 1}}, 400);
  small(complete, {{"prompt", "x"}, {"reasoning_effort", much}}, 400);
  small(complete, with_sol({{"policy", much}, {"budget", 0.5}}), 400);
  small(complete, with_sol({{"fixed", much}}), 400);
  small(complete, with_sol({{much, nullptr}}), 400);
  small(chat, {{"messages", {{{"role", "user"}, {"content", "x"}, {much, 1}}}}}, 400);
  for (const std::string& body : {"{\"" + much + "\":0,\"" + much + "\":1}", "\"" + much, much}) {
    const auto answer = server().post(complete, body);
    EXPECT_EQ(answer.status, 400);
    EXPECT_LT(answer.body.size(), 2000u) << answer.body.substr(0, 300);
  }
  for (const auto& answer : {server().get("/v1/models/" + much.substr(0, 4000)),
                             server().get("/" + much.substr(0, 4000))}) {
    EXPECT_EQ(answer.status, 404);
    EXPECT_LT(answer.body.size(), 2000u) << answer.body;
  }
  auto result = server().client().Post(complete, "{}", much.substr(0, 4000));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, 415);
  EXPECT_LT(result->body.size(), 2000u);
}

TEST(HttpServer, UnknownNamesAreAnsweredWithTheNearest) {
  const auto message = [](const char* path, const Json& body) {
    return server().post(path, body).json["error"]["message"].get<std::string>();
  };
  EXPECT_THAT(message(complete, {{"prompt", "x"}, {"temprature", 1}}),
              testing::HasSubstr("did you mean temperature?"));
  EXPECT_THAT(message(complete, with_sol({{"budgett", 0.5}})),
              testing::HasSubstr("did you mean budget?"));
  EXPECT_THAT(message(complete, {{"prompt", {Json::array()}}}),
              testing::Not(testing::HasSubstr("begin token")));
}

// Null stands for "as if it were not there" where it is known what that is.
TEST(HttpServer, KnownFieldsMayBeNull) {
  const auto answer =
      server().post(chat, Json::parse(R"({"messages": [{"role": "user", "content": "x"},
          {"role": "assistant", "content": "y", "refusal": null, "tool_calls": null, "audio": null,
           "function_call": null, "annotations": null}], "max_tokens": 1, "temperature": null,
          "tools": null, "tool_choice": null, "parallel_tool_calls": null, "sol": null})"));
  EXPECT_EQ(answer.status, 200) << answer.body;
}

TEST(HttpServer, OtherPathsMethodsTypesAndHostsAreErrors) {
  EXPECT_EQ(server().get("/nope").json["error"]["code"], "not_found");
  EXPECT_EQ(server().get("/v1/completions").status, 405);
  for (const char* path : {"/v1/models/", "/main-js", "/style.css/", "/stylexcss"}) {
    const auto answer = server().get(path);
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_EQ(answer.json["error"]["code"], "not_found") << path;
  }
  EXPECT_EQ(server().get("/v1/models/a%0Ab").json["error"]["code"], "model_not_found");
  EXPECT_EQ(server().get("/main.js").status, 200);
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
  for (const char* type :
       {"application/jsonx", "application/json-seq", "json", "text/json; application/json", ";"}) {
    result = client.Post(complete, R"({"prompt":"x"})", type);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->status, 415) << type;
  }
  for (const char* type : {"application/json; charset=utf-8", "Application/JSON ;charset=utf-8",
                           "application/json;"}) {
    result = client.Post(complete, R"({"prompt":"x","max_tokens":1})", type);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->status, 200) << type;
  }
  // Forms, which httplib reads in ways of its own, are told what they are whatever their size.
  for (const char* type :
       {"application/x-www-form-urlencoded", "multipart/form-data; boundary=x"}) {
    result = client.Post(complete, std::string(10000, 'a'), type);
    ASSERT_TRUE(result) << type;
    EXPECT_EQ(result->status, 415) << type;
    EXPECT_EQ(Json::parse(result->body)["error"]["code"], "unsupported_media_type") << type;
  }
  result = client.Get("/health", {{"Range", "bytes=x"}});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, 200);  // as RFC 9110 has it for ranges that are none
  result = client.Get("/health", {{"Host", "evil.example"}});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, 403);
}

}  // namespace
}  // namespace sol::test
