// Metrics, answers and what is kept of them, against figures worked out by hand.
#include <cmath>

#include "evaluation/tasks/answers.h"
#include "evaluation/tasks/task_files.h"
#include "evaluation/tasks/task_means.h"
#include "evaluation/tasks/task_result.h"
#include "made_tasks.h"

namespace sol::test {
namespace {

TEST(Answers, TheLastNumberAfterThePhrase) {
  EXPECT_EQ(strict_answer("so The final answer is 18"), "18");
  EXPECT_EQ(strict_answer("The final answer is 3. No: The final answer is $1,234.50."),
            "$1,234.50.");
  EXPECT_EQ(strict_answer("The final answer is -7"), "-7");
  EXPECT_EQ(strict_answer("The final answer is 5 apples"), "5");
  EXPECT_EQ(strict_answer("The final answer is five, not 5"), "[invalid]");
  EXPECT_EQ(strict_answer("the final answer is 5"), "[invalid]");
  EXPECT_EQ(strict_answer("The final answer is 1. The final answer is x"), "1.");
  EXPECT_EQ(strict_answer(""), "[invalid]");
}

TEST(Answers, TheLastNumberAnywhere) {
  EXPECT_EQ(flexible_answer("2 and 3 make 5!"), "5");
  EXPECT_EQ(flexible_answer("5 ... or so"), "...");  // two points are a number here, as there
  EXPECT_EQ(flexible_answer("a-3b"), "-3");
  EXPECT_EQ(flexible_answer("10-3"), "-3");
  EXPECT_EQ(flexible_answer("5."), "5.");
  EXPECT_EQ(flexible_answer("no. none"), "[invalid]");
}

TEST(Answers, EqualApartFromMarks) {
  EXPECT_TRUE(same_answer("$1,234.", "1234"));
  EXPECT_TRUE(same_answer("x #### 5", "5"));
  EXPECT_TRUE(same_answer("ABC", "abc"));
  EXPECT_FALSE(same_answer("1234.50", "1234.5"));
  EXPECT_FALSE(same_answer("[invalid]", "5"));
}

TEST(Answers, CutAtTheFirstStop) {
  const std::vector<std::string> stops{"Q:", "</s>"};
  EXPECT_EQ(cut_at_stops("a </s> b Q: c", stops), "a ");
  EXPECT_EQ(cut_at_stops("a", stops), "a");
  EXPECT_EQ(cut_at_stops("Q:", stops), "");
}

std::vector<RequestScore> scores(const std::vector<double>& values) {
  std::vector<RequestScore> result;
  for (const double value : values) result.push_back({value, {}});
  return result;
}

TEST(TaskResults, ChoicesByLikelihoodPerCharacterAndPerByte) {
  TaskDocument document;
  document.gold = 1;
  document.characters = {2, 10, 4};
  document.utf8_bytes = {2, 10, 16};
  const DocumentResult result = choose(document, true, scores({-4, -8, -6}));
  EXPECT_EQ(result.chosen, 0);
  EXPECT_EQ(result.chosen_norm, 1);                                    // -2, -0.8, -1.5
  EXPECT_EQ(result.chosen_bytes, 2);                                   // -2, -0.8, -0.375
  EXPECT_EQ(choose(document, false, scores({-4, -4, -6})).chosen, 0);  // the first of equal ones
  EXPECT_EQ(choose(document, false, scores({-4, -4, -6})).chosen_norm, -1);
}

DocumentResult answered(int choices, bool right) {
  DocumentResult result;
  result.log_likelihoods.assign(static_cast<size_t>(choices), -1);
  result.gold = 0;
  result.chosen = result.chosen_norm = result.chosen_bytes = right ? 0 : 1;
  return result;
}

TEST(TaskResults, AccuracyWithItsErrorAndChance) {
  const std::vector<DocumentResult> documents{answered(4, true), answered(2, true),
                                              answered(4, false), answered(4, true)};
  EXPECT_DOUBLE_EQ(*chance_level(TaskKind::choices, documents), (3 * 0.25 + 0.5) / 4);
  const auto all = metrics(TaskKind::choices, true, documents);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name, "acc");
  EXPECT_DOUBLE_EQ(all[0].value, 0.75);
  EXPECT_NEAR(*all[0].standard_error, 0.5 / 2, 1e-12);  // deviation of 1 1 0 1 is ½
  EXPECT_TRUE(all[0].at_chance);
  EXPECT_EQ(metrics(TaskKind::choices, false, documents).size(), 1u);
  EXPECT_EQ(find_metric(all, "acc_norm")->value, 0.75);
  EXPECT_EQ(find_metric(all, "word_perplexity"), nullptr);
  EXPECT_THROW(metrics(TaskKind::choices, true, {}), Error);

