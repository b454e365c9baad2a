// Whole tasks on the embedded model, with invented questions.
#include "evaluation/tasks/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "../../model/tokenizer_files.h"
#include "base/file_io.h"
#include "evaluation/tasks/task_files.h"
#include "evaluation/xml_check.h"
#include "made_tasks.h"
#include "policy/policies.h"
#include "sol/frozen_model.h"

namespace sol::test {
namespace {

struct Experiment : testing::Test {
  static void SetUpTestSuite() {
    const auto dir = source_dir() / "models/default";
    ModelOptions options;
    options.precision = Precision::f32;
    options.deterministic = true;
    model = load_model(dir, options).release();
    tokenizer = new std::shared_ptr<const Tokenizer>(Tokenizer::load(dir));
  }
  static void TearDownTestSuite() {
    delete model;
    delete tokenizer;
  }

  void SetUp() override {
    made.write_all();
    plan.decode = true;
    plan.prefill = true;
    plan.policies = {{"random-matched", random.get(), true},
                     {"k010-s050-q5", constant.get(), false},
                     {"fixed", fixed.get(), true}};
    plan.budgets = {{0.4f, 0.6f, 0.5f}, {0.7f, 0.8f, 0.8f}};
    plan.net_keeps = {0.5, 0.75};
    plan.space = space;
    plan.identity = {{"model", model->fingerprint()}};
  }

  std::vector<TaskCell> run(const std::string& name) {
    TaskRunner runner(*model, **tokenizer, scoring, chat);
    return run_task(runner, made.task(name), plan, CellStore(cells.path()));
  }

  static FrozenModel* model;
  static std::shared_ptr<const Tokenizer>* tokenizer;
  MadeData made;
  TemporaryDirectory cells;
  ActionSpace space{{0.1f, 1.0f}, {0.5f, 1.0f}, {5, 16}};
  std::unique_ptr<Policy> random = make_random_matched_policy(space, 1);
  std::unique_ptr<Policy> fixed = make_fixed_policy(space);
  std::unique_ptr<Policy> constant = make_constant_policy(parse_action("k010-s050-q5"));
  ScoringOptions scoring{.sequence = {}, .horizon = 4, .batch = 16};
  ChatFormat chat;
  TaskPlan plan;
};
FrozenModel* Experiment::model = nullptr;
std::shared_ptr<const Tokenizer>* Experiment::tokenizer = nullptr;

TEST_F(Experiment, EveryModePolicyAndBudget) {
  const auto done = run("arc_easy");
  std::vector<std::string> names;
  for (const TaskCell& cell : done)
    names.push_back(std::string(to_string(cell.mode)) + " " + cell.policy +
                    (cell.at_realised ? " realised" : "") +
                    (cell.point >= 0 ? std::to_string(cell.point) : ""));
  EXPECT_EQ(names, (std::vector<std::string>{"prefill dense", "decode dense", "decode k010-s050-q5",
                                             "decode random-matched0", "decode random-matched1",
                                             "decode fixed realised0", "decode fixed realised1"}));
  EXPECT_EQ(done[5].asked, done[3].spent.realised);
  EXPECT_EQ(done[5].requested, done[3].requested);
  EXPECT_EQ(done[3].asked, plan.budgets[0]);
  EXPECT_EQ(done[4].requested_net, 0.75);
  EXPECT_FLOAT_EQ(done[2].spent.realised.kappa, 0.1f);
  EXPECT_NEAR(done[2].net_keep, (0.1 + 0.5 + 0.3125) / 3, 1e-6);
  for (size_t i = 0; i < 3; ++i)
    for (size_t c = 0; c < done[0].documents[i].log_likelihoods.size(); ++c)
      EXPECT_NEAR(done[0].documents[i].log_likelihoods[c], done[1].documents[i].log_likelihoods[c],
                  1e-3);
  EXPECT_EQ(done[0].spent.steps, 0);
  EXPECT_DOUBLE_EQ(*done[0].chance, (1.0 / 3 + 1.0 / 4 + 1.0 / 2) / 3);
  EXPECT_EQ(done[0].metrics.size(), 3u);
}

TEST_F(Experiment, FinishedCellsAreNotRunAgain) {
  const auto first = run("piqa");
  const auto second = run("piqa");
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_FALSE(first[i].resumed);
    EXPECT_TRUE(second[i].resumed);
    EXPECT_EQ(first[i].main_metric().value, second[i].main_metric().value);
    EXPECT_EQ(first[i].spent.realised, second[i].spent.realised);
    EXPECT_EQ(first[i].documents[0].log_likelihoods, second[i].documents[0].log_likelihoods);
  }
  plan.budgets[1].kappa = 0.9f;  // another budget: its cells alone are new
  const auto third = run("piqa");
  EXPECT_EQ(std::ranges::count(third, false, &TaskCell::resumed), 2);
  plan.identity["seed"] = 2;
  EXPECT_EQ(std::ranges::count(run("piqa"), true, &TaskCell::resumed), 0);
  made.write("piqa_valid.jsonl", R"({"goal":"g","sol1":"a","sol2":"b","label":0})");
  EXPECT_EQ(std::ranges::count(run("piqa"), true, &TaskCell::resumed), 0);
}

// Interrupts passes as soon as `when` says so, until everything is done.
struct Interrupted {
  std::vector<TaskCell> cells;
  int times = 0;
  std::vector<double> begun;  // share that was done when each pass of each run reported first
};
template <typename When>
Interrupted run_interrupted(TaskRunner& runner, const Task& task, const TaskPlan& plan,
                            const CellStore& store, const When& when) {
  Interrupted result;
  while (result.cells.empty() && result.times < 20) {
    std::stop_source stop;
    int64_t first = -1, all = -1, before = 0;
    const auto progress = [&](int64_t done, int64_t total) {
      if (total != all || done < before) {
        first = done;
        result.begun.push_back(static_cast<double>(done) / static_cast<double>(total));
      }
      all = total;
      before = done;
      if (when(first, done, total)) stop.request_stop();
    };
    try {
      result.cells = run_task(runner, task, plan, store, progress, stop.get_token());
    } catch (const Cancelled&) {
      ++result.times;
    }
  }
  return result;
}

void expect_same(const std::vector<TaskCell>& got, const std::vector<TaskCell>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].documents.size(), expected[i].documents.size());
    EXPECT_EQ(got[i].spent.realised, expected[i].spent.realised);
    for (size_t d = 0; d < got[i].documents.size(); ++d) {
      EXPECT_EQ(got[i].documents[d].id, expected[i].documents[d].id);
      EXPECT_EQ(got[i].documents[d].log_likelihoods, expected[i].documents[d].log_likelihoods);
      EXPECT_EQ(got[i].documents[d].text, expected[i].documents[d].text);
    }
  }
}

