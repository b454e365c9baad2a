#include "evaluation/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "base/file_io.h"
#include "evaluation/named_policy.h"
#include "evaluation/report.h"
#include "evaluation/sweep_files.h"
#include "evaluation/sweep_plots.h"
#include "evaluation/sweep_tables.h"
#include "fake_model.h"
#include "file_size_limit.h"
#include "policy/policies.h"
#include "sol/error.h"
#include "support.h"
#include "throws.h"
#include "xml_check.h"

namespace sol {
namespace {

using test::fake_blocks;
using test::FakeModel;
using test::first_blocks;
using test::small_protocol;
using testing::ElementsAre;
using testing::HasSubstr;

ActionSpace harsh_space() {
  return ActionSpace({0.02f, 1.0f}, {0.3f, 1.0f}, {3, 16});
}

// Spends more than it was asked for: two steps out of eight are dense, whatever the budget.
class Overspender final : public Policy {
 public:
  std::string name() const override { return "over<spender>"; }
  const ActionSpace& space() const override { return space_; }
  std::unique_ptr<PolicyState> begin(const Budget&, int, const EpisodeId&) const override {
    return std::make_unique<PolicyState>();
  }
  void next(std::span<PolicyStep> steps) const override {
    for (PolicyStep& step : steps)
      step.action = step.observation->step <= 2 ? space_.dense_index() : 0;
  }

 private:
  ActionSpace space_ = harsh_space();
};

struct SweepTest : testing::Test {
  FakeModel model;
  ProtocolOptions options = small_protocol();
  BlockDataset data = fake_blocks(12, options);
  Overspender policy;
  std::unique_ptr<Policy> fixed = make_fixed_policy(harsh_space());
  std::unique_ptr<Policy> random = make_random_matched_policy(harsh_space(), 3);

  SweepRequest request() {
    SweepRequest result;
    result.policy = &policy;
    result.baselines = {fixed.get(), random.get()};
    result.budgets = {{0.1f, 0.4f, 0.3f}, {0.265f, 0.475f, 0.39f}, {0.5f, 0.6f, 0.5f}};
    result.inside = {true, true, false};
    return result;
  }
  Sweep run(const SweepRequest& what) {
    BlockEvaluator evaluator(model, data, first_blocks(12), options, 1 << 20);
    return run_sweep(evaluator, what);
  }
  SweepSettings settings() {
    SweepSettings result;
    result.run = describe_run(model, "model & co", 7, "sol sweep '<all>'");
    result.data = "text <1>.txt";
    result.grid = "three budgets";
    result.blocks_available = 12;
    return result;
  }
};

TEST_F(SweepTest, BaselinesMeetBothBudgets) {
  const Sweep sweep = run(request());
  ASSERT_EQ(sweep.points.size(), 3u);
  EXPECT_EQ(sweep.policy, "over<spender>");
  EXPECT_EQ(sweep.baselines, (std::vector<std::string>{"fixed", "random-matched"}));
  EXPECT_EQ(model.prefilled, 12 * options.context);  // once, for both passes
  for (const SweepPoint& point : sweep.points) {
    // Two dense steps and six of the lowest levels.
    EXPECT_NEAR(point.policy.realised.kappa, (2 + 6 * 0.02) / 8, 1e-6);
    EXPECT_NEAR(point.policy.realised.eta, (2 + 6 * 3.0 / 16) / 8, 1e-6);
    EXPECT_NEAR(point.policy.net_keep,
                (static_cast<double>(point.policy.realised.kappa) +
                 static_cast<double>(point.policy.realised.rho) +
                 static_cast<double>(point.policy.realised.eta)) /
                    3,
                1e-6);
    ASSERT_EQ(point.realised.size(), 2u);
    ASSERT_EQ(point.requested_budget.size(), 2u);
    for (size_t b = 0; b < 2; ++b) {
      EXPECT_EQ(point.realised[b].asked, point.policy.realised);
      EXPECT_EQ(point.requested_budget[b].asked, point.requested);
      EXPECT_NEAR(point.realised[b].net_keep, point.policy.net_keep, 0.05);
    }
    EXPECT_EQ(point.policy.nll.size(), 12u);
    EXPECT_EQ(point.policy.steps, 12 * 8);
  }
  // In the fake model what is kept is what counts: asked for less, the baseline is worse.
  EXPECT_GT(sweep.points[0].requested_budget[0].perplexity, sweep.points[0].policy.perplexity);
  EXPECT_LT(sweep.dense.perplexity, sweep.points[0].policy.perplexity);
}

// The schedule follows the text: which steps are dense depends on the block.
class Reader final : public Policy {
 public:
  std::string name() const override { return "reader"; }
  const ActionSpace& space() const override { return space_; }
  std::unique_ptr<PolicyState> begin(const Budget&, int, const EpisodeId& id) const override {
    auto state = std::make_unique<State>();
    state->sequence = id.sequence;
    return state;
  }
  void next(std::span<PolicyStep> steps) const override {
    for (PolicyStep& step : steps) step.action = action(*step.state, step.observation->step);
  }
  int action(uint64_t sequence, int t) const {
    return static_cast<uint64_t>(t) % 4 == sequence % 4 ? space_.dense_index() : 0;
  }

