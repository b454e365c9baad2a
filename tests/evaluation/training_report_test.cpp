#include "evaluation/training_report.h"

#include <fstream>

#include "evaluation/training_plots.h"
#include "support.h"
#include "throws.h"
#include "xml_check.h"

namespace sol {
namespace {

namespace fs = std::filesystem;
using test::throws;
using testing::HasSubstr;
using testing::Not;

CollectionMetrics collection(int64_t i) {
  CollectionMetrics m;
  m.collection = i;
  m.update = 4 * i;
  m.updates = 4000;
  m.position = 8 * i;
  m.steps = 100;
  m.reward = -3;
  m.perplexity = 20;
  m.seconds = 2;
  m.seconds_prefill = 0.5;
  m.learning_rate = 1e-3;
  m.actions[0] = {{0.1, 40}, {1.0, 60}};
  m.actions[1] = {{1.0, 100}};  // an axis that is off
  m.actions[2] = {{5, 50}, {16, 50}};
  return m;
}

class TrainingReportTest : public testing::Test {
 protected:
  void log(int64_t collections, const std::string& end = {}) {
    std::ofstream file(dir_.path() / "train.jsonl");
    for (int64_t i = 1; i <= collections; ++i) file << to_text(to_json(collection(i))) << '\n';
    file << end;
  }
  RunHistory read() const { return read_run_history(dir_.path()); }

  test::TemporaryDirectory dir_;
};

TEST_F(TrainingReportTest, ARunThatIsGoingOnHasAReport) {
  log(3, "{\"collection\": 4, \"upd");  // the fourth line is being written
  const RunHistory history = read();
  EXPECT_EQ(history.collections.size(), 3u);
  EXPECT_TRUE(history.record.is_null());
  const std::string page = training_report({{"a<b", history}});
  EXPECT_THAT(page, HasSubstr("12 of 4000"));
  EXPECT_THAT(page, HasSubstr("a&lt;b"));
  EXPECT_THAT(page, HasSubstr("no record of its settings yet"));
  log(1);
  EXPECT_THAT(training_report({{"one", read()}}), HasSubstr("<circle"));  // a point, not a line
}

TEST_F(TrainingReportTest, ABudgetInTimeHasItsOwnGap) {
  CollectionMetrics m = collection(1);
  m.requested_time = 0.8;
  m.realised_time = 0.95;
  m.time_gap = 0.15;
  std::ofstream(dir_.path() / "train.jsonl") << to_text(to_json(m)) << '\n';
  const RunHistory by_time = read();
  const std::string page = training_report({{"by time", by_time}});
  EXPECT_THAT(page, HasSubstr("<td>time 0.150</td>"));
  EXPECT_THAT(page, HasSubstr("Gap to the budget: share of the dense time"));
  EXPECT_THAT(page, Not(HasSubstr("Gap to the budget: κ")));
  log(1);
  const std::string both = training_report({{"by time", by_time}, {"by axes", read()}});
  EXPECT_THAT(both, HasSubstr("Gap to the budget: share of the dense time"));
  EXPECT_THAT(both, HasSubstr("Gap to the budget: κ"));
}

TEST_F(TrainingReportTest, DamageIsNamed) {
  EXPECT_THAT([&] { read(); }, throws({"train.jsonl is missing"}));
  EXPECT_THAT([&] { read_run_history(dir_.path() / "none"); }, throws({"none", "no such"}));
  log(0);
  EXPECT_THAT([&] { read(); }, throws({"no collection"}));
  log(2, "{\"collection\": 3, \"upd\n");
  EXPECT_THAT([&] { read(); }, throws({"train.jsonl, line 3", "not valid JSON"}));
  log(2, "{\"collection\": 3}\n");
  EXPECT_THAT([&] { read(); }, throws({"train.jsonl, line 3", "\"update\"", "missing"}));
}

TEST_F(TrainingReportTest, NamesTheRunsSettings) {
  log(2);
  std::ofstream(dir_.path() / "run.json") << R"({"config": {"name": "tiny", "rollout": {"context":
      1000, "horizon": 16}}, "blocks": 77, "processes": 3, "run": {"model": "m", "command": "sol train <x>"}})";
  const std::string page = training_report({{"r", read()}});
  for (const char* text :
       {"tiny", "77 blocks", "horizon 16", "sol train &lt;x&gt;", "16000", "Processes</td><td>3<"})
    EXPECT_THAT(page, HasSubstr(text));
  // A record that says nothing is none.
  for (const char* text : {"{}", "[]", "{\"config\": {}}"}) {
    std::ofstream(dir_.path() / "run.json") << text;
    EXPECT_THAT(training_report({{"r", read()}}), HasSubstr("no record of its settings yet"));
  }
  // An earlier version's run, of which only the controller says what it was.
  fs::remove(dir_.path() / "run.json");
  std::ofstream(dir_.path() / "controller.json")
      << R"({"training": {"config": {"name": "older"}, "blocks": 5, "run": {}}})";
  EXPECT_THAT(training_report({{"r", read()}}), HasSubstr("older"));
}

TEST_F(TrainingReportTest, RunsLieOverEachOtherWithALegend) {
  log(40);
  const RunHistory history = read();
  for (const std::string& plot : training_curves({{"first", history}, {"second", history}})) {
    EXPECT_EQ(test::check_xml(plot), "");
    EXPECT_THAT(plot, HasSubstr(">first<"));
    EXPECT_THAT(plot, HasSubstr(">second<"));
  }
  const auto alone = training_curves({{"first", history}});
  ASSERT_EQ(alone.size(), 8u);
  EXPECT_THAT(alone[0], Not(HasSubstr(">first<")));
  EXPECT_THAT(alone[7], HasSubstr("Learning rate"));
}

TEST_F(TrainingReportTest, ActionsAreSharesPerAxisInUse) {
  log(600);
  RunHistory history = read();
  const auto plots = action_plots(history);
  ASSERT_EQ(plots.size(), 2u);
  EXPECT_THAT(plots[0], HasSubstr(">0.1<"));
  EXPECT_THAT(plots[1], HasSubstr("Activation bits"));
  for (const std::string& plot : plots) EXPECT_EQ(test::check_xml(plot), "");
  EXPECT_EQ(test::check_xml(phases_plot(history)), "");
  EXPECT_THAT(phases_plot(history), HasSubstr(">other<"));
  // A log of a version that did not record them.
  for (CollectionMetrics& m : history.collections) {
    m.actions = {};
    m.learning_rate = 0;
  }
  EXPECT_TRUE(action_plots(history).empty());
  EXPECT_EQ(training_curves({{"r", history}}).size(), 7u);
}

}  // namespace
}  // namespace sol