int parts_in(const std::filesystem::path& cells) {
  int parts = 0;
  for (const auto& entry : std::filesystem::directory_iterator(cells))
    parts += entry.path().string().ends_with(".part.json");
  return parts;
}

// So long that five of them are scored together, then the other two.
std::string long_questions() {
  std::string questions;
  for (int i = 0; i < 7; ++i) {
    std::string text;
    for (int word = 0; word < 400 + i; ++word) text += word % 7 == i ? " blue" : " sky";
    questions += R"({"goal":"the colour of)" + text +
                 R"(","sol1":"is not known to anybody","sol2":"is blue","label":0})" + "\n";
  }
  return questions;
}

TEST_F(Experiment, AnInterruptedPassGoesOnWhereItWas) {
  made.write("piqa_valid.jsonl", long_questions());
  plan.budgets.resize(1);
  plan.net_keeps.clear();
  const Task task = made.task("piqa");
  TaskRunner runner(*model, **tokenizer, scoring);
  TemporaryDirectory apart;
  const auto expected = run_task(runner, task, plan, CellStore(apart.path()));
  const CellStore store(cells.path());
  // In prefill mode progress counts documents, else steps: while the last two are scored.
  const auto got =
      run_interrupted(runner, task, plan, store, [](int64_t first, int64_t done, int64_t total) {
        return total == 7 ? done < total : done > first + total * 5 / 7;
      });
  EXPECT_EQ(got.times, 3) << testing::PrintToString(got.begun);  // each pass once
  expect_same(got.cells, expected);
  EXPECT_EQ(parts_in(cells.path()), 0);
  // Each pass at its beginning, and again where it was; prefill tells of whole documents.
  ASSERT_EQ(got.begun.size(), 6u);
  EXPECT_DOUBLE_EQ(got.begun[0], 5 / 7.0);
  EXPECT_DOUBLE_EQ(got.begun[1], 1);
  for (const size_t decode : {2, 4}) {
    EXPECT_LT(got.begun[decode], 0.4);
    EXPECT_GT(got.begun[decode + 1], 5 / 7.0);
  }
}

