// Every way in which a tokenizer's files can be wrong is an Error that says where.
#include <functional>

#include "tokenizer_files.h"

namespace sol::test {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

void expect_error(const std::function<void()>& action, const Words& words,
                  const std::string& what) {
  try {
    action();
    ADD_FAILURE() << "no error: " << what;
  } catch (const Error& error) {
    for (const std::string& word : words) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos)
          << what << ": " << error.what() << "\nlacks: " << word;
    }
  }
}

// Sets (or with a discarded value removes) the part that the JSON pointer names; the error must
// name the file and `words`.
struct Change {
  const char* at;
  json value;
  Words words;
};

void PrintTo(const Change& change, std::ostream* stream) {
  *stream << change.at;
}

class TokenizerBadField : public testing::TestWithParam<Change> {};

TEST_P(TokenizerBadField, IsAnErrorThatNamesIt) {
  const Change& change = GetParam();
  json tokenizer = small_tokenizer();
  const json::json_pointer pointer(change.at);
  if (change.value.is_discarded()) {
    tokenizer.at(pointer.parent_pointer()).erase(pointer.back());
  } else {
    tokenizer[pointer] = change.value;
  }
  Words words = change.words;
  words.push_back("tokenizer.json");
  expect_error([&] { load_made(tokenizer); }, words, tokenizer.dump());
}

const json kRemoved = json(json::value_t::discarded);

json regex(const char* pattern) {
  return {{"Regex", pattern}};
}
json split(json pattern, const char* behavior = "Isolated") {
  return {{"type", "Split"},
          {"pattern", std::move(pattern)},
          {"behavior", behavior},
          {"invert", false}};
}
json sequence(const char* list, json part) {
  return {{"type", "Sequence"}, {list, json::array({std::move(part)})}};
}
json added(int64_t id, const char* content) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", false}};
}
json post(json single) {
  return {{"type", "TemplateProcessing"},
          {"single", std::move(single)},
          {"pair", json::array()},
          {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {6}}, {"tokens", {"<s>"}}}}}}};
}
const json kText = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
json special(const char* name) {
  return {{"SpecialToken", {{"id", name}, {"type_id", 0}}}};
}

INSTANTIATE_TEST_SUITE_P(
    Model, TokenizerBadField,
    testing::Values(
        Change{"/model", kRemoved, {"model", "missing"}},
        Change{"/model", json::array(), {"model", "object"}},
        Change{"/model/type", "Unigram", {"model", "Unigram", "BPE"}},
        Change{"/model/type", 3, {"model.type", "string"}},
        Change{"/model/merges", kRemoved, {"model", "merges", "missing"}},
        Change{"/model/vocab", kRemoved, {"model", "vocab", "missing"}},
        Change{"/model/vocab", json::array({"a"}), {"vocab"}},
        Change{"/model/merges", "a b", {"merges"}},
        Change{
            "/model/merges", {"a b", "a d"}, {"model.merges[1]", "\"d\"", "not in the vocabulary"}},
        Change{"/model/merges",
               json::array({"b c"}),
               {"model.merges[0]", "\"bc\"", "not in the vocabulary"}},
        Change{"/model/merges", json::array({"a b c"}), {"model.merges[0]", "a b c"}},
        Change{"/model/merges", json::array({"ab"}), {"model.merges[0]", "two pieces"}},
        Change{"/model/merges", json::array({" ab"}), {"model.merges[0]", "empty"}},
        Change{"/model/merges", json::array({3}), {"model.merges[0]"}},
        Change{"/model/merges", json::array({json::object()}), {"model.merges[0]"}},
        Change{"/model/merges", json::array({json::array({"a"})}), {"model.merges[0]", "1 parts"}},
        Change{"/model/merges", json::array({json::array({"a", "b", "c"})}), {"model.merges[0]"}},
        Change{"/model/merges", json::array({json::array({"a", 1})}), {"model.merges[0]"}},
        Change{
            "/model/merges", json::array({json::array({"a", json::array()})}), {"model.merges[0]"}},
        Change{"/model/vocab/d", 1, {"model.vocab", "\"a\"", "\"d\"", "same id 1"}},
        Change{"/model/vocab/d", -1, {"model.vocab", "\"d\"", "-1", "out of range"}},
        Change{"/model/vocab/d", 4194304, {"model.vocab", "\"d\"", "out of range"}},
        Change{"/model/vocab/d", UINT64_MAX, {"model.vocab", "\"d\"", "out of range"}},
        Change{"/model/vocab/d", 1.5, {"model.vocab", "\"d\"", "not an integer"}},
        Change{"/model/vocab/d", "8", {"model.vocab", "\"d\"", "not an integer"}},
        Change{"/model/vocab/d", json::array(), {"model.vocab", "\"d\"", "not an integer"}},
        Change{"/model/vocab/d", json::object(), {"model.vocab", "\"d\"", "not an integer"}},
        Change{"/model/unk_token", "<none>", {"model.unk_token", "<none>"}},
        Change{"/model/dropout", 0.1, {"model.dropout"}},
        Change{"/model/continuing_subword_prefix", "##", {"model.continuing_subword_prefix"}},
        Change{"/model/end_of_word_suffix", "</w>", {"model.end_of_word_suffix"}},
        Change{"/model/fuse_unk", "yes", {"model.fuse_unk", "true or false"}},
        Change{"/model/surprise", 1, {"model", "surprise", "not supported"}}));

