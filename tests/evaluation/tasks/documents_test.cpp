// Prompts and continuations of invented questions, written out by hand from the harness's rules.
#include "evaluation/tasks/documents.h"

#include "made_tasks.h"

namespace sol::test {
namespace {

struct Documents : testing::Test {
  void SetUp() override { made.write_all(); }
  MadeData made;
};

void expect_requests(const TaskDocument& document, const std::vector<std::string>& contexts,
                     const std::vector<std::string>& continuations) {
  ASSERT_EQ(document.requests.size(), contexts.size());
  for (size_t i = 0; i < contexts.size(); ++i) {
    EXPECT_EQ(document.requests[i].context, contexts[i]);
    EXPECT_EQ(document.requests[i].continuation, continuations[i]);
  }
}

TEST_F(Documents, ArcEasy) {
  const Task task = made.task("arc_easy");
  EXPECT_EQ(task.name, "arc_easy");
  EXPECT_TRUE(task.length_normalised);
  ASSERT_EQ(task.documents.size(), 3u);
  const std::string prompt = "Question: What is cold?\nAnswer:";
  expect_requests(task.documents[1], {prompt, prompt, prompt, prompt},
                  {" a fire", " the sun", " a lamp", " ice in winter"});
  EXPECT_EQ(task.documents[1].gold, 3);
  EXPECT_EQ(task.documents[1].characters, (std::vector<size_t>{6, 7, 6, 13}));
  EXPECT_EQ(task.data.name, "arc_easy_test.jsonl");
  EXPECT_EQ(task.data.fingerprint.size(), 32u);
  EXPECT_EQ(made.task("arc_easy", {.limit = 2}).documents.size(), 2u);
}

TEST_F(Documents, Piqa) {
  const Task task = made.task("piqa");
  const std::string prompt = "Question: to stop rain\nAnswer:";
  expect_requests(task.documents[1], {prompt, prompt}, {" ask it", " wait "});
  EXPECT_EQ(task.documents[1].gold, 1);
}

TEST_F(Documents, WinograndeHasTwoContextsAndOneContinuation) {
  const Task task = made.task("winogrande");
  EXPECT_FALSE(task.length_normalised);
  expect_requests(
      task.documents[0],
      {"The cup did not fit the bag as the cup", "The cup did not fit the bag as the bag"},
      {" was too large.", " was too large."});
  EXPECT_EQ(task.documents[0].gold, 0);
}

TEST_F(Documents, HellaSwagIsCleaned) {
  const Task task = made.task("hellaswag");
  // The spaces that stood around a mark meet; one pass makes one of two, and two of three.
  EXPECT_EQ(clean_hellaswag(" Baking: [header] How to bake [title] Mix."),
            "Baking: How to bake. Mix.");
  EXPECT_EQ(clean_hellaswag("a [x]  b"), "a  b");
  const TaskDocument& document = task.documents[0];
  EXPECT_EQ(document.requests[0].context, "Baking: How to bake. Mix the flour. Then you");
  EXPECT_EQ(document.requests[0].continuation, " knead it. Wait.");
  EXPECT_EQ(document.requests[3].continuation, "  sleep");
  EXPECT_EQ(document.gold, 0);
  EXPECT_EQ(clean_hellaswag("a [b\nc] d"), "a [b\nc] d");  // a point matches no newline
  made.write("hellaswag_valid.jsonl", R"({"query":"A [kept] b","choices":["x","y"],"gold":1})");
  EXPECT_EQ(made.task("hellaswag").documents[0].requests[1].context, "A [kept] b");
}

TEST_F(Documents, ApproximateHellaSwagIsNamedSo) {
  made.write("hellaswag_valid_approx.jsonl", R"({"query":"a","choices":["x","y"],"gold":1})");
  EXPECT_EQ(made.task("hellaswag").name, "hellaswag");
  std::filesystem::remove(made.directory.path() / "hellaswag_valid.jsonl");
  EXPECT_EQ(made.task("hellaswag").name, "hellaswag (approximate)");
}

TEST_F(Documents, MmluByLetterAndByText) {
  const Task letters = made.task("mmlu_made_subject", {.shots = 2});
  EXPECT_EQ(letters.documents[0].requests[1].context,
            "The following are multiple choice questions (with answers) about made subject.\n\n"
            "One and one?\nA. two\nB. three\nC. four\nD. five\nAnswer: A\n\n"
            "Three less one?\nA. nine\nB. three\nC. two\nD. one\nAnswer: C\n\n"
            "Two and two?\nA. three\nB. four\nC. five\nD. six\nAnswer:");
  EXPECT_EQ(letters.documents[0].requests[1].continuation, " B");
  EXPECT_EQ(letters.documents[0].gold, 1);
  EXPECT_FALSE(letters.length_normalised);
  const Task texts = made.task("mmlu_made_subject_continuation", {.shots = 1});
  EXPECT_EQ(texts.documents[0].requests[1].context,
            "The following are questions (with answers) about made subject.\n\n"
            "Question: One and one?\nAnswer: two\n\nQuestion: Two and two?\nAnswer:");
  EXPECT_EQ(texts.documents[0].requests[1].continuation, " four");
  EXPECT_TRUE(texts.length_normalised);
  EXPECT_EQ(made.task("mmlu_made_subject").documents[0].requests[0].context,
            "The following are multiple choice questions (with answers) about made subject.\n\n"
            "Two and two?\nA. three\nB. four\nC. five\nD. six\nAnswer:");
  EXPECT_THAT([&] { made.task("mmlu_made_subject", {.shots = 3}); },
              throws({"made_subject_dev.jsonl", "3 examples", "only 2"}));
}

TEST_F(Documents, Gsm8kAsTurnsAndAsText) {
  const Task task = made.task("gsm8k_cot_llama");
  const TaskDocument& document = task.documents[0];
  ASSERT_EQ(document.messages.size(), 17u);
  const std::string question =
      "Given the following problem, reason and give a final answer to the problem.\n"
      "Problem: Ann has 2 cats and buys 1. How many?\nYour response should end with \"The final "
      "answer is [answer]\" where [answer] is the response to the problem.\n";
  EXPECT_EQ(document.messages.back(), (ChatMessage{"user", question}));
  EXPECT_EQ(document.messages[1], (ChatMessage{"assistant", "The final answer is 0"}));
  EXPECT_THAT(document.prompt, testing::EndsWith(".\nThe final answer is 7\n\n" + question));
  EXPECT_EQ(document.target, "3");
  EXPECT_EQ(task.max_tokens, 256);
}

TEST_F(Documents, ARawFileThatIsNoTextIsNamed) {
  made.write("wiki.test.raw", " = A = \n x \xff\n");
  TaskData data;
  data.add("wikitext=" + (made.directory.path() / "wiki.test.raw").string());
  EXPECT_THAT([&] { load_task("wikitext", data); },
              throws({"wiki.test.raw, line 2", "byte 11 of the file is 0xff"}));
}

TEST_F(Documents, AByteOrderMarkIsNoText) {
  const std::string pages = " = A = \n x \n = B = \n y \n";
  made.write("wiki.test.raw", "\xef\xbb\xbf" + pages);
  TaskData data;
  data.add("wikitext=" + (made.directory.path() / "wiki.test.raw").string());
  const Task task = load_task("wikitext", data);
  ASSERT_EQ(task.documents.size(), 2u);
  EXPECT_EQ(task.documents[0].text, detokenise_wikitext(wikitext_pages(pages)[0]));
  EXPECT_EQ(task.documents[0].page_bytes, 11);
}

TEST_F(Documents, WikitextIsDetokenised) {
  const Task task = made.task("wikitext");
  EXPECT_EQ(task.documents[0].text, " = A Title =\n\nThe old man said: \"it is late.\"\n");
  EXPECT_EQ(task.documents[0].words, 17);  // two empty ends and each mark count
  EXPECT_EQ(task.documents[0].page_bytes, 54);
  EXPECT_EQ(detokenise_wikitext("a @-@ b @,@ c ( d ) [ e ] { f } 's g"), "a-b,c (d) [e] {f}'s g");
  EXPECT_EQ(detokenise_wikitext("x = = = y"), "x === y");
  EXPECT_EQ(detokenise_wikitext("20 \u00B0 C N S"), "20\u00B0C 1 S");
  EXPECT_EQ(detokenise_wikitext("/' 5/"), "/'[0-9]/");
  EXPECT_EQ(wikitext_pages(" \n = A = \n x \n = = S = = \n y\n = B = \n z"),
            (std::vector<std::string>{" = A = \n x \n = = S = = \n y", " = B = \n z"}));
}

TEST_F(Documents, WhatIsMissingIsNamed) {
  EXPECT_THAT([&] { made.task("arc_hard"); }, throws({"arc_hard", "known", "winogrande"}));
  EXPECT_THAT([&] { made.task("mmlu_Other"); }, throws({"unknown task"}));
  EXPECT_THAT([&] { made.task("mmlu_other"); }, throws({"mmlu_other=FILE", "other_test.jsonl"}));
  EXPECT_THAT([&] { made.task("piqa", {.shots = 1}); }, throws({"piqa", "MMLU"}));
  TaskData none;
  EXPECT_THAT([&] { load_task("piqa", none); }, throws({"piqa=FILE", "--data DIR"}));
  EXPECT_THAT([&] { none.add("missing-directory"); }, throws({"missing-directory", "NAME=FILE"}));
  EXPECT_THAT([&] { none.add("piqa=missing.jsonl"); }, throws({"missing.jsonl"}));
  const std::string file = (made.directory.path() / "piqa_valid.jsonl").string();
  none.add("piqa=" + file);
  EXPECT_THAT([&] { none.add("piqa=" + file); }, throws({"piqa", "twice"}));
  EXPECT_EQ(load_task("piqa", none).documents.size(), 2u);
}

struct Malformed {
  const char *task, *file, *content;
  std::vector<std::string> message;
};

TEST_F(Documents, WhatIsMalformedIsNamedWithFileLineAndField) {
  const std::string good = R"({"goal":"g","sol1":"a","sol2":"b","label":0})";
  const std::vector<Malformed> cases{
      {"piqa", "piqa_valid.jsonl", "{\"goal\":\"g\"}", {"line 1", "sol1"}},
      {"piqa", "piqa_valid.jsonl", "\n[1]", {"piqa_valid.jsonl line 2", "object"}},
      {"piqa", "piqa_valid.jsonl", "{\"goal\":", {"line 1"}},
      {"piqa", "piqa_valid.jsonl", "\n \n", {"no document"}},
      {"piqa", "piqa_valid.jsonl", R"({"goal":"g","sol1":"a","sol2":"b","label":2})", {"label"}},
      {"piqa", "piqa_valid.jsonl", R"({"goal":"g","sol1":"","sol2":"b","label":1})", {"empty"}},
      {"arc_easy",
       "arc_easy_test.jsonl",
       R"({"question":"q","choices":{"text":["a","b"],"label":["A","B"]},"answerKey":"C"})",
       {"answerKey"}},
      {"arc_easy",
       "arc_easy_test.jsonl",
       R"({"question":"q","choices":{"text":["a"],"label":["A"]},"answerKey":"A"})",
       {"at least 2"}},
      {"arc_easy",
       "arc_easy_test.jsonl",
       R"({"question":"q","choices":{"text":["a","b","c"],"label":["A","B"]},"answerKey":"A"})",
       {"3 texts", "2 labels"}},
      {"arc_easy",
       "arc_easy_test.jsonl",
       R"({"question":"q","choices":[1],"answerKey":"A"})",
       {"choices"}},
      {"winogrande",
       "winogrande_xl_valid.jsonl",
       R"({"sentence":"no blank","option1":"a","option2":"b","answer":"1"})",
       {"sentence"}},
      {"winogrande",
       "winogrande_xl_valid.jsonl",
       R"({"sentence":"a _","option1":"a","option2":"b","answer":"3"})",
       {"answer"}},
      {"hellaswag",
       "hellaswag_valid.jsonl",
       R"({"activity_label":"a","ctx_a":"b","ctx_b":"c","endings":["d","e"],"label":"5"})",
       {"label"}},
      {"mmlu_made_subject",
       "mmlu/made_subject_test.jsonl",
       R"({"question":"q","choices":["a","b"],"answer":0})",
       {"choices", "4"}},
      {"gsm8k_cot_llama", "gsm8k_test.jsonl", R"({"question":"q","answer":"3"})", {"####"}},
      {"gsm8k_cot_llama", "gsm8k_cot_llama_fewshot.json", "[]", {"fewshot", "8"}},
      {"wikitext", "wikitext2_test_pages.jsonl", R"({"text":"x"})", {"page"}}};
  for (const Malformed& one : cases) {
    made.write_all();
    made.write(one.file, one.content);
    EXPECT_THAT([&] { made.task(one.task); }, throws(one.message)) << one.content;
  }
}

}  // namespace
}  // namespace sol::test