TEST_F(Experiment, CellsThatWereBegunApartGoOnTogether) {
  made.write("piqa_valid.jsonl", long_questions());
  plan.prefill = false;
  plan.net_keeps.clear();
  plan.policies = {{"random-matched", random.get(), true}};
  const Task task = made.task("piqa");
  TaskRunner runner(*model, **tokenizer, scoring);
  TemporaryDirectory apart;
  const auto expected = run_task(runner, task, plan, CellStore(apart.path()));
  const CellStore store(cells.path());
  const std::vector<Budget> both = plan.budgets;
  plan.budgets = {both[1]};
  std::stop_source stop;
  EXPECT_THROW(run_task(
                   runner, task, plan, store,
                   [&](int64_t done, int64_t total) {
                     if (done > total * 5 / 7) stop.request_stop();
                   },
                   stop.get_token()),
               Cancelled);
  EXPECT_EQ(parts_in(cells.path()), 2);  // dense, and under one budget
  plan.budgets = both;
  expect_same(run_task(runner, task, plan, store), expected);
  EXPECT_EQ(parts_in(cells.path()), 0);
}

TEST_F(Experiment, AnswersThatWereInterruptedGoOn) {
  made.write("gsm8k_test.jsonl", R"({"question":"Ann has 2 cats.","answer":"#### 3"}
{"question":"Bob has 3 dogs.","answer":"#### 4"}
{"question":"Who has none?","answer":"#### 5"}
)");
  scoring.batch = 1;  // a document at a time
  plan.policies.clear();
  plan.budgets.clear();
  plan.net_keeps.clear();
  Task task = made.task("gsm8k_cot_llama");
  task.max_tokens = 12;
  TaskRunner runner(*model, **tokenizer, scoring);
  TemporaryDirectory apart;
  const auto expected = run_task(runner, task, plan, CellStore(apart.path()));
  const auto got = run_interrupted(
      runner, task, plan, CellStore(cells.path()),
      [](int64_t first, int64_t done, int64_t total) { return done == first && done < total; });
  EXPECT_EQ(got.times, 2);
  EXPECT_EQ(got.begun, (std::vector<double>{1 / 3.0, 2 / 3.0, 1}));
  expect_same(got.cells, expected);
}

TEST_F(Experiment, ADamagedCellIsAnError) {
  run("winogrande");
  for (const auto& entry : std::filesystem::directory_iterator(cells.path())) {
    Json cell = read_json(entry.path());
    cell["identity"]["task"] = "piqa";
    write_file_atomically(entry.path(), to_text(cell));
  }
  EXPECT_THAT([&] { run("winogrande"); }, throws({".json", "remove it"}));
}

TEST_F(Experiment, ACellWithAnotherNumberOfDocumentsIsAnError) {
  run("piqa");
  for (const auto& entry : std::filesystem::directory_iterator(cells.path())) {
    Json cell = read_json(entry.path());
    cell["documents"].push_back(cell["documents"][0]);
    std::filesystem::path part = entry.path();
    std::filesystem::remove(part);
    write_file_atomically(part.replace_extension(".part.json"), to_text(cell));
  }
  EXPECT_THAT([&] { run("piqa"); }, throws({".part.json", "remove it"}));
}

TEST_F(Experiment, ATaskThatGeneratesAsksThroughTheTemplate) {
  plan.policies = {{"fixed", fixed.get(), true}};
  plan.budgets.resize(1);
  plan.net_keeps.clear();
  int asked = 0;
  chat = [&](const std::vector<ChatMessage>& messages) {
    ++asked;
    return messages.back().content + "The final answer is";
  };
  plan.chat = true;
  const auto done = run("gsm8k_cot_llama");
  ASSERT_EQ(done.size(), 2u);  // no prefill
  EXPECT_EQ(asked, 2);
  EXPECT_TRUE(done[0].chat);
  EXPECT_EQ(done[0].policy, "dense");
  EXPECT_EQ(done[0].mode, ScoringMode::decode);
  const DocumentResult& answer = done[1].documents[0];
  EXPECT_GT(answer.spent.steps, 0);
  EXPECT_LE(answer.spent.steps, 256);
  EXPECT_NEAR(answer.spent.realised.kappa, 0.4, 0.05);
  EXPECT_NE(done[0].documents[0].text, answer.text);
  plan.decode = false;
  EXPECT_EQ(run("gsm8k_cot_llama").size(), 1u);
  TaskRunner runner(*model, **tokenizer, scoring);
  TaskPass pass(1);
  EXPECT_THAT([&] { runner.prefill(made.task("gsm8k_cot_llama"), pass); }, throws({"no prefill"}));
}