INSTANTIATE_TEST_SUITE_P(
    Document, TokenizerBadField,
    testing::Values(
        Change{"/truncation", {{"max_length", 8}}, {"truncation"}},
        Change{"/padding", {{"strategy", "Fixed"}}, {"padding"}},
        Change{"/surprise", 1, {"surprise"}},
        Change{"/normalizer", {{"type", "Nmt"}}, {"normalizer", "Nmt"}},
        Change{"/normalizer", 3, {"normalizer", "object"}},
        Change{"/normalizer", json::object(), {"normalizer", "type", "missing"}},
        Change{"/normalizer",
               sequence("normalizers", {{"type", "Nmt"}}),
               {"normalizer.normalizers[0]", "Nmt"}},
        Change{"/normalizer",
               {{"type", "Sequence"}, {"normalizers", 1}},
               {"normalizer.normalizers", "list"}},
        Change{"/normalizer", {{"type", "NFC"}, {"extra", 1}}, {"normalizer", "extra"}},
        Change{"/normalizer", {{"type", "Prepend"}}, {"normalizer", "prepend", "missing"}},
        Change{"/normalizer",
               {{"type", "Replace"}, {"pattern", {{"String", ""}}}, {"content", ""}},
               {"normalizer.pattern", "empty"}},
        Change{"/pre_tokenizer", {{"type", "Clairvoyant"}}, {"pre_tokenizer", "Clairvoyant"}},
        Change{"/pre_tokenizer",
               sequence("pretokenizers", split(regex("("))),
               {"pre_tokenizer.pretokenizers[0]", "("}},
        Change{"/pre_tokenizer", split(regex("[a&&b]")), {"pre_tokenizer.pattern", "[a&&b]"}},
        Change{"/pre_tokenizer",
               split(regex("a"), "Sideways"),
               {"pre_tokenizer.behavior", "Sideways"}},
        Change{
            "/pre_tokenizer", split({{"Regex", "a"}, {"String", "a"}}), {"pre_tokenizer.pattern"}},
        Change{"/pre_tokenizer", split("a"), {"pre_tokenizer.pattern", "object"}},
        Change{"/pre_tokenizer", {{"type", "ByteLevel"}}, {"pre_tokenizer", "add_prefix_space"}},
        Change{"/pre_tokenizer",
               {{"type", "Metaspace"}, {"replacement", "__"}},
               {"pre_tokenizer.replacement", "one character"}},
        Change{"/pre_tokenizer",
               {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "last"}},
               {"pre_tokenizer.prepend_scheme", "last"}},
        Change{"/decoder", {{"type", "WordPiece"}}, {"decoder", "WordPiece"}},
        Change{"/decoder", sequence("decoders", {{"type", "CTC"}}), {"decoder.decoders[0]", "CTC"}},
        Change{"/decoder",
               {{"type", "Strip"}, {"content", ""}, {"start", 1}, {"stop", 0}},
               {"decoder.content"}},
        Change{"/decoder",
               {{"type", "Strip"}, {"content", " "}, {"start", -1}, {"stop", 0}},
               {"decoder", "negative"}}));

