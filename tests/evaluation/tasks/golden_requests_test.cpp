// Requests of the real tasks against those that were built with the harness's own rules; neither
// data nor tokenizer may be shipped.
#include <gmock/gmock.h>

#include <map>

#include "evaluation/tasks/requests.h"
#include "evaluation/tasks/task.h"
#include "model/tokenizer_files.h"

namespace sol::test {
namespace {

using Ids = std::vector<int32_t>;

std::filesystem::path eval_data() {
  return shared_dir() / "data/eval";
}

// "mmlu_international_law/5shot", "hellaswag(approx)", "gsm8k_cot_llama (chat, ...)".
Task golden_task(const std::string& label) {
  TaskData data;
  data.add(eval_data().string());
  TaskOptions options;
  if (const size_t slash = label.find('/'); slash != std::string::npos)
    options.shots = label[slash + 1] - '0';
  return load_task(label.substr(0, label.find_first_of("/( ")), data, options);
}

void check_choices(const TaskDocument& document, const nlohmann::json& golden,
                   const RequestEncoder& encoder) {
  ASSERT_EQ(document.requests.size(), golden["args"].size());
  EXPECT_EQ(document.gold, golden["gold"]);
  for (size_t i = 0; i < document.requests.size(); ++i) {
    const ChoiceRequest& request = document.requests[i];
    EXPECT_EQ(request.context, golden["args"][i][0]);
    EXPECT_EQ(request.continuation, golden["args"][i][1]);
    EXPECT_EQ(document.characters[i], golden["norm_len"][i]);
    const TokenRequest tokens = encoder.pair(request.context, request.continuation);
    const auto& ids = golden["ids"][i];
    EXPECT_EQ(tokens.context, ids["ctx_len"]);
    EXPECT_EQ(tokens.tokens, ids["whole"].get<Ids>());
    EXPECT_EQ(Ids(tokens.tokens.begin() + static_cast<std::ptrdiff_t>(tokens.context),
                  tokens.tokens.end()),
              ids["cont"].get<Ids>());
    // "prefix_ok": the context's ids are the beginning of the whole.
    const Ids context = encoder.encode(request.context);
    EXPECT_EQ(std::equal(context.begin(), context.end(), tokens.tokens.begin()), ids["prefix_ok"]);
  }
}

void check_generation(const TaskDocument& document, const nlohmann::json& golden,
                      const RequestEncoder& encoder) {
  EXPECT_EQ(document.target, golden["target"]);
  if (golden.contains("context")) {
    EXPECT_EQ(document.prompt, golden["context"]);
    EXPECT_EQ(encoder.encode(document.prompt), golden["ids"].get<Ids>());
    return;
  }
  const auto& messages = golden.at("messages");
  ASSERT_EQ(document.messages.size(), messages.size());
  for (size_t i = 0; i < messages.size(); ++i) {
    EXPECT_EQ(document.messages[i].role, messages[i]["role"]);
    EXPECT_EQ(document.messages[i].content, messages[i]["content"]);
  }
}

TEST(GoldenRequests, EqualToTheLast) {
  SOL_SKIP_WITHOUT_SHARED();
  const auto tokenizer = Tokenizer::load(shared_dir() / "data/tokenizers/llama3_1");
  const RequestEncoder encoder(*tokenizer, 131072);
  const auto golden = read_lines(eval_data() / "golden_requests.llama3.jsonl");
  ASSERT_EQ(golden.size(), 137u);
  std::map<std::string, Task> tasks;
  size_t requests = 0;
  for (const auto& line : golden) {
    const auto label = line["task"].get<std::string>();
    SCOPED_TRACE(label + " " + line["doc_id"].dump());
    if (!tasks.contains(label)) tasks.emplace(label, golden_task(label));
    const Task& task = tasks.at(label);
    const auto id = line["doc_id"].get<size_t>();
    ASSERT_LT(id, task.documents.size());
    const TaskDocument& document = task.documents[id];
    EXPECT_EQ(document.id, static_cast<int64_t>(id));
    // Nothing of the file is left unread.
    for (const auto& [field, value] : line.items())
      EXPECT_THAT((std::vector<std::string>{"task", "doc_id", "args", "gold", "norm_len", "ids",
                                            "context", "target", "messages"}),
                  testing::Contains(field));
    if (line.contains("args")) {
      check_choices(document, line, encoder);
      requests += line["args"].size();
    } else {
      check_generation(document, line, encoder);
      ++requests;
    }
  }
  EXPECT_EQ(tasks.size(), 18u);
  EXPECT_GT(requests, 400u);
}

TEST(GoldenRequests, NumbersOfDocuments) {
  SOL_SKIP_WITHOUT_SHARED();
  TaskData data;
  data.add(eval_data().string());
  const std::map<std::string, size_t> expected{{"arc_easy", 2376},        {"piqa", 1838},
                                               {"winogrande", 1267},      {"hellaswag", 10042},
                                               {"gsm8k_cot_llama", 1319}, {"wikitext", 62}};
  for (const auto& [name, count] : expected)
    EXPECT_EQ(load_task(name, data).documents.size(), count) << name;
}

TEST(GoldenRequests, PagesOfTheRawFileAreThePages) {
  SOL_SKIP_WITHOUT_SHARED();
  TaskData pages, raw;
  pages.add("wikitext=" + (eval_data() / "wikitext2_test_pages.jsonl").string());
  raw.add("wikitext=" + (eval_data() / "wiki.test.raw").string());
  const Task one = load_task("wikitext", pages), other = load_task("wikitext", raw);
  ASSERT_EQ(one.documents.size(), other.documents.size());
  for (size_t i = 0; i < one.documents.size(); ++i) {
    EXPECT_EQ(one.documents[i].text, other.documents[i].text) << i;
    EXPECT_EQ(one.documents[i].words, other.documents[i].words) << i;
    EXPECT_EQ(one.documents[i].page_bytes, other.documents[i].page_bytes) << i;
  }
}

}  // namespace
}  // namespace sol::test