// Random weights choose among 320 ids, of which the tokenizer knows eight.
TEST_F(Experiment, IdsBeyondTheTokenizerAreNoText) {
  const auto random_weights = load_model(test_data() / "golden/tiny_tied_f32", {});
  const auto small = load_text(small_tokenizer().dump(), R"({"bos_token": "<s>"})");
  Task task = made.task("gsm8k_cot_llama");
  task.max_tokens = 40;
  const auto dense = make_constant_policy(Action{});
  const Arm arm{dense.get(), {}};
  TaskRunner runner(*random_weights, *small, scoring);
  TaskPass pass(1);
  runner.decode(task, {&arm, 1}, pass);
  const DocumentResult& answer = pass.results[0][0];
  EXPECT_EQ(answer.spent.steps, 40);
  EXPECT_LT(answer.text.size(), 40u) << answer.text;
}

// The stop string ends the writing; what was written before it is the answer.
TEST_F(Experiment, WritingEndsAtAStopString) {
  Task task = made.task("gsm8k_cot_llama");
  task.max_tokens = 40;
  const auto dense = make_constant_policy(Action{});
  const Arm arm{dense.get(), {}};
  TaskRunner runner(*model, **tokenizer, scoring);
  const auto answer = [&] {
    TaskPass pass(1);
    runner.decode(task, {&arm, 1}, pass);
    return pass.results[0][0];
  };
  const std::string whole = answer().text;
  ASSERT_GT(whole.size(), 30u);
  task.stops = {whole.substr(12, 6)};
  const DocumentResult cut = answer();
  EXPECT_EQ(cut.text, whole.substr(0, whole.find(task.stops[0])));
  EXPECT_LT(cut.spent.steps, 40);
}

// One schedule for all questions would be one draw, whose luck no number of questions evens out.
TEST_F(Experiment, RandomPoliciesDrawAnewForEveryWrittenAnswer) {
  const std::string line = R"({"question":"Ann has 2 cats.","answer":"#### 2"})";
  made.write("gsm8k_test.jsonl", line + "\n" + line + "\n");
  Task task = made.task("gsm8k_cot_llama");
  task.max_tokens = 12;
  const auto uniform = make_random_uniform_policy(space, 1);
  const auto spent = [&](const Policy& policy) {
    const Arm arm{&policy, {0.4f, 0.6f, 0.5f}};
    TaskRunner runner(*model, **tokenizer, scoring);
    TaskPass pass(1);
    runner.decode(task, {&arm, 1}, pass);
    return std::pair(pass.results[0][0].spent.realised, pass.results[0][1].spent.realised);
  };
  const auto random_pair = spent(*uniform), fixed_pair = spent(*fixed);
  EXPECT_NE(random_pair.first, random_pair.second);
  EXPECT_EQ(fixed_pair.first, fixed_pair.second);
}

// What the prompts of written answers go through decides no other cell.
TEST_F(Experiment, AChatTemplateIsPartOfWhatGoesThroughItAlone) {
  const Task task = made.task("piqa");
  TaskCell cell;
  const Json before = cell_identity(plan, task, cell);
  plan.chat = true;
  plan.chat_template = "one";
  EXPECT_EQ(cell_identity(plan, task, cell), before);
  cell.chat = true;
  const Json one = cell_identity(plan, task, cell);
  plan.chat_template = "another";
  EXPECT_NE(cell_identity(plan, task, cell), one);
}