INSTANTIATE_TEST_SUITE_P(
    AddedAndTemplate, TokenizerBadField,
    testing::Values(
        Change{"/added_tokens", json::object(), {"added_tokens", "list"}},
        Change{"/added_tokens/0/id", -3, {"added_tokens[0]", "<s>", "-3"}},
        Change{"/added_tokens/0/id", 1 << 23, {"added_tokens[0]", "<s>", "out of range"}},
        Change{"/added_tokens/0/id", UINT64_MAX, {"added_tokens[0].id", "integer"}},
        Change{"/added_tokens/0/id", 7, {"added_tokens[1]", "<s>", "<x>", "7"}},
        Change{"/added_tokens/0/id", 2, {"added_tokens[0]", "<s>", "\"b\""}},
        Change{"/added_tokens/0", added(3, "b"), {"added_tokens[0]", "\"b\"", "3", "2"}},
        Change{"/added_tokens/0", added(6, ""), {"added_tokens[0]", "empty"}},
        Change{"/added_tokens/0", added(6, "<x>"), {"added_tokens[1]", "<x>", "twice"}},
        Change{"/added_tokens/0/lstrip", kRemoved, {"added_tokens[0]", "lstrip", "missing"}},
        Change{"/post_processor", {{"type", "RobertaProcessing"}}, {"post_processor", "Roberta"}},
        Change{"/post_processor",
               post(json::array({special("<s>")})),
               {"post_processor.single", "missing"}},
        Change{
            "/post_processor", post({special("<t>"), kText}), {"post_processor.single[0]", "<t>"}},
        Change{"/post_processor", post({kText, kText}), {"post_processor.single[1]", "once"}},
        Change{"/post_processor",
               {{"type", "Sequence"},
                {"processors", {post({special("<s>"), kText}), post({special("<s>"), kText})}}},
               {"post_processor.processors[1]", "more than one"}},
        Change{"/post_processor",
               {{"type", "TemplateProcessing"},
                {"single", json::array({kText})},
                {"special_tokens", {{"<s>", {{"ids", {99}}}}}}},
               {"post_processor.special_tokens.<s>.ids[0]", "99"}}));

TEST(TokenizerBadFile, MissingFilesAreNamed) {
  const TemporaryDirectory dir;
  expect_error([&] { Tokenizer::load(dir.path()); }, {"tokenizer.json"}, "no file");
  std::ofstream(dir.path() / "tokenizer.model") << "x";
  expect_error([&] { Tokenizer::load(dir.path()); },
               {"tokenizer.json", "tokenizer.model", "convert"}, "only a SentencePiece model");
}

TEST(TokenizerBadFile, WhatIsNoJsonIsNamedWithItsPlace) {
  const std::string good = small_tokenizer().dump();
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("3"), std::string("null"), good + "x",
        good.substr(0, good.size() / 2), std::string("{\"model\": {\"vocab\": {\"\xFF\": 1}}}"),
        std::string("{\"a\": 1e999}"), std::string(100000, '['),
        "{\"normalizer\":" + std::string(200, '[')}) {
    expect_error([&] { load_text(text); }, {"tokenizer.json"}, text.substr(0, 60));
  }
}

// Cutting the file anywhere must never crash or give a tokenizer.
TEST(TokenizerBadFile, EveryTruncationIsAnError) {
  const std::string good = small_tokenizer().dump();
  for (size_t size = 0; size < good.size(); size += 3) {
    expect_error([&] { load_text(good.substr(0, size)); }, {"tokenizer.json"},
                 std::to_string(size));
  }
}

TEST(TokenizerBadFile, RepeatedFieldsAreErrors) {
  const std::string good = small_tokenizer().dump();
  const auto with = [&](const std::string& before, const std::string& inserted) {
    std::string text = good;
    text.insert(text.find(before), inserted);
    return text;
  };
  expect_error([&] { load_text(with("\"normalizer\"", "\"normalizer\":null,")); },
               {"tokenizer.json", "normalizer", "twice"}, "normalizer");
  expect_error([&] { load_text(with("\"merges\"", "\"merges\":[],")); },
               {"tokenizer.json", "merges", "twice"}, "merges");
  expect_error([&] { load_text(with("\"vocab\"", "\"vocab\":{},")); },
               {"tokenizer.json", "vocab", "twice"}, "vocab");
  expect_error([&] { load_text(with("\"abc\":5", "\"abc\":9,")); },
               {"tokenizer.json", "\"abc\"", "twice"}, "piece");
}

TEST(TokenizerBadFile, ConfigThatNamesNoTokenIsAnError) {
  const std::string good = small_tokenizer().dump();
  for (const char* config : {R"({"bos_token": "<none>"})", R"({"bos_token": 3})", "[]", "{",
                             R"({"bos_token": {"no": "content"}})"}) {
    expect_error([&] { load_text(good, config); }, {"tokenizer_config.json"}, config);
  }
}

}  // namespace
}  // namespace sol::test
