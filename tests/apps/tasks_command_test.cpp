// sol tasks on the embedded model, with invented questions.
#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <utility>

#include "base/file_io.h"
#include "base/json.h"
#include "evaluation/tasks/made_tasks.h"
#include "made_controller.h"

namespace sol::test {
namespace {

namespace fs = std::filesystem;

// Rows of a table without quoted fields, by column.
std::vector<std::map<std::string, std::string>> rows_of(const fs::path& file) {
  const auto split = [](const std::string& line) {
    std::vector<std::string> fields(1);
    for (const char c : line) {
      if (c == ',')
        fields.emplace_back();
      else
        fields.back() += c;
    }
    return fields;
  };
  std::istringstream lines(read_file(file));
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> columns = split(line);
  std::vector<std::map<std::string, std::string>> rows;
  while (std::getline(lines, line)) {
    const std::vector<std::string> fields = split(line);
    EXPECT_EQ(fields.size(), columns.size()) << line;
    auto& row = rows.emplace_back();
    for (size_t i = 0; i < std::min(fields.size(), columns.size()); ++i)
      row[columns[i]] = fields[i];
  }
  return rows;
}

// made_network() for longer episodes, further positions zeros; it never chooses the last action.
std::shared_ptr<PolicyNetwork> longer_network(int actions, int positions) {
  const auto network = made_network(actions);
  PolicyNetworkShape shape = network->shape();
  shape.max_length = positions;
  Parameters parameters = network->parameters();
  Parameter& embedding = parameters.at("pos_emb.weight");
  embedding.shape[0] = positions;
  embedding.values.resize(static_cast<size_t>(positions) * static_cast<size_t>(shape.d_model));
  parameters.at("pi.bias").values.back() = -100;
  return std::make_shared<PolicyNetwork>(shape, std::move(parameters));
}

// As configs/r1-distill.yaml has it.
Controller token_sparsity_controller() {
  ActionSpace space({0.05f, 0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f, 0.9f, 1.0f}, {1.0f},
                    {16});
  ControllerSettings settings;
  settings.horizon = 64;
  settings.sequence.page_size = 16;
  settings.sequence.sinks = 16;
  settings.sequence.window = 16;
  settings.ranges.kappa = {0.1, 1.0};
  settings.model_fingerprint = default_fingerprint();
  const int actions = space.size();
  return Controller(std::move(space), std::move(settings), longer_network(actions, 64));
}

class TasksCommand : public testing::Test {
 protected:
  void SetUp() override { made.write_all(); }