 private:
  struct State : PolicyState {
    uint64_t sequence = 0;
  };
  int action(const PolicyState& state, int t) const {
    return action(static_cast<const State&>(state).sequence, t);
  }
  ActionSpace space_ = harsh_space();
};

TEST_F(SweepTest, ElsewherePlaysWhatWasChosenHalfOfTheDataAway) {
  const Reader reader;
  SweepRequest what = request();
  what.policy = &reader;
  what.elsewhere = true;
  const Sweep sweep = run(what);
  EXPECT_EQ(sweep.baselines, (std::vector<std::string>{"fixed", "random-matched", "elsewhere"}));

  RecordedSchedules elsewhere;
  for (uint64_t block = 0; block < 12; ++block)
    for (int t = 1; t <= options.horizon; ++t)
      elsewhere[{block, 0}].push_back(reader.action((block + 6) % 12, t));
  const auto expected = make_replay_policy(reader.space(), elsewhere);
  BlockEvaluator evaluator(model, data, first_blocks(12), options);
  const Arm arm{expected.get(), Budget{}, 0};
  const auto results = evaluator.run({&arm, 1});
  for (const SweepPoint& point : sweep.points) {
    ASSERT_EQ(point.realised.size(), 3u);
    ASSERT_EQ(point.requested_budget.size(), 2u);
    const Outcome& outcome = point.realised[2];
    EXPECT_EQ(outcome.asked, point.policy.realised);
    EXPECT_EQ(outcome.realised, point.policy.realised);
    EXPECT_NE(outcome.nll, point.policy.nll);
    for (size_t b = 0; b < 12; ++b) EXPECT_EQ(outcome.nll[b], results[0][b].nll) << b;
  }
  const Comparison* row =
      summarise(sweep, 1, 300).find("elsewhere", Matching::realised, Scope::all);
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->test.n, 3);
}

TEST_F(SweepTest, ElsewhereIsPlayedOnceAndNeedsAnotherBlock) {
  SweepRequest what = request();
  what.elsewhere = true;
  BlockEvaluator evaluator(model, data, first_blocks(12), options);
  int64_t last = 0, all = 0;
  run_sweep(evaluator, what, [&](int64_t done, int64_t total) {
    last = done;
    all = total;
  });
  EXPECT_EQ(all, 12 * (1 + 3 + 6 + 6 + 3));
  EXPECT_EQ(last, all);
  what.baselines.clear();
  const Sweep sweep = run_sweep(evaluator, what);  // alone
  EXPECT_TRUE(sweep.points[0].requested_budget.empty());
  ASSERT_EQ(sweep.points[0].realised.size(), 1u);
  EXPECT_EQ(sweep.points[0].realised[0].nll.size(), 12u);
  BlockEvaluator lonely(model, data, first_blocks(1), options);
  EXPECT_THROW(run_sweep(lonely, what), Error);
  what.match_realised = false;
  EXPECT_THROW(run_sweep(evaluator, what), Error);
}

TEST_F(SweepTest, ProgressReachesTheEnd) {
  BlockEvaluator evaluator(model, data, first_blocks(12), options);
  int64_t last = 0, all = 0;
  const SweepRequest what = request();
  run_sweep(evaluator, what, [&](int64_t done, int64_t total) {
    EXPECT_GE(done, last);
    last = done;
    all = total;
  });
  EXPECT_EQ(all, 12 * (1 + 3 + 6 + 6));
  EXPECT_EQ(last, all);
}

TEST_F(SweepTest, OneMatchingAlone) {
  SweepRequest what = request();
  what.match_realised = false;
  Sweep sweep = run(what);
  EXPECT_TRUE(sweep.points[0].realised.empty());
  EXPECT_EQ(sweep.points[0].requested_budget.size(), 2u);
  what.requested_baselines = 1;
  what.match_realised = true;
  sweep = run(what);
  EXPECT_EQ(sweep.points[0].requested_budget.size(), 1u);
  EXPECT_EQ(sweep.points[0].realised.size(), 2u);
  const SweepSummary summary = summarise(sweep, 1, 300);
  EXPECT_NE(summary.find("fixed", Matching::requested, Scope::inside), nullptr);
  EXPECT_EQ(summary.find("random-matched", Matching::requested, Scope::inside), nullptr);
  EXPECT_NE(summary.find("random-matched", Matching::realised, Scope::inside), nullptr);
  what.requested_baselines = 0;
  sweep = run(what);
  EXPECT_TRUE(sweep.points[0].requested_budget.empty());
  EXPECT_EQ(sweep.points[0].realised.size(), 2u);
  what.budgets.clear();
  EXPECT_THROW(run(what), Error);
}

TEST_F(SweepTest, SummaryComparesAndMeasuresAdherence) {
  const Sweep sweep = run(request());
  const SweepSummary summary = summarise(sweep, 1, 300);
  EXPECT_EQ(summary.comparisons.size(), 2u * 2 * 3);
  const Comparison* inside = summary.find("fixed", Matching::requested, Scope::inside);
  ASSERT_NE(inside, nullptr);
  EXPECT_EQ(inside->test.n, 2);
  EXPECT_LT(inside->interval.low, inside->interval.high);
  EXPECT_GE(inside->test.difference.mean, inside->interval.low);
  EXPECT_LE(inside->test.difference.mean, inside->interval.high);
  EXPECT_EQ(summary.find("fixed", Matching::realised, Scope::all)->test.n, 3);
  EXPECT_EQ(summary.find("dense", Matching::realised, Scope::all), nullptr);

  // Realised is (0.265, 0.475, 0.390625) at every point: the second request is met, the others not.
  ASSERT_EQ(summary.adherence.size(), 2u);
  EXPECT_DOUBLE_EQ(summary.adherence[0].all_axes_share, 0.5);
  EXPECT_NEAR(summary.adherence[1].all_axes_share, 1.0 / 3, 1e-12);
  EXPECT_NEAR(summary.adherence[1].largest_error[0], 0.235, 1e-6);
  EXPECT_NEAR(summary.adherence[0].mean_error[0], 0.165 / 2, 1e-6);
  EXPECT_EQ(summary.policy_frontier.size(), 1u);  // all points are the same
  EXPECT_EQ(summary.realised_frontiers.size(), 2u);
}

// Also where dense steps lie on the x axis: they may be the cheapest.
TEST_F(SweepTest, PlotsShowTheDenseRun) {
  const Sweep sweep = run(request());
  const std::string plot = frontier_plot(sweep, summarise(sweep, 1, 300), net_keep, "t", "x");
  EXPECT_THAT(plot, HasSubstr(fmt::format("net keep-rate 1.000, perplexity {:.3f}",
                                          sweep.dense.perplexity)));
}

TEST_F(SweepTest, NothingInsideLeavesOnlyTheWholeGrid) {
  SweepRequest what = request();
  what.inside = {false, false, false};
  const Sweep sweep = run(what);
  const SweepSummary summary = summarise(sweep, 1, 300);
  EXPECT_EQ(summary.comparisons.size(), 4u);
  EXPECT_EQ(summary.adherence.size(), 1u);
  EXPECT_THROW(validation_frontier(sweep), Error);
  EXPECT_EQ(test::check_xml(sweep_report(sweep, summary, settings()), {"meta"}), "");
}

TEST_F(SweepTest, TheValidationFrontierIsMonotoneAndInside) {
  SweepRequest what = request();
  what.policy = fixed.get();
  what.baselines = {random.get()};
  what.budgets.clear();
  for (const float share : {0.35f, 0.5f, 0.65f, 0.8f, 0.95f})
    what.budgets.push_back({share, share, share});
  what.inside = {true, true, true, true, false};
  const auto frontier = validation_frontier(run(what));
  ASSERT_GE(frontier.size(), 2u);
  for (size_t i = 0; i < frontier.size(); ++i) {
    EXPECT_LT(frontier[i].budget.kappa, 0.9f);
    EXPECT_NEAR(frontier[i].net_keep, frontier[i].budget.kappa, 0.05);
    if (i > 0) {
      EXPECT_GT(frontier[i].net_keep, frontier[i - 1].net_keep);
      EXPECT_LT(frontier[i].perplexity, frontier[i - 1].perplexity);
    }
  }
}

// A model that is better with less must not forbid to ask for more.
TEST_F(SweepTest, TheDialGoesUpToWhatSpentMostInside) {
  Sweep sweep = run(request());
  const SweepPoint point = sweep.points[0];
  sweep.points.clear();
  for (const auto& [net_keep, perplexity, inside] :
       std::initializer_list<std::tuple<double, double, bool>>{
           {0.3, 9, true}, {0.5, 7, true}, {0.7, 8, true}, {0.6, 7.5, true}, {0.9, 7.2, false}}) {
    SweepPoint& other = sweep.points.emplace_back(point);
    other.inside = inside;
    other.requested.kappa = static_cast<float>(net_keep);
    other.policy.net_keep = net_keep;
    other.policy.perplexity = perplexity;
  }
  const auto net_keeps = [](const std::vector<FrontierPoint>& frontier) {
    std::vector<double> all;
    for (const FrontierPoint& one : frontier) all.push_back(one.net_keep);
    return all;
  };
  EXPECT_THAT(net_keeps(validation_frontier(sweep)), ElementsAre(0.3, 0.5));
  EXPECT_THAT(net_keeps(dial_frontier(sweep)), ElementsAre(0.3, 0.5, 0.7));
  EXPECT_FLOAT_EQ(dial_frontier(sweep).back().budget.kappa, 0.7f);
  EXPECT_EQ(dial_frontier(sweep).back().perplexity, 8.0);
  sweep.points.erase(sweep.points.begin() + 2, sweep.points.begin() + 4);
  EXPECT_THAT(net_keeps(dial_frontier(sweep)), ElementsAre(0.3, 0.5));
}

TEST_F(SweepTest, FrugalPointsAreComparedByThemselves) {
  SweepRequest what = request();
  what.policy = fixed.get();
  what.baselines = {random.get()};
  what.budgets.clear();
  for (const float share : {0.35f, 0.5f, 0.8f, 0.4f}) what.budgets.push_back({share, share, share});
  what.inside = {true, true, true, false};
  const Sweep sweep = run(what);
  const SweepSummary summary = summarise(sweep, 1, 300);
  const Comparison* frugal = summary.find("random-matched", Matching::realised, Scope::frugal);
  ASSERT_NE(frugal, nullptr);
  EXPECT_EQ(frugal->test.n, 2);
  EXPECT_DOUBLE_EQ(frugal->test.policy.mean,
                   (sweep.points[0].policy.perplexity + sweep.points[1].policy.perplexity) / 2);
  EXPECT_THAT(sweep_report(sweep, summary, settings()), HasSubstr("net keep-rates of 0.6 at most"));
  what.budgets = {{0.8f, 0.8f, 0.8f}};
  what.inside = {true};
  EXPECT_EQ(summarise(run(what), 1, 300).find("random-matched", Matching::realised, Scope::frugal),
            nullptr);
}

TEST_F(SweepTest, WhatIgnoresBudgetsIsNotJudgedAsIfItFollowedThem) {
  const auto uniform = make_random_uniform_policy(harsh_space(), 3);
  SweepRequest what = request();
  what.baselines = {uniform.get()};
  const Sweep sweep = run(what);
  const SweepSummary summary = summarise(sweep, 1, 300);
  EXPECT_EQ(verdict(sweep, summary), "");
  EXPECT_THAT(paired_table(sweep, summary, Matching::realised),
              HasSubstr("random-uniform (the same at every budget)"));
  for (const char* name : {"fixed", "fixed@10", "random-matched", "emc", "learned"})
    EXPECT_TRUE(follows_budgets(name)) << name;
  for (const char* name : {"random-uniform", "dense", "k050-s100-q16"})
    EXPECT_FALSE(follows_budgets(name)) << name;
}

TEST(Outcome, NatsPerTokenAreAMeanOverSteps) {
  Outcome outcome;
  outcome.nll = {1, 2.5, 2.5};
  outcome.steps = 12;
  EXPECT_DOUBLE_EQ(outcome.nats_per_token(), 0.5);
}

TEST_F(SweepTest, FilesHoldEveryFigureAndWhereItComesFrom) {
  const Sweep sweep = run(request());
  const SweepSummary summary = summarise(sweep, 1, 300);
  test::TemporaryDirectory directory;
  write_sweep(directory.path(), sweep, summary, settings());
  const std::string csv = read_file(directory.path() / "points.csv");
  EXPECT_EQ(test::count_of(csv, "\n"), 1u + 3 * 5);
  const auto header = csv.substr(0, csv.find('\n'));
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);)
    EXPECT_EQ(test::count_of(line, ","), test::count_of(header, ",")) << line;

  std::istringstream rows(read_file(directory.path() / "points.jsonl"));
  size_t count = 0;
  for (std::string line; std::getline(rows, line); ++count) {
    const Json row = parse_json(line, "points.jsonl");
    for (const char* field :
         {"commit", "model_fingerprint", "weights", "isa", "threads", "seed", "command",
          "perplexity", "requested", "realised", "net_keep", "attended"})
      EXPECT_TRUE(row.contains(field)) << field;
  }
  EXPECT_EQ(count, 15u);

  const Json json = read_json(directory.path() / "summary.json");
  EXPECT_EQ(json["comparisons"].size(), 12u);
  EXPECT_EQ(json["run"]["seed"], 7);
  EXPECT_EQ(json["settings"]["blocks"], 12);
  EXPECT_DOUBLE_EQ(json["dense_perplexity"].get<double>(), sweep.dense.perplexity);
  EXPECT_TRUE(json["frontiers"].contains("fixed at realised"));
  for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
    EXPECT_THAT(entry.path().filename().string(),
                testing::AnyOf("points.csv", "points.jsonl", "summary.json", "report.html"));
}

