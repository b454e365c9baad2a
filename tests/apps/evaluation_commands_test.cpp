// sol eval, sweep and probe on the embedded model, with short contexts.
#include <fstream>
#include <thread>

#include "base/file_io.h"
#include "base/json.h"
#include "made_controller.h"

namespace sol::test {
namespace {

namespace fs = std::filesystem;

class EvaluationCommands : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream file(text);
    for (int i = 0; i < 60; ++i)
      file << "The " << (i % 7 == 0 ? "old" : "young") << " man number " << i
           << " walked down to the river and looked at the water for " << i * 37 % 19
           << " minutes, as he had done every day.\n";
    file << "<|endoftext|>\n";
  }

  RunResult run(const std::string& command, const std::vector<std::string>& more,
                const RunOptions& options = {}) const {
    std::vector<std::string> arguments{command,     "--data", text.string(), "--context", "48",
                                       "--threads", "1",      "--precision", "f32"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_sol(arguments, options);
  }

  std::string controller() const {
    const fs::path path = dir.path() / "controller";
    made_controller(default_fingerprint()).save(path);
    return path.string();
  }

  TemporaryDirectory dir;
  fs::path text = dir.path() / "text.txt";
  fs::path out = dir.path() / "out";
};

const std::vector<std::string> harsh{"--kappa-levels", "0.02,1", "--rho-levels", "0.3,1",
                                     "--bits-levels",  "3,16",   "--horizon",    "8"};

std::vector<std::string> operator+(std::vector<std::string> first,
                                   const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST_F(EvaluationCommands, ResultsNameOptionsOutsideThePaper) {
  const auto options_of = [&](const std::vector<std::string>& flags) {
    const RunResult result =
        run("eval", std::vector<std::string>{"--json", "--blocks", "2"} + flags);
    EXPECT_EQ(result.code, 0) << testing::PrintToString(result);
    return parse_json(result.out, "output")["run"]["outside_paper"];
  };
  EXPECT_EQ(options_of({}), Json::array());
  EXPECT_EQ(options_of({"--prune-down"}), Json({"prune-down"}));
  EXPECT_EQ(options_of({"--weights", "int8", "--int8-activations"}), Json({"int8-activations"}));
  for (const char* weights : {"auto", "int4"})
    expect_error(run("eval", {"--weights", weights, "--int8-activations"}), {"--weights int8"});
}

TEST_F(EvaluationCommands, EvalPrintsOnePoint) {
  const RunResult dense = run("eval", {"--json", "--blocks", "3"});
  ASSERT_EQ(dense.code, 0) << testing::PrintToString(dense);
  const Json json = parse_json(dense.out, "output");
  EXPECT_EQ(json["policy"], "dense");
  EXPECT_EQ(json["blocks"], 3);
  EXPECT_EQ(json["steps"], 3 * 16);
  EXPECT_EQ(json["net_keep"], 1.0);
  EXPECT_GT(json["perplexity"].get<double>(), 1.0);
  EXPECT_LT(json["perplexity"].get<double>(), 1000.0);
  EXPECT_EQ(json["run"]["model_fingerprint"], default_fingerprint());
  EXPECT_EQ(json["run"]["weights"], json["run"]["precision"]);
  EXPECT_EQ(json["force_sinks"], true);
  const RunResult unforced = run("eval", {"--json", "--blocks", "1", "--no-sinks"});
  ASSERT_EQ(unforced.code, 0) << testing::PrintToString(unforced);
  EXPECT_EQ(parse_json(unforced.out, "output")["force_sinks"], false);

  const RunResult fixed =
      run("eval", harsh + std::vector<std::string>{"-p", "fixed", "--keep", "0.5", "--prune", "0.6",
                                                   "--bits", "8", "--blocks", "3"});
  ASSERT_EQ(fixed.code, 0) << testing::PrintToString(fixed);
  for (const char* word :
       {"policy      fixed", "perplexity", "requested   keep 0.500", "realised", "attended"})
    EXPECT_NE(fixed.out.find(word), std::string::npos) << word << " in " << fixed.out;
}

TEST_F(EvaluationCommands, ARecordedScheduleReplaysToTheSameLogProbabilities) {
  const std::string file = (dir.path() / "schedule.json").string();
  const RunResult first = run("eval", {"-c", controller(), "--keep", "0.4", "--json", "--blocks",
                                       "3", "--schedule-out", file});
  ASSERT_EQ(first.code, 0) << testing::PrintToString(first);
  const auto replay = [&] {
    return run_sol({"eval", "--data", text.string(), "--threads", "1", "--precision", "f32",
                    "--replay", file, "--json"});
  };
  const RunResult second = replay();
  ASSERT_EQ(second.code, 0) << testing::PrintToString(second);
  const Json before = parse_json(first.out, "first"), after = parse_json(second.out, "second");
  EXPECT_EQ(before["policy"], "learned");
  EXPECT_EQ(after["policy"], "replay of learned");
  EXPECT_EQ(after["largest_log_prob_difference"], 0.0);
  EXPECT_EQ(before["perplexity"], after["perplexity"]);
  EXPECT_EQ(before["realised"], after["realised"]);

  std::ofstream(text) << std::string(8000, 'b') << "\n";  // another text under the same name
  expect_error(replay(), {"block 0", "recorded"});
}

TEST_F(EvaluationCommands, SweepWritesAReportAndStoresAFrontier) {
  const std::string path = controller();
  const RunResult result =
      run("sweep", {"-c", path, "--keep", "0.3,0.8", "--prune", "0.4:0.8:0.2", "--bits", "8",
                    "--blocks", "4", "--bootstrap", "200", "--baselines",
                    "fixed,random-matched,elsewhere", "--store-frontier", "-o", out.string()});
  ASSERT_EQ(result.code, 0) << testing::PrintToString(result);
  for (const char* word : {"fixed", "random-matched", "elsewhere", "realised", "requested",
                           "inside", "all", "requests met", "report.html"})
    EXPECT_NE(result.out.find(word), std::string::npos) << word << " in " << result.out;
  for (const char* name : {"points.csv", "points.jsonl", "summary.json", "report.html"})
    EXPECT_TRUE(fs::exists(out / name)) << name;
  const Json summary = read_json(out / "summary.json");
  EXPECT_EQ(summary["settings"]["points"], 6);
  EXPECT_EQ(summary["settings"]["horizon"], 8);  // the controller's
  EXPECT_EQ(summary["comparisons"].size(), 10u);
  EXPECT_NE(summary["run"]["command"].get<std::string>().find("sweep"), std::string::npos);

  const auto frontier = Controller::load(path).settings().frontier;
  ASSERT_FALSE(frontier.empty());
  for (const FrontierPoint& point : frontier) EXPECT_GE(point.budget.rho, 0.5f);  // inside only
}

TEST_F(EvaluationCommands, SweepFiguresDependOnTheSeedOnly) {
  const auto points = [&](const char* batch, const char* seed) {
    const RunResult result =
        run("sweep", harsh + std::vector<std::string>{"--keep", "0.4", "--prune", "0.5,0.7",
                                                      "--bits", "8", "--blocks", "3", "--batch",
                                                      batch, "--seed", seed, "--deterministic",
                                                      "--bootstrap", "100", "-o", out.string()});
    EXPECT_EQ(result.code, 0) << testing::PrintToString(result);
    return read_file(out / "points.csv");
  };
  const std::string first = points("256", "1");
  EXPECT_EQ(points("2", "1"), first);
  EXPECT_NE(points("256", "2"), first);
}

TEST_F(EvaluationCommands, AnInterruptedSweepLeavesNothing) {
  const RunResult result =
      run("sweep",
          harsh + std::vector<std::string>{"--keep", "0.1:0.9:0.01", "--prune", "0.4:0.9:0.01",
                                           "--bits", "8", "-o", out.string()},
          {.interrupt_when = "sweeping"});
  EXPECT_EQ(result.code, 130) << testing::PrintToString(result);
  EXPECT_TRUE(fs::is_empty(out));
}

TEST_F(EvaluationCommands, ProbeShowsLevelsAndAnOracle) {
  const std::vector<std::string> few{"--kappa", "0.5,0.1",  "--rho", "0.4",         "--bits",
                                     "4",       "--blocks", "3",     "--schedules", "3"};
  const RunResult text_result = run("probe", harsh + few);
  ASSERT_EQ(text_result.code, 0) << testing::PrintToString(text_result);
  for (const char* word : {"dense perplexity", "kappa", "rho", "bits", "oracle per block"})
    EXPECT_NE(text_result.out.find(word), std::string::npos) << word << " in " << text_result.out;
  const RunResult result = run("probe", harsh + few + std::vector<std::string>{"--json"});
  ASSERT_EQ(result.code, 0) << testing::PrintToString(result);
  const Json json = parse_json(result.out, "output");
  ASSERT_EQ(json["levels"].size(), 4u);
  EXPECT_EQ(json["levels"][1]["action"], "k010-s100-q16");
  ASSERT_EQ(json["oracle"].size(), 3u);
  for (const Json& budget : json["oracle"])
    EXPECT_LE(budget["oracle_perplexity"].get<double>(),
              budget["best_single_schedule_perplexity"].get<double>());
}

TEST_F(EvaluationCommands, ABudgetThatWouldBeIgnoredIsAnError) {
  expect_error(run("eval", {"--keep", "0.5"}), {"dense", "--keep"});
  expect_error(run("eval", {"-p", "dense", "--bits", "8"}), {"dense", "--bits"});
  expect_error(run("eval", {"-p", "k050-s100-q16", "--prune", "0.5"}), {"k050-s100-q16"});
  expect_error(run("eval", {"-p", "random-uniform", "--rho-levels", "0.5,1", "--prune", "0.7"}),
               {"random-uniform", "the same at every budget"});
  expect_error(run("eval", {"-p", "fixed", "--rho-levels", "0.5,1", "--bits", "8"}),
               {"--bits", "nothing to choose", "16 bits"});
  expect_error(run("sweep", {"-p", "dense", "--rho-levels", "0.5,1", "-o", out.string()}),
               {"dense", "every one"});
  expect_error(run("eval", {"-c", controller(), "-p", "dense", "--budget", "0.6"}), {"dense"});
  for (const std::vector<std::string>& flag : {std::vector<std::string>{"--keep", "0.5"},
                                               {"--blocks", "2"},
                                               {"--horizon", "8"},
                                               {"--context", "48"},
                                               {"--page-size", "8"},
                                               {"--sinks", "2"},
                                               {"--window", "3"},
                                               {"--no-sinks"},
                                               {"--controller", "c"},
                                               {"--costs", "costs.json"}}) {
    const std::string file = (dir.path() / "schedule.json").string();
    expect_error(run_sol(std::vector<std::string>{"eval", "--data", text.string()} + flag +
                         std::vector<std::string>{"--replay", file}),
                 {"--replay", flag[0]});
  }
}

TEST_F(EvaluationCommands, AnOptionThatWouldBeIgnoredIsAnError) {
  expect_error(run("probe", {"--schedules", "3"}), {"no levels to choose from", "--kappa-levels"});
  const std::string one = " has only one";
  expect_error(run("eval", {"--rollout", "1"}), {"--rollout", "dense" + one});
  expect_error(run("eval", {"-p", "fixed", "--rho-levels", "0.5,1", "--rollout", "1"}),
               {"--rollout", "fixed" + one});
  expect_error(run("eval", {"-c", controller(), "--rollout", "1"}), {"--rollout", "learned" + one});
  const RunResult drawn = run(
      "eval", {"-p", "random-uniform", "--rho-levels", "0.5,1", "--rollout", "1", "--blocks", "1"});
  EXPECT_EQ(drawn.code, 0) << testing::PrintToString(drawn);
  expect_error(
      run("sweep", {"--rho-levels", "0.5,1", "--timed", "--batch", "8", "-o", out.string()}),
      {"--timed", "--batch"});
}

TEST_F(EvaluationCommands, ErrorsSayWhatIsWrong) {
  expect_error(run("eval", {"--blocks", "100000"}), {"--blocks 100000", "only"});
  expect_error(run_sol({"eval", "--data", text.string(), "--context", "4000"}), {"4016", "2048"});
  expect_error(run("eval", {"-p", "fixed"}), {"--kappa-levels"});
  expect_error(run("eval", {"-p", "learned"}), {"-c"});
  expect_error(run("eval", {"-p", "psychic"}), {"psychic", "random-matched"});
  expect_error(run("eval", {"--keep", "1.5"}), {"--keep"});
  expect_error(run("eval", {"-p", "fixed", "--rho-levels", "0.5,x"}), {"--rho-levels", "'x'"});
  expect_error(run_sol({"eval", "--data", text.string(), "--replay", text.string()}), {"text.txt"});
  expect_error(run_sol({"eval", "--data", text.string(), "--context", "2", "--horizon", "4"}),
               {"context of 2", "every step is dense"});
  expect_error(run("probe", {"--bits", "1"}), {"--bits", "1"});
  expect_error(run("probe", {"--costs", "costs.json"}), {"--costs"});
  expect_error(run("sweep", {"-o", out.string(), "--store-frontier", "--rho-levels", "0.5,1"}),
               {"--store-frontier", "-c"});
  const std::string none = (dir.path() / "none").string();
  expect_error(run("sweep", {"-o", out.string(), "--store-frontier", "-c", none}), {"none"});
  EXPECT_FALSE(fs::exists(none));
  const fs::path other = dir.path() / "other";
  made_controller("00000000000000000000000000000000").save(other);
  expect_error(run("sweep", {"-o", out.string(), "-c", other.string()}),
               {"00000000000000000000000000000000", default_fingerprint()});
}

// oneDNN leaves out what threads that it was promised would have done.
TEST_F(EvaluationCommands, FewerThreadsThanProcessorsChangeNoResult) {
  const auto perplexity = [&](const std::string& threads, const std::string& setting) {
    const RunResult result =
        run_sol({"eval", "--data", text.string(), "--context", "48", "--threads", threads,
                 "--precision", "f32", "--blocks", "2", "--json"},
                {.environment = {setting}});
    EXPECT_EQ(result.code, 0) << setting << testing::PrintToString(result);
    return parse_json(result.out, "output")["perplexity"].get<double>();
  };
  const double expected = perplexity("1", "OMP_DYNAMIC=false");
  for (const char* setting : {"OMP_THREAD_LIMIT=1", "OMP_MAX_ACTIVE_LEVELS=0"})
    EXPECT_NEAR(perplexity("0", setting), expected, 1e-3 * expected) << setting;
  // With these settings OpenMP starts no more threads than there are processors.
  const std::string more = std::to_string(std::thread::hardware_concurrency() + 1);
  EXPECT_NEAR(perplexity(more, "OMP_DYNAMIC=true"), expected, 1e-3 * expected);
  const RunResult refused = run_sol({"eval", "--data", text.string(), "--threads", "3"},
                                    {.environment = {"OMP_THREAD_LIMIT=2"}});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find(
                "3 threads are asked for, but OMP_THREAD_LIMIT and OMP_MAX_ACTIVE_LEVELS allow 2"),
            std::string::npos)
      << refused.err;
}

TEST_F(EvaluationCommands, ItIsNotedWhatElseAControllerWasTrainedWith) {
  const auto notes_of_record = [&](const std::string& record,
                                   const std::vector<std::string>& flags) {
    const fs::path path = dir.path() / "other";
    made_controller(default_fingerprint(), record).save(path);
    const RunResult result =
        run("eval", std::vector<std::string>{"--blocks", "2", "-c", path.string()} + flags);
    EXPECT_EQ(result.code, 0) << testing::PrintToString(result);
    const size_t at = result.err.find("note: this controller");
    return at == std::string::npos ? "" : result.err.substr(at, result.err.find('\n', at) - at);
  };
  const auto notes = [&](const std::string& trained_with, const std::vector<std::string>& flags) {
    return notes_of_record(R"({"run": {"outside_paper": [)" + trained_with + "]}}", flags);
  };
  // The record may be anything.
  for (const char* record :
       {"null", "\"by hand\"", "[]", R"({"run": []})", R"({"run": {"outside_paper": null}})",
        R"({"run": {"outside_paper": [3]}})"})
    EXPECT_EQ(notes_of_record(record, {}), "") << record;
  EXPECT_EQ(notes(R"("channel-scores wina")", {"--channel-scores", "wina"}), "");
  EXPECT_EQ(notes("", {}), "");
  EXPECT_EQ(notes(R"("channel-scores wina")", {"--prune-down"}),
            "note: this controller was trained with --channel-scores wina, and is used with "
            "--prune-down");
  EXPECT_EQ(notes("", {"--page-scores", "moments"}),
            "note: this controller was trained with no option outside the paper, and is used with "
            "--page-scores moments");
}

}  // namespace
}  // namespace sol::test