  // Three of four over a hundred documents is more than luck; none of three is not, though its
  // measured error is 0.
  std::vector<DocumentResult> many;
  for (int i = 0; i < 100; ++i) many.push_back(answered(4, i % 4 != 0));
  EXPECT_FALSE(metrics(TaskKind::choices, false, many)[0].at_chance);
  const std::vector<DocumentResult> few(3, answered(4, false));
  EXPECT_TRUE(metrics(TaskKind::choices, false, few)[0].at_chance);
}

TEST(TaskResults, PairedDifferences) {
  const std::vector<DocumentResult> one{answered(2, true), answered(2, true), answered(2, true),
                                        answered(2, false)};
  const std::vector<DocumentResult> other{answered(2, true), answered(2, false), answered(2, false),
                                          answered(2, false)};
  const PairedAccuracy paired = paired_accuracy(TaskKind::choices, one, other);
  EXPECT_DOUBLE_EQ(paired.difference, 0.5);
  EXPECT_NEAR(paired.standard_error, std::sqrt(1.0 / 3) / 2, 1e-12);
  EXPECT_THROW(paired_accuracy(TaskKind::choices, one, {}), Error);
}

// A policy's cell and its baseline's, which answers the first `wrong` of so many questions wrongly.
std::vector<TaskCell> compared_cells(int documents, int wrong) {
  TaskCell judged;
  judged.task = "made";
  judged.policy = "learned";
  judged.budgeted = true;
  judged.point = 0;
  judged.documents.assign(static_cast<size_t>(documents), answered(4, true));
  TaskCell baseline = judged;
  baseline.policy = "fixed";
  baseline.at_realised = true;
  for (int i = 0; i < wrong; ++i) baseline.documents[static_cast<size_t>(i)] = answered(4, false);
  std::vector<TaskCell> cells{judged, baseline};
  for (TaskCell& cell : cells) {
    cell.chance = chance_level(cell.kind, cell.documents);
    cell.metrics = metrics(cell.kind, false, cell.documents);
  }
  return cells;
}

TEST(TaskResults, WithoutSpreadNoDifferenceIsClear) {
  using testing::ElementsAre;
  using testing::HasSubstr;
  EXPECT_THAT(task_findings(compared_cells(8, 8)),
              ElementsAre(HasSubstr("+1.0000 ± 0.0000, not distinguishable")));
  EXPECT_THAT(task_findings(compared_cells(8, 7)),
              ElementsAre(HasSubstr("more than 2 standard errors")));
}

// Nothing was there to save: a net keep-rate would be one of no step at all.
TEST(TaskResults, WhereNoStepCountsNoNetKeepRateIsNamed) {
  using testing::ElementsAre;
  using testing::HasSubstr;
  using testing::Not;
  std::vector<TaskCell> cells = compared_cells(8, 7);
  for (TaskCell& cell : cells) cell.requested_net = 0.5;
  EXPECT_THAT(task_findings(cells),
              ElementsAre(HasSubstr("made (requested 0.500; no step counts): learned 1.0000")));
  EXPECT_THAT(tasks_text(cells), Not(HasSubstr("at net")));
  for (TaskCell& cell : cells) cell.spent = {9, 7, {0.5f, 1, 1}, 5};
  cells[0].net_keep = 0.5;
  EXPECT_THAT(task_findings(cells), ElementsAre(HasSubstr("made at net 0.500: learned 1.0000")));
  for (TaskCell& cell : cells) {
    cell.spent = {};
    cell.metrics[0].at_chance = true;
  }
  EXPECT_THAT(task_findings(cells),
              testing::Contains(
                  HasSubstr("made (requested 0.500; no step counts): learned and fixed are both")));
}

// A judged policy's answers to so many questions with four choices.
TaskCell answered_cell(const std::string& task, int right, int wrong) {
  TaskCell cell;
  cell.task = task;
  cell.mode = ScoringMode::decode;
  cell.policy = "learned";
  cell.budgeted = true;
  cell.point = 0;
  cell.requested_net = 0.6;
  for (int i = 0; i < right + wrong; ++i) cell.documents.push_back(answered(4, i < right));
  cell.chance = chance_level(cell.kind, cell.documents);
  cell.metrics = metrics(cell.kind, true, cell.documents);
  return cell;
}

TEST(TaskMeans, EachTaskCountsAlike) {
  std::vector<TaskCell> cells{answered_cell("arc_easy", 3, 1), answered_cell("piqa", 2, 6)};
  cells[0].spent = {20, 10, {0.5f, 1, 1}, 8};
  cells[0].net_keep = 0.5;
  cells[1].spent = {60, 30, {0.75f, 1, 0.5f}, 40};
  cells[1].net_keep = 0.625;
  TaskCell written = cells[0];  // no choices: no part of the mean
  written.task = "gsm8k_cot_llama";
  written.kind = TaskKind::generation;
  cells.push_back(written);
  const auto means = task_means(cells);
  ASSERT_EQ(means.size(), 1u);
  EXPECT_EQ(means[0].name, "tasks");
  EXPECT_EQ(means[0].documents, 12u);
  EXPECT_EQ(means[0].of, (std::vector<const TaskCell*>{&cells[0], &cells[1]}));
  const TaskCell& cell = means[0].cell;
  EXPECT_EQ(cell.policy, "learned");
  EXPECT_EQ(cell.point, 0);
  EXPECT_EQ(cell.requested_net, 0.6);
  EXPECT_DOUBLE_EQ(cell.main_metric().value, 0.5);  // of 3/4 and 2/8
  // Deviation of 1 1 1 0: ½; of two ones and six zeros: √(3/14).
  EXPECT_NEAR(*cell.main_metric().standard_error, std::sqrt(0.25 / 4 + 3.0 / 14 / 8) / 2, 1e-12);
  EXPECT_DOUBLE_EQ(*cell.chance, 0.25);
  EXPECT_TRUE(cell.main_metric().at_chance);
  EXPECT_DOUBLE_EQ(cell.net_keep, 0.5625);
  EXPECT_EQ(cell.spent.realised, (Budget{0.625f, 1, 0.75f}));
  EXPECT_EQ(cell.spent.effective_steps, 40);

  cells[1].spent = {8, 0, {}, 8};
  EXPECT_EQ(task_means(cells)[0].cell.spent.effective_steps, 0) << "one has no net keep-rate";
}

TEST(TaskMeans, SubjectsOfOneFormAreWeightedByTheirQuestions) {
  const std::vector<TaskCell> cells{
      answered_cell("mmlu_one", 30, 10), answered_cell("mmlu_one_continuation", 1, 1),
      answered_cell("mmlu_other", 10, 110), answered_cell("arc_easy", 1, 1)};
  const auto means = task_means(cells);
  ASSERT_EQ(means.size(), 2u) << "one subject in the other form is no mean";
  EXPECT_EQ(means[0].name, "tasks");
  EXPECT_EQ(means[0].of.size(), 4u);
  EXPECT_EQ(means[1].name, "mmlu");
  EXPECT_EQ(means[1].of, (std::vector<const TaskCell*>{&cells[0], &cells[2]}));
  const Metric& accuracy = means[1].cell.main_metric();
  EXPECT_DOUBLE_EQ(accuracy.value, 40.0 / 160);
  const double first = 30.0 * 10 / 40 / 39 / 40, second = 10.0 * 110 / 120 / 119 / 120;
  EXPECT_NEAR(*accuracy.standard_error, std::sqrt(first / 16 + second * 9 / 16), 1e-12);
  EXPECT_TRUE(accuracy.at_chance);
}

TEST(TaskMeans, OnlyWhatWasAskedAlike) {
  std::vector<TaskCell> cells{answered_cell("arc_easy", 1, 1), answered_cell("piqa", 1, 1)};
  EXPECT_EQ(task_means(cells).size(), 1u);
  EXPECT_TRUE(task_means({}).empty());
  const auto together = [&](const auto& change) {
    std::vector<TaskCell> changed = cells;
    change(changed[1]);
    return !task_means(changed).empty();
  };
  EXPECT_FALSE(together([](TaskCell& cell) { cell.mode = ScoringMode::prefill; }));
  EXPECT_FALSE(together([](TaskCell& cell) { cell.policy = "fixed"; }));
  EXPECT_FALSE(together([](TaskCell& cell) { cell.point = 1; }));
  EXPECT_FALSE(together([](TaskCell& cell) { cell.at_realised = true; }));
}

TEST(TaskMeans, InTextTableAndReport) {
  using testing::HasSubstr;
  const std::vector<TaskCell> cells{answered_cell("mmlu_one", 3, 1),
                                    answered_cell("mmlu_other", 2, 6)};
  const std::string text = tasks_text(cells);
  EXPECT_THAT(text, HasSubstr("mean of 2 tasks"));
  EXPECT_THAT(text, HasSubstr("mmlu (2 subjects)"));
  EXPECT_THAT(text, HasSubstr("acc 0.4167 ± "));
  TaskSettings settings;
  settings.run.model = "made";
  const std::string csv = means_csv(cells, settings);
  EXPECT_THAT(csv, testing::StartsWith("mean,tasks,documents,"));
  EXPECT_THAT(csv,
              HasSubstr("\ntasks,mmlu_one;mmlu_other,12,decode,learned,,0,0.6,1,1,1,,,,,0.5,"));
  EXPECT_THAT(csv, HasSubstr("\nmmlu,mmlu_one;mmlu_other,12,decode,learned,,0,0.6,1,1,1,,,,,0.41"));
  const std::string html = tasks_report(cells, settings);
  EXPECT_THAT(html, HasSubstr("<h2>mean of 2 tasks</h2>"));
  EXPECT_THAT(html, HasSubstr("<h2>mmlu (2 subjects)</h2>"));
  EXPECT_THAT(html, HasSubstr("mmlu_one, mmlu_other. Subjects are weighted"));
  EXPECT_THAT(tasks_text({cells[0]}), testing::Not(HasSubstr("mean of")));
}

TEST(TaskResults, PerplexitiesWeighDocumentsByTheirLength) {
  TaskDocument page;
  page.words = 3;
  page.page_bytes = 8;
  DocumentResult first = sum_windows(page, scores({-6, -2}), 9);
  EXPECT_DOUBLE_EQ(first.log_likelihood, -8);
  EXPECT_EQ(first.tokens, 9);
  page.words = 1;
  page.page_bytes = 8;
  const auto all = metrics(TaskKind::rolling, false, {first, sum_windows(page, scores({-4}), 2)});
  EXPECT_NEAR(find_metric(all, "word_perplexity")->value, std::exp(12.0 / 4), 1e-12);
  EXPECT_NEAR(find_metric(all, "byte_perplexity")->value, std::exp(12.0 / 16), 1e-12);
  EXPECT_NEAR(find_metric(all, "bits_per_byte")->value, 12.0 / 16 / std::log(2.0), 1e-12);
  EXPECT_FALSE(all[0].standard_error.has_value());
}

TEST(TaskResults, AnswersAreJudgedTwice) {
  TaskDocument document;
  document.target = "1234";
  const DocumentResult loose = judge_answer(document, "it is 1,234 I think", {});
  EXPECT_FALSE(loose.strict_match);
  EXPECT_TRUE(loose.flexible_match);
  const DocumentResult strict = judge_answer(document, "The final answer is $1,234.", {});
  EXPECT_TRUE(strict.strict_match);
  const auto all = metrics(TaskKind::generation, false, {loose, strict});
  EXPECT_DOUBLE_EQ(find_metric(all, "exact_match_strict")->value, 0.5);
  EXPECT_DOUBLE_EQ(find_metric(all, "exact_match_flexible")->value, 1.0);
  EXPECT_FALSE(chance_level(TaskKind::generation, {loose}).has_value());
}

TEST(TaskResults, ThroughJsonAndBack) {
  DocumentResult choice = answered(3, true);
  choice.id = 7;
  choice.log_likelihoods = {-0.1, -1.0 / 3, -12.25};
  choice.spent = {5, 4, {0.1f, 0.7f, 0.5f}, 3.5};
  TaskDocument asked;
  asked.target = "5";
  TaskDocument page;
  page.words = 3;
  page.page_bytes = 9;
  const std::pair<TaskKind, DocumentResult> cases[] = {
      {TaskKind::choices, choice},
      {TaskKind::choices, answered(2, false)},
      {TaskKind::generation, judge_answer(asked, "a \"5\"\n", {3, 0, {}, 3})},
      {TaskKind::rolling, sum_windows(page, scores({-1.5}), 2)}};
  for (const auto& [kind, result] : cases) {
    const Json json = to_json(kind, result);
    const Json read = parse_json(to_text(json), "text");
    EXPECT_EQ(to_json(kind, document_result_from_json(kind, read, "text")), json);
    for (const auto& [field, value] : json.items()) {
      if (field.starts_with("chosen_") || field == "steps") continue;  // may be absent
      Json broken = json;
      broken.erase(field);
      EXPECT_THAT([&] { document_result_from_json(kind, broken, "text"); },
                  throws({"text", field}));
    }
  }
}

}  // namespace
}  // namespace sol::test