TEST_F(SweepTest, FailingToWriteNamesTheFile) {
  const Sweep sweep = run(request());
  const SweepSummary summary = summarise(sweep, 1, 300);
  test::TemporaryDirectory directory;
  EXPECT_THAT([&] { write_sweep(directory.path() / "missing", sweep, summary, settings()); },
              test::throws({"missing"}));
  std::filesystem::create_directories(directory.path() / "report.html" / "in the way");
  EXPECT_THAT([&] { write_sweep(directory.path(), sweep, summary, settings()); },
              test::throws({"report.html"}));
}

TEST_F(SweepTest, ADiskThatFillsWithTheLastFileReplacesNone) {
  const Sweep sweep = run(request());
  const SweepSummary summary = summarise(sweep, 1, 300);
  test::TemporaryDirectory directory;
  write_file_atomically(directory.path() / "points.csv", "old");
  const size_t largest = sweep_report(sweep, summary, settings()).size();
  {
    const test::FileSizeLimit limit(largest - 1);  // its end waits in a buffer until it is flushed
    EXPECT_THAT([&] { write_sweep(directory.path(), sweep, summary, settings()); },
                test::throws({"report.html", "cannot write"}));
  }
  EXPECT_EQ(read_file(directory.path() / "points.csv"), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
}

TEST_F(SweepTest, TheReportIsWellFormedSelfContainedAndComplete) {
  const Sweep sweep = run(request());
  const std::string html = sweep_report(sweep, summarise(sweep, 1, 300), settings());
  EXPECT_EQ(test::check_xml(html, {"meta"}), "");
  EXPECT_THAT(html, HasSubstr("over&lt;spender&gt;"));
  EXPECT_THAT(html, HasSubstr("text &lt;1&gt;.txt"));
  EXPECT_THAT(html, HasSubstr("model &amp; co"));
  EXPECT_THAT(html, HasSubstr("class=\"verdict\""));
  for (const char* id : {"frontier", "adherence", "paired", "settings"})
    EXPECT_THAT(html, HasSubstr("id=\"" + std::string(id) + "\""));
  EXPECT_EQ(test::count_of(html, "role=\"img\""), 1u + 3);  // the frontier and three axes
  EXPECT_THAT(html, HasSubstr("(the verdict)"));
  EXPECT_THAT(html, HasSubstr("in the paper"));
  EXPECT_THAT(html, HasSubstr("inside the trained ranges"));
  EXPECT_THAT(html, HasSubstr("the whole grid"));
  EXPECT_THAT(html, HasSubstr("Requests met within 0.05"));
  EXPECT_THAT(html, HasSubstr(model.fingerprint()));
  EXPECT_THAT(html, HasSubstr("random-matched"));
  // Nothing is loaded from elsewhere; the one address is SVG's name.
  EXPECT_EQ(test::count_of(html, "http"), test::count_of(html, "http://www.w3.org/2000/svg"));
  EXPECT_EQ(test::count_of(html, "src="), 0u);
  EXPECT_EQ(test::count_of(html, "<script"), 0u);
}

// The same seed gives the same figures however the work is cut.
TEST_F(SweepTest, DoesNotDependOnBatching) {
  const Sweep one = run(request());
  options.batch = 3;
  const Sweep other = run(request());
  EXPECT_EQ(points_csv(one), points_csv(other));
}

// Decoding alone changes no figure. Everyone but the dense policy pays for refreshing its cache.
TEST_F(SweepTest, ATimedSweepMeasuresEverySequenceAlone) {
  const Sweep plain = run(request());
  const int64_t prefilled_before = model.prefilled;
  options.timed = true;
  const Sweep timed = run(request());
  const int64_t arms = 3 * 5, blocks = 12;
  EXPECT_EQ(model.prefilled - prefilled_before,
            blocks * options.context + arms * blocks * options.horizon);
  for (size_t i = 0; i < plain.points.size(); ++i) {
    EXPECT_EQ(plain.points[i].policy.nll, timed.points[i].policy.nll);
    EXPECT_EQ(plain.points[i].policy.seconds_per_token, 0);
    EXPECT_GT(timed.points[i].policy.seconds_per_token, 0);
    EXPECT_GT(timed.points[i].realised[0].seconds_per_token, 0);
  }
  EXPECT_GT(timed.dense.seconds_per_token, 0);

  const std::string html = sweep_report(timed, summarise(timed, 1, 300), settings());
  EXPECT_EQ(test::check_xml(html, {"meta"}), "");
  EXPECT_THAT(html, HasSubstr("id=\"time\""));
  EXPECT_EQ(test::count_of(html, "role=\"img\""), 2u + 3);
}

}  // namespace
}  // namespace sol