TEST_F(Experiment, RollingPagesInBothModes) {
  const auto done = run("wikitext");
  const auto word = [&](size_t i) {
    return find_metric(done[i].metrics, "word_perplexity")->value;
  };
  EXPECT_NEAR(word(0), word(1), 1e-3 * word(0));
  EXPECT_GT(word(2), word(1));  // compressed
  EXPECT_FALSE(done[0].chance.has_value());
  EXPECT_EQ(done[1].documents[0].tokens, done[1].spent.steps);
}

TEST_F(Experiment, FilesAndReportHoldEveryCell) {
  std::vector<TaskCell> all;
  for (const char* name : {"arc_easy", "winogrande", "wikitext"})
    std::ranges::move(run(name), std::back_inserter(all));
  TaskSettings settings;
  settings.run = describe_run(*model, "model <1>", 3, "sol tasks");
  settings.run.outside_paper = {"prune-down", "channel-scores wina"};
  settings.controller = "a & b";
  settings.scoring = scoring;
  settings.scoring.sequence = {.page_size = 16, .sinks = 8, .window = 3, .force_sinks = false};
  TemporaryDirectory out;
  write_tasks(out.path(), all, settings);
  const auto lines = [](const std::string& text) {
    return static_cast<size_t>(std::ranges::count(text, '\n'));
  };
  const std::string csv = read_file(out.path() / "tasks.csv");
  EXPECT_EQ(lines(csv), 1 + all.size());
  const auto expect_rectangular = [](const std::string& table) {
    const auto commas = [](std::string_view line) { return std::ranges::count(line, ','); };
    const auto expected = commas(std::string_view(table).substr(0, table.find('\n')));
    for (size_t at = 0; at < table.size();) {
      const size_t end = table.find('\n', at);
      EXPECT_EQ(commas(std::string_view(table).substr(at, end - at)), expected);
      at = end + 1;
    }
  };
  expect_rectangular(csv);
  EXPECT_THAT(
      csv.substr(0, csv.find('\n')),
      testing::EndsWith(",controller,model,model_fingerprint,commit,isa,threads,seed,device,"
                        "precision,weights,outside_paper,horizon,page_size,sinks,window,"
                        "force_sinks"));
  const std::string conditions =
      fmt::format(",a & b,model <1>,{},{},{},{},3,native,f32,{},", settings.run.model_fingerprint,
                  settings.run.commit, settings.run.isa, settings.run.threads,
                  settings.run.weights) +
      "prune-down;channel-scores wina,4,16,8,3,0\n";
  EXPECT_THAT(csv, testing::EndsWith(conditions));
  const std::string means = read_file(out.path() / "means.csv");
  EXPECT_EQ(lines(means), 1u + 7);  // over arc_easy and winogrande, of each mode, policy and budget
  EXPECT_THAT(means, testing::EndsWith(conditions));
  expect_rectangular(means);
  const std::string jsonl = read_file(out.path() / "tasks.jsonl");
  EXPECT_EQ(lines(jsonl), 7u * 3 + 7 * 1 + 7 * 1);
  const Json line = parse_json(std::string_view(jsonl).substr(0, jsonl.find('\n')), "line");
  for (const char* field : {"task", "mode", "policy", "doc_id", "log_likelihoods", "chosen", "gold",
                            "commit", "model_fingerprint", "isa", "threads", "seed", "data"})
    EXPECT_TRUE(line.contains(field)) << field;
  const Json named = {{"device", "native"},
                      {"precision", "f32"},
                      {"weights", settings.run.weights},
                      {"outside_paper", settings.run.outside_paper},
                      {"horizon", 4},
                      {"page_size", 16},
                      {"sinks", 8},
                      {"window", 3},
                      {"force_sinks", false}};
  for (const auto& [field, value] : named.items()) EXPECT_EQ(line.at(field), value) << field;
  EXPECT_THAT(jsonl, testing::HasSubstr("\"controller\":\"a & b\",\"commit\":"));
  const std::string html = read_file(out.path() / "report.html");
  EXPECT_EQ(check_xml(html, {"meta"}), "");
  for (const char* part : {"model &lt;1&gt;", "a &amp; b", "chance:", "at chance", "bits_per_byte",
                           "fixed at realised averages", "<svg"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
  const std::string text = tasks_text(all);
  for (const char* part : {"prefill", "decode", "at chance", "nothing follows", "bits per byte"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  EXPECT_THAT([&] { write_tasks(out.path() / "missing", all, settings); }, throws({"missing"}));
}

}  // namespace
}  // namespace sol::test