  RunResult run(const std::vector<std::string>& more, const RunOptions& options = {}) const {
    std::vector<std::string> arguments{"tasks",     "--data", made.directory.path().string(),
                                       "--threads", "1",      "--precision",
                                       "f32",       "-o",     out.string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_sol(arguments, options);
  }

  std::string controller() const {
    const fs::path path = dir.path() / "controller";
    made_controller(default_fingerprint()).save(path);
    return path.string();
  }

  // The embedded model, of which a test may replace single files.
  fs::path linked_model() const {
    const fs::path model = dir.path() / "model";
    fs::create_directory(model);
    for (const auto& entry : fs::directory_iterator(default_model()))
      if (entry.is_regular_file())
        fs::create_symlink(entry.path(), model / entry.path().filename());
    return model;
  }

  MadeData made;
  TemporaryDirectory dir;
  fs::path out = dir.path() / "out";
};

TEST_F(TasksCommand, ListsTasksAndTheirFiles) {
  const RunResult result = run_sol({"tasks", "--list"});
  EXPECT_EQ(result.code, 0) << testing::PrintToString(result);
  for (const char* word : {"arc_easy", "mmlu_<subject>_continuation", "gsm8k_cot_llama", "wikitext",
                           "piqa_valid.jsonl"})
    EXPECT_NE(result.out.find(word), std::string::npos) << word;
}

TEST_F(TasksCommand, DenseByDefault) {
  const RunResult result =
      run({"--tasks", "arc_easy,winogrande,mmlu_made_subject", "--num-fewshot", "1"});
  ASSERT_EQ(result.code, 0) << testing::PrintToString(result);
  for (const char* word :
       {"prefill", "dense", "acc_norm", "chance", "(1 shots)", "report.html", "mean of 3 tasks"})
    EXPECT_NE(result.out.find(word), std::string::npos) << word << " in " << result.out;
  EXPECT_EQ(result.out.find("decode"), std::string::npos);
  for (const char* name : {"tasks.csv", "tasks.jsonl", "means.csv", "report.html"})
    EXPECT_TRUE(fs::exists(out / name)) << name;
}

TEST_F(TasksCommand, AControllerAgainstFixedThenTakenFromDisk) {
  const std::vector<std::string> arguments{
      "-c",      controller(), "--tasks", "piqa", "--mode", "prefill,decode",
      "--limit", "1",          "--seed",  "3"};
  const RunResult first = run(arguments);
  ASSERT_EQ(first.code, 0) << testing::PrintToString(first);
  // The made controller's frontier spans 0.5 to 0.8.
  EXPECT_NE(first.err.find("0.9 lies outside"), std::string::npos) << first.err;
  for (const char* word : {"learned", "fixed *", "0.600", "0.700", "0.800", "prefill", "decode"})
    EXPECT_NE(first.out.find(word), std::string::npos) << word << " in " << first.out;
  const std::string csv = read_file(out / "tasks.csv");
  EXPECT_NE(csv.find(default_fingerprint()), std::string::npos);
  const RunResult second = run(arguments);
  ASSERT_EQ(second.code, 0) << testing::PrintToString(second);
  EXPECT_NE(second.err.find("8 of 8 results are taken from an earlier run"), std::string::npos)
      << second.err;
  EXPECT_EQ(second.out, first.out);
  EXPECT_EQ(read_file(out / "tasks.csv"), csv);
}

TEST_F(TasksCommand, LevelsWithoutAController) {
  const RunResult result =
      run({"--tasks", "wikitext", "--kappa-levels", "0.1,1", "--rho-levels", "0.5,1", "--policies",
           "fixed,random-matched,k010-s050-q16", "--keep", "0.5", "--prune", "0.7"});
  ASSERT_EQ(result.code, 0) << testing::PrintToString(result);
  for (const char* word : {"fixed", "random-matched *", "k010-s050-q16", "bits_per_byte"})
    EXPECT_NE(result.out.find(word), std::string::npos) << word << " in " << result.out;
}

TEST_F(TasksCommand, SeveralBudgetsOfTheThreeAxes) {
  const RunResult result =
      run({"--tasks", "piqa", "--kappa-levels", "0.1,1", "--rho-levels", "0.5,1", "--policies",
           "fixed,random-matched", "--keep", "0.5,0.8", "--prune", "0.7"});
  ASSERT_EQ(result.code, 0) << testing::PrintToString(result);
  for (const char* word : {"keep 0.5 prune 0.7 bits 16", "keep 0.8 prune 0.7 bits 16"})
    EXPECT_NE(result.out.find(word), std::string::npos) << word << " in " << result.out;
  std::vector<std::string> asked;
  for (auto& row : rows_of(out / "tasks.csv"))
    if (row["policy"] == "fixed")
      asked.push_back(row["point"] + ": " + row["asked_kappa"] + " " + row["asked_rho"]);
  EXPECT_EQ(asked, (std::vector<std::string>{"0: 0.5 0.7", "1: 0.8 0.7"}));
}

TEST_F(TasksCommand, TokenSparsityAloneWithLongEpisodesAndLargePages) {
  std::string text;  // several episodes of 64 tokens
  for (int i = 0; i < 40; ++i) text += "The old man said : it was late . ";
  made.write("wikitext2_test_pages.jsonl", R"({"page":" = T = \n )" + text + "\"}\n");
  const fs::path path = dir.path() / "kappa";
  token_sparsity_controller().save(path);
  const RunResult result =
      run({"--tasks", "wikitext", "-c", path.string(), "--mode", "decode", "--keep", "0.5"});
  ASSERT_EQ(result.code, 0) << testing::PrintToString(result);
  int compressed = 0;
  for (auto& row : rows_of(out / "tasks.csv")) {
    EXPECT_EQ(row["horizon"], "64");
    EXPECT_EQ(row["page_size"], "16");
    EXPECT_EQ(row["sinks"], "16");
    EXPECT_EQ(row["window"], "16");
    ASSERT_FALSE(row["realised_kappa"].empty()) << row["policy"];
    // κ is the only axis that counts.
    EXPECT_FLOAT_EQ(std::stof(row["net_keep"]), std::stof(row["realised_kappa"]));
    EXPECT_EQ(row["realised_rho"], "1");
    EXPECT_EQ(row["realised_eta"], "1");
    EXPECT_GT(std::stoi(row["effective_steps"]), 64);
    if (row["policy"] == "dense") continue;
    ++compressed;
    EXPECT_EQ(row["requested_kappa"], "0.5");
    EXPECT_LT(std::stof(row["net_keep"]), 1);
  }
  EXPECT_EQ(compressed, 2);  // learned, and fixed at what it realised
  const std::string report = read_file(out / "report.html");
  for (const char* words :
       {"episodes of 64 steps", "pages of 16 keys, 16 sinks and a window of 16"})
    EXPECT_NE(report.find(words), std::string::npos) << words;
}

// A schedule for all documents of a task is of this task's number, whatever else is asked for.
TEST_F(TasksCommand, ATasksResultDoesNotDependOnTheOthers) {
  const auto result_of = [&](const std::string& tasks) {
    fs::remove_all(out);
    const RunResult result =
        run({"--tasks", tasks, "--kappa-levels", "0.02,1", "--rho-levels", "0.3,1", "--policies",
             "fixed-reference", "--keep", "0.5", "--prune", "0.6"});
    EXPECT_EQ(result.code, 0) << testing::PrintToString(result);
    std::ifstream lines(out / "tasks.jsonl");
    std::string found;
    for (std::string line; std::getline(lines, line);) {
      if (parse_json(line, "tasks.jsonl")["task"] == "piqa") found += line + "\n";
    }
    EXPECT_FALSE(found.empty());
    return found;
  };
  EXPECT_EQ(result_of("piqa,arc_easy"), result_of("piqa"));
}

TEST_F(TasksCommand, OneFileGivenByName) {
  const std::string file = (made.directory.path() / "piqa_valid.jsonl").string();
  const RunResult result =
      run_sol({"tasks", "--tasks", "piqa", "--data", "piqa=" + file, "-o", out.string()});
  EXPECT_EQ(result.code, 0) << testing::PrintToString(result);
}

TEST_F(TasksCommand, Gsm8kNeedsAChatTemplateOrPlainText) {
  expect_error(run({"--tasks", "gsm8k_cot_llama"}), {"chat template", "--plain"});
  const RunResult plain = run({"--tasks", "gsm8k_cot_llama", "--plain"});
  ASSERT_EQ(plain.code, 0) << testing::PrintToString(plain);
  EXPECT_NE(plain.out.find("exact_match_strict"), std::string::npos) << plain.out;

  // A copy of the model whose template ends every prompt in the same words.
  const fs::path model = linked_model();
  std::ofstream(model / "chat_template.jinja")
      << "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content | trim }}\n{% endfor %}";
  const RunResult piqa = run({"--tasks", "piqa", "-m", model.string()});
  ASSERT_EQ(piqa.code, 0) << testing::PrintToString(piqa);
  const RunResult chat = run({"--tasks", "piqa,gsm8k_cot_llama", "-m", model.string()});
  ASSERT_EQ(chat.code, 0) << testing::PrintToString(chat);
  EXPECT_NE(chat.err.find("piqa: 1 of 1 results are taken from an earlier run"), std::string::npos)
      << chat.err;
  EXPECT_EQ(chat.err.find("gsm8k_cot_llama: 1 of 1 results"), std::string::npos)
      << "another prompt is another task";
  std::ofstream(model / "chat_template.jinja") << "{{ raise_exception('no examples, please') }}";
  expect_error(run({"--tasks", "gsm8k_cot_llama", "-m", model.string()}), {"no examples, please"});
}

// Lengths and special tokens are in no fingerprint, but decide where texts are cut and answers end.
TEST_F(TasksCommand, ResultsOfAModelWithOtherLimitsOrSpecialTokensAreNotTaken) {
  const fs::path model = linked_model();
  const auto is_taken = [&] {
    const RunResult result = run({"--tasks", "piqa", "-m", model.string()});
    EXPECT_EQ(result.code, 0) << testing::PrintToString(result);
    return result.err.find("earlier run") != std::string::npos;
  };
  EXPECT_FALSE(is_taken());
  EXPECT_TRUE(is_taken());
  const auto change = [&](const char* file, const char* field, const Json& value) {
    Json json = read_json(model / file);
    json[field] = value;
    fs::remove(model / file);  // the link
    std::ofstream(model / file) << to_text(json);
  };
  change("config.json", "max_position_embeddings", 1024);
  EXPECT_FALSE(is_taken());
  change("generation_config.json", "eos_token_id", {4093, 4092});
  EXPECT_FALSE(is_taken());
  change("tokenizer_config.json", "eos_token", "<|begin_of_text|>");
  EXPECT_FALSE(is_taken());
  change("tokenizer_config.json", "bos_token", "<|end_of_text|>");
  EXPECT_FALSE(is_taken());
  EXPECT_TRUE(is_taken());
}

TEST_F(TasksCommand, WhatMakesNoSenseIsAnError) {
  expect_error(run_sol({"tasks"}), {"--tasks", "--list"});
  expect_error(run_sol({"tasks", "--tasks", "piqa"}), {"--data"});
  expect_error(run({"--tasks", "arc_hard"}), {"arc_hard", "known"});
  expect_error(run({"--tasks", "piqa,piqa"}), {"piqa", "twice"});
  expect_error(run({"--tasks", "piqa", "--num-fewshot", "2"}), {"--num-fewshot", "MMLU"});
  expect_error(run({"--tasks", "piqa", "--plain"}), {"--plain"});
  expect_error(run({"--tasks", "piqa", "--keep", "0.5"}), {"no policy", "--keep"});
  expect_error(run({"--tasks", "piqa", "--budget", "0.5"}), {"--budget", "--controller"});
  expect_error(run({"--tasks", "piqa", "--keep", "0.5,0.6,0.7", "--prune", "0.5,0.6"}),
               {"--keep", "3, 2 and 0 values", "one length"});
  expect_error(run({"--tasks", "piqa", "--policies", "fixed"}), {"levels"});
  expect_error(run({"--tasks", "piqa", "--policies", "fixed", "--mode", "prefill"}), {"decode"});
  expect_error(run({"--tasks", "piqa", "--policies", "fixed", "--kappa-levels", "0.1,1"}),
               {"name a budget"});
  expect_error(run({"--tasks", "piqa", "--policies", "cleverest", "--kappa-levels", "0.1,1"}),
               {"cleverest", "known"});
  expect_error(run({"--tasks", "piqa", "-c", controller(), "--budget", "0.95"}),
               {"--budget", "0.95"});
  made.write("piqa_valid.jsonl", "{\"goal\": \"x\"}\n");
  expect_error(run({"--tasks", "piqa"}), {"piqa_valid.jsonl line 1", "sol1"});
}

TEST_F(TasksCommand, AnInterruptedRunKeepsWhatIsFinished) {
  std::string pages;
  for (int i = 0; i < 200; ++i)
    pages += R"({"page":" = T = \n )" + std::string(2000, 'a') + "\"}\n";
  made.write("wikitext2_test_pages.jsonl", pages);
  const RunResult result =
      run({"--tasks", "piqa,wikitext", "--mode", "decode"}, {.interrupt_when = "wikitext"});
  EXPECT_EQ(result.code, 130) << testing::PrintToString(result);
  EXPECT_NE(read_file(out / "tasks.csv").find("piqa"), std::string::npos);
}

}  // namespace
}  // namespace sol::test
