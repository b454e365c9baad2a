// What the report's sections make of finished jobs.
#include "reproduction/sections.h"

#include <gmock/gmock.h>

#include <cmath>
#include <memory>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/xml_check.h"
#include "policy/network.h"
#include "reproduction/experiment_json.h"
#include "reproduction/jobs.h"
#include "reproduction/training_log.h"
#include "sol/controller.h"
#include "support.h"
#include "throws.h"

namespace sol {
namespace {

using test::count_of;
using testing::HasSubstr;
using testing::Not;

StudyFamily family(const std::string& name, const std::vector<std::string>& controllers) {
  StudyFamily made;
  made.name = name;
  made.title = name;
  for (const std::string& controller : controllers) {
    StudyController one;
    one.name = controller;
    made.controllers.push_back(one);
  }
  return made;
}

Outcome outcome(const Budget& asked, const Budget& realised, double net_keep, double perplexity) {
  Outcome one;
  one.asked = asked;
  one.realised = realised;
  one.net_keep = net_keep;
  one.perplexity = perplexity;
  one.nll = {16 * std::log(perplexity)};  // of one block
  return one;
}

// One budget, at which fixed is the only baseline.
Sweep sweep_of(const ActionSpace& space) {
  Sweep sweep{.policy = "learned",
              .baselines = {"fixed"},
              .space = space,
              .protocol = {},
              .blocks = {0},
              .points = {},
              .dense = outcome({}, {}, 1, 50.5),
              .seconds = 0,
              .decoded_tokens = 16};
  SweepPoint point;
  point.requested = {1.0f, 0.5f, 1.0f};
  point.policy = outcome(point.requested, {1.0f, 0.55f, 1.0f}, 0.55, 60.5);
  point.realised = {outcome({1.0f, 0.55f, 1.0f}, {1.0f, 0.6f, 1.0f}, 0.6, 61.5)};
  point.requested_budget = {outcome(point.requested, {1.0f, 0.5f, 1.0f}, 0.5, 62.5)};
  sweep.points = {point};
  return sweep;
}

// Beyond the trained ranges, where nothing counts.
SweepPoint outside(const SweepPoint& point) {
  SweepPoint other = point;
  other.inside = false;
  other.policy.perplexity = 1000;
  for (Outcome& one : other.realised) one.perplexity = 1;
  return other;
}

SearchPoint search_point() {
  SearchPoint point;
  point.policy = {0.5, 60};
  point.fixed = {0.5, 61};
  point.random = {{"random-matched", {{0.5, 62.5}, {0.25, 63.5}}}};
  return point;
}

PollutionSetting polluted(Axis axis, const Action& action) {
  PollutionSetting setting;
  setting.axis = axis;
  setting.action = action;
  setting.median = {1};
  setting.low = {0};
  setting.high = {2};
  return setting;
}

// Its choices do not matter.
void save_controller(const ActionSpace& space, const std::filesystem::path& dir) {
  const PolicyNetworkShape shape{.hidden_size = 12,
                                 .actions = space.size(),
                                 .d_model = 16,
                                 .heads = 2,
                                 .action_dim = 4,
                                 .max_length = 16};
  Parameters parameters;
  for (const auto& [name, dimensions] : policy_parameter_shapes(shape)) {
    size_t count = 1;
    for (const int64_t n : dimensions) count *= static_cast<size_t>(n);
    parameters[name] = {dimensions, std::vector<float>(count)};
  }
  Controller(space, {}, std::make_shared<const PolicyNetwork>(shape, std::move(parameters)))
      .save(dir);
}

class Sections : public testing::Test {
 protected:
  Sections() {
    study.families = {family("harsh", {"2l", "3l", "prune-30"})};
    study.experiments.spaces.controllers = {"2l", "3l"};
    study.experiments.search.points = 1;
    study.experiments.single.controllers = {"prune-30"};
    study.experiments.single.budgets = 1;
    study.experiments.horizons.controllers = {};
  }

  void store(const std::string& job, const Json& result) { results.store(job, result, 1, {}); }
  void store_sweep(const std::string& controller, const ActionSpace& space) {
    store(sweep_job("harsh", controller), sweep_to_json(sweep_of(space)));
  }
  void store_search(const std::string& job) { store(job, search_to_json({search_point()})); }

  Section made(Section (*section)(ReportInput&)) {
    ReportInput input(study, results);
    return section(input);
  }
  Section scaling() {
    ReportInput input(study, results);
    return scaling_section(input, {});
  }
  static std::string csv(const Section& section, const std::string& name) {
    for (const FigureTable& table : section.tables)
      if (table.name() == name) return table.csv();
    return {};
  }

