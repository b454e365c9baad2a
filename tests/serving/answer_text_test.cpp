// The text of an answer: where it stops, what it goes on from, where its tokens lie in it.
#include <gmock/gmock.h>

#include "served.h"

namespace sol::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(AnswerText, StopsBeforeAStopText) {
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

TEST(AnswerText, AStopTextThatTheLastTokenCompletesIsTheReason) {
  Json request = completion({{"max_tokens", 20}, {"temperature", 0}, {"ignore_eos", true}});
  const auto whole = server().post(complete, request);
  EXPECT_EQ(whole.json["choices"][0]["finish_reason"], "length");
  const std::string text = text_of(whole);
  request["stop"] = text.substr(1);  // nothing shorter is one, and the last token completes it
  for (const bool stream : {false, true}) {
    request["stream"] = stream;
    const auto answer = server().post(complete, request);
    ASSERT_EQ(answer.status, 200) << answer.body;
    const std::vector<std::string> events = events_of(answer.body);
    const Json last = stream ? Json::parse(events.at(events.size() - 2)) : answer.json;
    EXPECT_EQ(last["choices"][0]["finish_reason"], "stop") << answer.body;
    EXPECT_EQ(last["choices"][0]["sol"]["steps"], 20);
    if (!stream) {
      EXPECT_EQ(text_of(answer), text.substr(0, 1));
    }
  }
}

// A character that the answer's end cuts off is shown as U+FFFD, which may be a stop text itself.
TEST(AnswerText, AStopTextMayComeWithTheVeryEnd) {
  const std::string cut = "\uFFFD";
  Json request =
      completion({{"max_tokens", 1}, {"temperature", 2}, {"top_p", 1}, {"ignore_eos", true}});
  int found = 0;
  for (int seed = 0; seed < 400 && found == 0; ++seed) {
    request["seed"] = seed;
    if (text_of(server().post(complete, request)) != cut) continue;
    ++found;
    request["stop"] = cut;
    const auto answer = server().post(complete, request);
    EXPECT_EQ(text_of(answer), "");
    EXPECT_EQ(answer.json["choices"][0]["finish_reason"], "stop") << answer.body;
  }
  EXPECT_EQ(found, 1);
}

TEST(AnswerText, BytesOfSplitCharactersAreTold) {
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

TEST(AnswerText, OffsetsPointIntoTheText) {
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

ServedModel served_with_tokenizer(const char* style) {
  ServedModel served = load_served(false);
  served.tokenizer = Tokenizer::load(test_data() / "tokenizers" / style);
  return served;
}

std::string from_character(const std::string& text, size_t count) {
  size_t at = 0;
  for (; at < text.size(); ++at)
    if ((text[at] & 0xC0) != 0x80 && count-- == 0) break;
  return text.substr(at);
}

// Where decoders drop the space that a text begins with, an answer is no beginning.
TEST(AnswerText, PromptAndAnswerAreOneText) {
  for (const char* style : {"sentencepiece_style", "metaspace_style"}) {
    const TestServer spm(served_with_tokenizer(style));
    const Tokenizer& tokenizer = *spm.served().tokenizer;
    const std::string prompt = "The professor said";
    std::vector<int32_t> ids = tokenizer.encode(prompt);
    const size_t prompt_tokens = ids.size();
    ids.push_back(3000);  // the model has it, the tokenizer has not
    int spaces = 0;
    for (int seed = 0; seed < 8; ++seed) {
      Json request{{"prompt", ids},
                   {"max_tokens", 32},
                   {"seed", seed},
                   {"temperature", 2},
                   {"logprobs", 0},
                   {"ignore_eos", true},
                   {"sol", {{"actions", true}}}};
      const auto alone = spm.post(complete, request);
      ASSERT_EQ(alone.status, 200) << alone.body;
      std::vector<int32_t> all = tokenizer.encode(prompt);
      for (const Json& action : alone.json["choices"][0]["sol"]["actions"])
        if (tokenizer.has_token(action["token"])) all.push_back(action["token"]);
      const std::string whole = tokenizer.decode(all, true);
      EXPECT_EQ(prompt + text_of(alone), whole) << style;
      spaces += text_of(alone).starts_with(' ');

      request["echo"] = true;
      const auto echoed = spm.post(complete, request);
      ASSERT_EQ(echoed.status, 200) << echoed.body;
      EXPECT_EQ(text_of(echoed), whole) << style;
      for (const auto* answer : {&alone, &echoed}) {
        const Json& logprobs = answer->json["choices"][0]["logprobs"];
        for (size_t i = answer == &alone ? 0 : prompt_tokens + 1; i < logprobs["tokens"].size();
             ++i) {
          const std::string name = logprobs["tokens"][i];
          const bool plain = name.size() > 1 && !name.starts_with("bytes:") && name[0] != '<';
          if (plain) {
            EXPECT_THAT(from_character(text_of(*answer), logprobs["text_offset"][i]),
                        StartsWith(name))
                << i;
          }
        }
      }
      request.erase("echo");
      request["stream"] = true;
      std::string streamed;
      for (const std::string& event : events_of(spm.post(complete, request).body))
        if (event != "[DONE]")
          streamed += Json::parse(event)["choices"][0]["text"].get<std::string>();
      EXPECT_EQ(streamed, text_of(alone)) << style;
    }
    EXPECT_GT(spaces, 0) << style;
  }
}

// A run of bytes is settled, and shown, with the token that ends it.
TEST(AnswerText, WhatEndsARunOfBytesBeginsBehindIt) {
  const TestServer spm(served_with_tokenizer("sentencepiece_style"));
  const Tokenizer& tokenizer = *spm.served().tokenizer;
  const auto offsets_of = [&](const std::vector<const char*>& pieces) {
    std::vector<int32_t> ids;
    for (const char* piece : pieces) ids.push_back(tokenizer.token_id(piece));
    const auto answer =
        spm.post(complete, {{"prompt", ids}, {"max_tokens", 0}, {"logprobs", 0}, {"echo", true}});
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json["choices"][0]["logprobs"]["text_offset"];
  };
  EXPECT_EQ(offsets_of({"\u2581The", "<0xE2>", "<0x82>", "<0xAC>", "\u2581said", "\u2581the"}),
            (Json{0, 3, 3, 3, 4, 9}));  // "The\u20AC said the"
  // Each byte of a broken run is a U+FFFD.
  EXPECT_EQ(offsets_of({"\u2581The", "<0xE2>", "<0xFF>", "\u2581said", "\u2581the"}),
            (Json{0, 3, 3, 5, 10}));
}

// A chat's answer is a text of its own.
TEST(AnswerText, AChatsAnswerBeginsAText) {
  const TestServer spm(served_with_tokenizer("sentencepiece_style"));
  const Tokenizer& tokenizer = *spm.served().tokenizer;
  for (int seed = 0; seed < 8; ++seed) {
    const auto answer = spm.post(chat, {{"messages", {{{"role", "user"}, {"content", "Hello"}}}},
                                        {"max_tokens", 32},
                                        {"seed", seed},
                                        {"temperature", 2},
                                        {"ignore_eos", true},
                                        {"sol", {{"actions", true}}}});
    ASSERT_EQ(answer.status, 200) << answer.body;
    std::vector<int32_t> tokens;
    for (const Json& action : answer.json["choices"][0]["sol"]["actions"])
      if (tokenizer.has_token(action["token"])) tokens.push_back(action["token"]);
    EXPECT_EQ(answer.json["choices"][0]["message"]["content"], tokenizer.decode(tokens, true));
  }
}

// A model may have more tokens than its tokenizer.
TEST(AnswerText, AnIdWithoutATokenIsEchoedAsNothing) {
  const TestServer spm(served_with_tokenizer("sentencepiece_style"));
  const auto answer = spm.post(complete, {{"prompt", {3000}}, {"max_tokens", 0}, {"echo", true}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(text_of(answer), "");
}

}  // namespace
}  // namespace sol::test