  const ActionSpace pruning{{1.0f}, {0.2f, 1.0f}, {16}};
  const ActionSpace two_levels{{0.1f, 1.0f}, {0.4f, 1.0f}, {5, 16}};
  test::TemporaryDirectory dir;
  Study study;
  StudyResults results = StudyResults::open(
      dir.path(),
      {{"name", "s"},
       {"context", 1024},
       {"spaces", {{"controllers", Json::array({"2l"})}}},
       {"families", Json::array({{{"name", "harsh"},
                                  {"title", "Harsh"},
                                  {"controllers", Json::array({{{"name", "2l"}}})}}})}});
};

TEST_F(Sections, ControllersStandWithTheLevelsThatTheyChooseOn) {
  store_sweep("prune-30", pruning);
  const Section statistics = made(statistics_section);
  const std::string row = "\nharsh,prune-30,\"ρ {0.2, 1}\",";
  EXPECT_THAT(csv(statistics, "paired-realised"), HasSubstr(row + "fixed,realised,1,1,60.5,"));
  EXPECT_THAT(csv(statistics, "paired-frugal"), HasSubstr(row + "fixed,realised,1,1,60.5,"));
  EXPECT_THAT(csv(statistics, "paired-requested"), HasSubstr(row + "fixed,requested,1,1,60.5,"));
  EXPECT_THAT(csv(made(adherence_section), "adherence"), HasSubstr(row + "1,1.0,"));
}

TEST_F(Sections, ViolinsOfSingleAxesAreLabelledWithTheirLevels) {
  store_search(single_job("harsh", "prune-30"));
  EXPECT_THAT(made(single_section).html, HasSubstr(">prune-30</text>"));  // it is not known here
  save_controller(pruning, results.controller_dir("harsh", "prune-30"));
  const std::string html = made(single_section).html;
  EXPECT_THAT(html, HasSubstr(">ρ {0.2, 1}</text>"));
  EXPECT_THAT(html, Not(HasSubstr(">prune-30</text>")));
}

TEST_F(Sections, EveryPointOfASweepIsInTheFiles) {
  store_sweep("prune-30", pruning);
  const Section data = made(data_section);
  EXPECT_EQ(csv(data, "sweep-points"),
            "family,controller,point,inside,policy,baseline_at,asked_kappa,asked_rho,asked_eta,"
            "realised_kappa,realised_rho,realised_eta,net_keep,perplexity\n"
            "harsh,prune-30,,,dense,,1.0,1.0,1.0,1.0,1.0,1.0,1.0,50.5\n"
            "harsh,prune-30,1,1,learned,,1.0,0.5,1.0,1.0,0.55,1.0,0.55,60.5\n"
            "harsh,prune-30,1,1,fixed,realised,1.0,0.55,1.0,1.0,0.6,1.0,0.6,61.5\n"
            "harsh,prune-30,1,1,fixed,requested,1.0,0.5,1.0,1.0,0.5,1.0,0.5,62.5\n");
  EXPECT_EQ(csv(data, "schedules"), "");  // no empty table
  EXPECT_EQ(data.html + data.markdown, "");
}

TEST_F(Sections, EveryRandomScheduleIsInTheFiles) {
  study.experiments.search.points = 2;
  store_search(landscape_job("harsh", "2l"));
  store_search(search_job("harsh", "2l", 1));
  store_search(single_job("harsh", "prune-30"));
  EXPECT_EQ(csv(made(data_section), "schedules"),
            "section,family,controller,point,random,net_keep,perplexity\n"
            "landscape,harsh,2l,1,random-matched,0.5,62.5\n"
            "landscape,harsh,2l,1,random-matched,0.25,63.5\n"
            "search,harsh,2l,2,random-matched,0.5,62.5\n"
            "search,harsh,2l,2,random-matched,0.25,63.5\n"
            "single,harsh,prune-30,1,random-matched,0.5,62.5\n"
            "single,harsh,prune-30,1,random-matched,0.25,63.5\n");
}

TEST_F(Sections, PointsOfTheLandscapeAreNumberedAsTheirSchedules) {
  store_search(landscape_job("harsh", "2l"));
  EXPECT_THAT(csv(made(landscape_section), "landscape"),
              HasSubstr("\nharsh,2l,1,random-matched,0.5,60.0,"));
}

TEST_F(Sections, StaticMethodsAreLabelledAndThoseBeyondTheSpaceAreInTheTableAlone) {
  store_sweep("2l", two_levels);
  store(
      "static",
      Json{{"points",
            {{{"label", "dense"}, {"action", "k100-s100-q16"}, {"perplexity", 50.0}},
             {{"label", "Quest 50 %"}, {"action", "k050-s100-q16"}, {"perplexity", 51.0}},
             {{"label", "TEAL 40 %"}, {"action", "k100-s040-q16"}, {"perplexity", 55.0}},
             {{"label", "TEAL 30 %"}, {"action", "k100-s030-q16"}, {"perplexity", 80.0}},
             {{"label", "ZeroQuant 4 bits"}, {"action", "k100-s100-q4"}, {"perplexity", 70.0}}}}});
  const Section section = scaling();
  for (const char* text : {">dense</text>", ">Quest</text>", ">50 %</text>", ">40 %</text>"})
    EXPECT_THAT(section.html, HasSubstr(text));
  for (const char* text :
       {"<title>TEAL 30 %", "<title>ZeroQuant", ">30 %</text>", ">4 bits</text>"})
    EXPECT_THAT(section.html, Not(HasSubstr(text)));
  EXPECT_THAT(csv(section, "static"), HasSubstr("TEAL 30 %,"));
  EXPECT_THAT(csv(section, "static"), HasSubstr("ZeroQuant 4 bits,"));
}

// Two marks at one place: one label to their right, one to their left.
TEST_F(Sections, LabelsOfStaticMethodsDoNotCoverEachOther) {
  store_sweep("2l", two_levels);
  store("static",
        Json{{"points",
              {{{"label", "dense"}, {"action", "k100-s100-q16"}, {"perplexity", 50.0}},
               {{"label", "Quest 50 %"}, {"action", "k050-s100-q16"}, {"perplexity", 55.0}},
               {{"label", "TEAL 50 %"}, {"action", "k100-s050-q16"}, {"perplexity", 55.0}}}}});
  const std::string html = scaling().html;
  const std::regex label("<text x=\"([0-9.]+)\" y=\"([0-9.]+)\" font-size=\"11\"[^>]*>50 %</text>");
  std::vector<double> x, y;
  for (std::sregex_iterator at(html.begin(), html.end(), label), end; at != end; ++at) {
    x.push_back(std::stod(at->str(1)));
    y.push_back(std::stod(at->str(2)));
  }
  ASSERT_EQ(x.size(), 2u);
  EXPECT_EQ(y[0], y[1]);
  EXPECT_GT(x[0] - x[1], 40);
}

TEST_F(Sections, PollutionIsDrawnAtTheLowestLevelsAndAtThePapersLowest) {
  Pollution pollution;
  pollution.windows = {0};
  pollution.settings = {
      polluted(Axis::kappa, {.kappa = 0.02f}), polluted(Axis::kappa, {.kappa = 0.05f}),
      polluted(Axis::kappa, {.kappa = 0.1f}),  polluted(Axis::rho, {.rho = 0.3f}),
      polluted(Axis::rho, {.rho = 0.4f}),      polluted(Axis::eta, {.bits = 5}),
      polluted(Axis::eta, {.bits = 6})};
  store("pollution", pollution_to_json(pollution));
  const std::string html = made(pollution_section).html;
  for (const char* action :
       {"k002-s100-q16", "k010-s100-q16", "k100-s030-q16", "k100-s040-q16", "k100-s100-q5"})
    EXPECT_EQ(count_of(html, ">" + std::string(action) + "</text>"), 1u) << action;
  for (const char* action : {"k005-s100-q16", "k100-s100-q6"})
    EXPECT_EQ(count_of(html, ">" + std::string(action) + "</text>"), 0u) << action;
}

TEST_F(Sections, PollutionHasTheTailsPeakAndItsMean) {
  Pollution pollution;
  pollution.windows = {0};
  PollutionSetting setting = polluted(Axis::rho, {.rho = 0.4f});
  setting.direct = 20;
  setting.tail = 300;
  setting.peak_p90 = 4000;
  pollution.settings = {setting};
  store("pollution", pollution_to_json(pollution));
  const std::string html = made(pollution_section).html;
  EXPECT_THAT(html, HasSubstr(">mean of the dense tail, change in %</text>"));
  EXPECT_THAT(html, HasSubstr(">300</text>"));  // on the axes
  EXPECT_THAT(html, HasSubstr(">4000</text>"));
}

TEST_F(Sections, AdherenceIsDrawnForEverySpace) {
  store_sweep("2l", two_levels);
  store_sweep("3l", ActionSpace({0.1f, 0.5f, 1.0f}, {0.4f, 0.6f, 1.0f}, {5, 8, 16}));
  store_sweep("prune-30", pruning);
  const std::string html = made(adherence_section).html;
  EXPECT_THAT(html, HasSubstr("<h4>2l: κ {0.1, 1}, "));
  EXPECT_THAT(html, HasSubstr("<h4>3l: κ {0.1, 0.5, 1}, "));
  EXPECT_EQ(count_of(html, "<title>Keys attended to, κ</title>"), 2u);
  EXPECT_EQ(count_of(html, "<title>MLP channels used, ρ</title>"), 2u);
}

TEST_F(Sections, TheSummarySaysHowItsSchedulesDifferFromThePapers) {
  store_search(search_job("harsh", "2l", 0));
  store_search(single_job("harsh", "prune-30"));
  const std::string shown = made(summary_section).markdown;
  EXPECT_THAT(shown, HasSubstr("no schedule of 500 random ones is better (the paper's are drawn "
                               "uniformly) | 1 of 1 | 8 of 12 |"));
  EXPECT_THAT(shown, HasSubstr("no schedule of 30 is better (of whole steps, so not quite of the "
                               "policy's average; the paper's are drawn uniformly) | 1 of 1 | "
                               "7 of 9 |"));
}

TEST_F(Sections, ShortFrontiersAreSpokenOfWhereTheyAreCounted) {
  for (const auto section : {landscape_section, search_section})
    EXPECT_THAT(made(section).markdown,
                HasSubstr(" A frontier with fewer points than were asked for gives fewer."));
}

TEST_F(Sections, ItIsSaidByHowMuchHandMadePoliciesSpendLess) {
  Sweep sweep = sweep_of(two_levels);
  sweep.baselines = {"fixed", "emc", "dac"};
  std::vector<Outcome>& realised = sweep.points[0].realised;
  realised.push_back(outcome({}, {}, 0.5, 63));    // 0.05 less than the policy
  realised.push_back(outcome({}, {}, 0.475, 59));  // 0.075 less
  sweep.points.push_back(outside(sweep.points[0]));
  store(sweep_job("harsh", "2l"), sweep_to_json(sweep));
  const Section section = made(heuristics_section);
  EXPECT_THAT(section.markdown,
              HasSubstr("**The comparison is not at equal spending: the policy's mean net "
                        "keep-rate lies up to 0.075 above the baseline's (harsh, 2l, dac)."));
  EXPECT_THAT(csv(section, "heuristics"),
              HasSubstr("\nharsh,2l,emc,60.5,63.0,61.5,0.5,0.55,1.0,0.0\n"
                        "harsh,2l,dac,60.5,59.0,61.5,0.475,0.55,0.0,1.0\n"));
}

TEST_F(Sections, HandMadePoliciesAreComparedAtWhatTheySpend) {
  Sweep sweep = sweep_of(two_levels);
  sweep.baselines = {"fixed", "emc", "elsewhere"};
  sweep.points[0].realised.push_back(outcome({}, {}, 0.5, 63));
  sweep.points[0].realised.push_back(outcome({}, {}, 0.55, 60));
  sweep.points.push_back(outside(sweep.points[0]));
  store(sweep_job("harsh", "2l"), sweep_to_json(sweep));
  const Section before = made(heuristics_section);
  EXPECT_THAT(before.markdown, HasSubstr("heuristics/harsh/2l"));  // not run yet
  EXPECT_EQ(csv(before, "heuristics-fixed"), "");
  store(heuristics_job("harsh", "2l"), {{"emc", {84.0, 1.0}}});
  EXPECT_THAT(csv(made(heuristics_section), "heuristics-fixed"),
              HasSubstr("\nharsh,2l,emc,63.0,84.0,-0.25,1.0,-0.016"));  // 60.5 / 61.5 - 1
  store(heuristics_job("harsh", "2l"), {{"emc", {84.0}}});
  EXPECT_THAT([&] { made(heuristics_section); },
              test::throws({"heuristics/harsh/2l", "emc has 1 points, its sweep 2"}));
}

TEST_F(Sections, EveryDrawOfFixedIsComparedAndNoneIsAHandMadePolicy) {
  auto& baselines = study.experiments.spaces.baselines;
  baselines = {"fixed", "fixed@1000", "emc", "elsewhere"};
  Sweep sweep = sweep_of(two_levels);
  sweep.baselines = baselines;
  SweepPoint& point = sweep.points[0];
  point.realised.push_back(outcome({}, {}, 0.6, 62));
  point.realised.push_back(outcome({}, {}, 0.5, 63));
  point.realised.push_back(outcome({}, {}, 0.55, 60));
  point.requested_budget.push_back(outcome({}, {}, 0.5, 64));
  store(sweep_job("harsh", "2l"), sweep_to_json(sweep));
  const Section statistics = made(statistics_section);
  for (const char* table : {"paired-realised", "paired-frugal"})
    for (const char* row : {",fixed,realised,1,1,60.5,", ",fixed@1000,realised,1,1,60.5,"})
      EXPECT_THAT(csv(statistics, table), HasSubstr(row)) << table;
  for (const char* row : {",fixed,requested,1,1,60.5,", ",fixed@1000,requested,1,1,60.5,"})
    EXPECT_THAT(csv(statistics, "paired-requested"), HasSubstr(row));
  EXPECT_THAT(csv(statistics, "paired-realised"), Not(HasSubstr(",emc,")));
  const Section heuristics = made(heuristics_section);
  EXPECT_THAT(csv(heuristics, "heuristics"), HasSubstr("\nharsh,2l,emc,60.5,63.0,61.5,"));
  EXPECT_THAT(csv(heuristics, "heuristics"), Not(HasSubstr("fixed@1000")));
  EXPECT_THAT(heuristics.html, HasSubstr("emc at realised averages"));
  EXPECT_THAT(heuristics.html, Not(HasSubstr("fixed@1000")));
  baselines = {"fixed", "fixed@1000", "elsewhere"};
  EXPECT_THAT(made(heuristics_section).markdown, HasSubstr("compares with fixed budgets only"));
}

// Of another model, whose list of controllers does not end with the finest.
TEST_F(Sections, TheLargestSpaceStandsBesideThatOfOtherModels) {
  test::TemporaryDirectory beside;
  StudyResults other = StudyResults::open(
      beside.path(), parse_json(R"({"name": "s", "model": "other", "context": 512,
                     "test": {"name": "test", "label": "seen text", "files": [{"name": "b.txt"}]},
                     "spaces": {"controllers": ["3l", "2l", "2l-again"]},
                     "families": [
                       {"name": "harsh", "title": "Harsh",
                        "controllers": [{"name": "3l"}, {"name": "2l"}]},
                       {"name": "mild", "title": "Mild",
                        "controllers": [{"name": "2l"}, {"name": "2l-again"}]}]})",
                                "other"));
  const auto swept = [&](const char* levels, const char* controller, const ActionSpace& space) {
    other.store(sweep_job(levels, controller), sweep_to_json(sweep_of(space)), 1, {});
  };
  swept("harsh", "3l", ActionSpace({0.1f, 0.5f, 1.0f}, {0.4f, 0.6f, 1.0f}, {5, 8, 16}));
  swept("harsh", "2l", two_levels);
  swept("mild", "2l", two_levels);
  swept("mild", "2l-again", two_levels);
  store_sweep("2l", two_levels);
  ReportInput input(study, results);
  const std::string rows = csv(scaling_section(input, {beside.path()}), "scaling");
  EXPECT_THAT(rows, HasSubstr(",harsh,2l,50.5,60.5,61.5,"));
  EXPECT_THAT(rows, HasSubstr("\nother,seen text (b.txt),512,harsh,3l,50.5,60.5,61.5,"));
  EXPECT_THAT(rows, HasSubstr("\nother,seen text (b.txt),512,mild,2l-again,50.5,60.5,61.5,"));
  EXPECT_EQ(count_of(rows, "\nother,"), 2u);
}

TEST_F(Sections, TrainingHasItsEntropyAndGapsAtTheEnd) {
  TrainingSummary summary;
  summary.updates = 3;
  TrainingPoint last;
  last.perplexity = 12.25;
  last.entropy = 1.25;
  last.gap = {0.125, 0.5, 0.25};
  summary.curve = {TrainingPoint(), last};
  store(train_job("harsh", "prune-30"), training_summary_to_json(summary));
  const std::string table = csv(made(training_section), "training");
  EXPECT_THAT(table, HasSubstr(",perplexity,entropy,gap_kappa,gap_rho,gap_eta,largest_gap\n"));
  EXPECT_THAT(table, HasSubstr(",12.25,1.25,0.125,0.5,0.25,0.5\n"));
}

// Whole steps put random-matched off by less than the table shows.
TEST_F(Sections, EqualSpendingIsNotCalledUnequal) {
  Sweep sweep = sweep_of(two_levels);
  sweep.baselines = {"fixed", "random-matched"};
  sweep.points[0].realised.push_back(outcome({}, {}, 0.5498, 63));
  store(sweep_job("harsh", "2l"), sweep_to_json(sweep));
  EXPECT_THAT(made(heuristics_section).markdown, Not(HasSubstr("equal spending")));
}

}  // namespace
}  // namespace sol
