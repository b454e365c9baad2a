// sol reproduce with a ready controller on the embedded model: a whole small study, interrupted,
// resumed, reported.
#include <algorithm>
#include <fstream>

#include "base/file_io.h"
#include "base/json.h"
#include "made_controller.h"

namespace sol::test {
namespace {

namespace fs = std::filesystem;

class ReproduceCommand : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream text(dir.path() / "text.txt");
    for (int i = 0; i < 900; ++i)
      text << "The " << (i % 7 == 0 ? "old" : "young") << " man number " << i
           << " walked down to the river and looked at the water for " << i * 37 % 19
           << " minutes, as he had done every day.\n";
    text << "<|endoftext|>\n";
    made_controller(default_fingerprint()).save(dir.path() / "made");
    write_study("");
  }

  void write_study(const std::string& more) {
    std::ofstream(study)
        << "name: A <small> study\n"
           "data:\n"
           "  valid: {files: [text.txt]}\n"
           "  test: {files: [text.txt]}\n"
           "evaluation: {context: 40, blocks: 3, validation_blocks: 2, budgets: 8}\n"
           "families: {made: {title: Made, controllers: {2l: {ready: made}}}}\n"
           "experiments:\n"
           "  spaces: {controllers: [2l]}\n"
           "  landscape: {schedules: 3, points: 2}\n"
           "  search: {schedules: 4, points: 2}\n"
           "  horizons: {controllers: []}\n"
           "  pollution: {windows: 3, prefix: 20, corrupted: 2, tail: 5}\n"
           "  timed: {controller: 2l, blocks: 2, points: 2}\n"
           "  free: {prompts: 2, prompt_tokens: 12, tokens: 20, points: 2}\n"
           "  transfer: {controller: 2l, contexts: [24], blocks: 2}\n"
        << more;
  }

  // A study of the same controller with these blocks and experiments alone.
  void write_sweeps(const std::string& blocks, const std::string& experiments) {
    std::ofstream(study) << "name: Sweeps\n"
                            "data: {valid: {files: [text.txt]}, test: {files: [text.txt]}}\n"
                            "evaluation: {context: 40, validation_blocks: 2, budgets: 8, "
                         << blocks
                         << "}\n"
                            "families: {made: {controllers: {2l: {ready: made}}}}\n"
                            "experiments: {"
                         << experiments << "}\n";
  }

  RunResult run(const std::vector<std::string>& more, const RunOptions& options = {}) const {
    std::vector<std::string> arguments{"reproduce", study.string(), "-o", out.string(), "--threads",
                                       "1",         "--precision",  "f32"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_sol(arguments, options);
  }

  TemporaryDirectory dir;
  fs::path study = dir.path() / "study.yaml", out = dir.path() / "out";
};

TEST_F(ReproduceCommand, RunsAStudyAndReportsIt) {
  // A part first: the report says what is missing.
  const RunResult part = run({"--only", "pollution"});
  ASSERT_EQ(part.code, 0) << testing::PrintToString(part);
  EXPECT_NE(part.err.find("[1/1] pollution"), std::string::npos) << part.err;
  EXPECT_NE(part.err.find("jobs of the other sections are not done"), std::string::npos)
      << part.err;
  std::string report = read_file(out / "report.html");
  EXPECT_NE(report.find("A &lt;small&gt; study"), std::string::npos);
  EXPECT_NE(report.find("Not run yet:"), std::string::npos);
  EXPECT_TRUE(fs::exists(out / "csv/pollution.csv"));
  EXPECT_FALSE(fs::exists(out / "csv/paired-realised.csv"));
  EXPECT_NE(read_file(out / "report.md").find("Not run yet: sweep/made/2l."), std::string::npos);
  const auto made = fs::last_write_time(out / "jobs/pollution.json");

  const RunResult all = run({});
  ASSERT_EQ(all.code, 0) << testing::PrintToString(all);
  EXPECT_EQ(fs::last_write_time(out / "jobs/pollution.json"), made);  // not run again
  report = read_file(out / "report.html");
  EXPECT_EQ(report.find("Not run yet:"), std::string::npos);
  for (const char* id : {"spaces", "statistics", "adherence", "heuristics", "landscape", "search",
                         "pollution", "scaling", "ours"})
    EXPECT_NE(report.find("<h2 id=\"" + std::string(id) + "\">"), std::string::npos) << id;
  for (const char* file :
       {"paired-realised", "paired-requested", "adherence", "heuristics", "landscape", "search",
        "static", "time", "behaviour", "free", "transfer", "summary", "landscape-counts"})
    EXPECT_TRUE(fs::exists(out / "csv" / (std::string(file) + ".csv"))) << file;

  const std::string tables = read_file(out / "report.md");
  for (const char* shown :
       {"# Study: A <small> study", "- Seed: ", "| 2l: requests met on every axis | ",
        "## 2. Paired comparisons", "| Levels | Controller |", "points at which no schedule of ",
        "the policy is at least as good as the best of ", "## 9. KV pollution",
        "Spearman's rank correlation", "| current token's surprisal |"})
    EXPECT_NE(tables.find(shown), std::string::npos) << shown << "\n" << tables;

  // Every figure line is JSON and names its table.
  std::ifstream figures(out / "figures.jsonl");
  std::string line;
  int lines = 0;
  while (std::getline(figures, line)) {
    EXPECT_TRUE(parse_json(line, "figures").contains("table"));
    ++lines;
  }
  EXPECT_GT(lines, 30);
  // Another study's results that were damaged are an error beside this one's.
  const fs::path other = dir.path() / "other";
  fs::create_directory(other);
  for (const char* damaged :
       {R"("families": [{"name": "x"}])", R"("families": 3)", R"("families": [4])"}) {
    write_file_atomically(other / "study.json",
                          std::string(R"({"format_version": 2, "context": 1024, "spaces": )"
                                      R"({"controllers": ["fl"]}, )") +
                              damaged + "}");
    expect_error(run({"--report", "--beside", other.string()}), {"other/study.json"});
  }

  // Nor does a result that has been deleted leave its table behind.
  fs::remove(out / "jobs/pollution.json");
  std::ofstream(out / "csv/mine.csv") << "a user's own\n";
  ASSERT_EQ(run({"--report"}).code, 0);
  EXPECT_FALSE(fs::exists(out / "csv/pollution.csv"));
  EXPECT_FALSE(fs::exists(out / "csv/pollution-tail.csv"));
  EXPECT_TRUE(fs::exists(out / "csv/mine.csv"));
  ASSERT_EQ(run({"--only", "pollution"}).code, 0);
  EXPECT_TRUE(fs::exists(out / "csv/pollution-tail.csv"));

  // A finished study has nothing left to do.
  const RunResult again = run({});
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(again.err.find(" done in "), std::string::npos) << again.err;
}

TEST_F(ReproduceCommand, HandMadePoliciesAreSpokenOfWhereThereAreSome) {
  write_sweeps("blocks: 2", "spaces: {controllers: [2l], baselines: [fixed]}");
  ASSERT_EQ(run({"--only", "spaces"}).code, 0);
  const std::string report = read_file(out / "report.html");
  EXPECT_NE(report.find("The study compares with fixed budgets only."), std::string::npos);
  EXPECT_EQ(report.find("EMC spends after"), std::string::npos);
}

TEST_F(ReproduceCommand, GoesOnAfterAnInterruption) {
  const RunResult stopped = run({}, {.interrupt_when = "sweep/made/2l done"});
  EXPECT_EQ(stopped.code, 128 + SIGINT) << testing::PrintToString(stopped);
  EXPECT_TRUE(fs::exists(out / "report.html"));
  EXPECT_TRUE(fs::exists(out / "jobs/sweep/made/2l.json"));
  const auto made = fs::last_write_time(out / "jobs/sweep/made/2l.json");
  const RunResult resumed = run({});
  ASSERT_EQ(resumed.code, 0) << testing::PrintToString(resumed);
  EXPECT_EQ(fs::last_write_time(out / "jobs/sweep/made/2l.json"), made);
  EXPECT_TRUE(fs::exists(out / "jobs/transfer/made/2l-context-24.json"));
}

// Two seeds that found the same: their mean is what both found, without any spread.
TEST_F(ReproduceCommand, SeedsAreComparedWhereThereAreSeveral) {
  ASSERT_EQ(run({"--only", "spaces"}).code, 0);
  const fs::path swept = dir.path() / "swept.json";
  fs::copy_file(out / "jobs/sweep/made/2l.json", swept);
  fs::remove_all(out);
  std::ofstream(study)
      << "name: Seeds\n"
         "data: {train: {files: [text.txt]}, valid: {files: [text.txt]}, test: "
         "{files: [text.txt]}}\n"
         "evaluation: {context: 40, blocks: 3, validation_blocks: 2, budgets: 8}\n"
         "families: {made: {controllers: {2l: {config: "
      << (source_dir() / "configs/2l.yaml").string()
      << "}}}}\n"
         "experiments: {spaces: {controllers: [2l]}, seeds: {seeds: [2]}, pollution: {windows: "
         "3, prefix: 20, corrupted: 2, tail: 5}}\n";
  ASSERT_EQ(run({"--only", "pollution"}).code, 0);  // so that there is a directory
  fs::create_directories(out / "jobs/sweep/made");
  fs::copy_file(swept, out / "jobs/sweep/made/2l.json");
  ASSERT_EQ(run({"--report"}).code, 0);
  EXPECT_TRUE(fs::exists(out / "csv/seeds.csv"));
  EXPECT_FALSE(fs::exists(out / "csv/seeds-spread.csv"));
  fs::copy_file(swept, out / "jobs/sweep/made/2l-seed2.json");
  ASSERT_EQ(run({"--report"}).code, 0);
  const std::string seeds = read_file(out / "csv/seeds.csv");
  const std::string spread = read_file(out / "csv/seeds-spread.csv");
  // "made,2l,POLICY,FIXED,DIFFERENCE,..." and "made,2l,2,DIFFERENCE,0.0,...".
  std::string difference = seeds.substr(seeds.find("made,2l,") + 8);
  for (int field = 0; field < 2; ++field) difference.erase(0, difference.find(',') + 1);
  difference.resize(difference.find(','));
  EXPECT_NE(spread.find("made,2l,2," + difference + ",0.0,"), std::string::npos) << seeds << spread;
}

TEST_F(ReproduceCommand, ErrorsSayWhatAndWhere) {
  expect_error(run({"--only", "spaces,horizn"}), {"no section \"horizn\"", "horizons"});
  expect_error(run({"--report"}), {"holds no study", out.string()});
  expect_error(run({"--beside", (dir.path() / "nothing").string()}), {"nothing", "holds no study"});
  EXPECT_FALSE(fs::exists(out / "jobs"));  // before any work
  ASSERT_EQ(run({"--only", "scaling"}).code, 0);
  write_study("  search: {points: 3}\n");  // twice
  expect_error(run({}), {"study.yaml", "search is given twice"});
  write_study("seed: 9\n");
  expect_error(run({"--only", "scaling"}), {"another study", "seed"});
  write_study("");
  expect_error(run({"--report", "--quick"}), {"another study", "quick"});
  std::ofstream(out / "report.md") << "My own notes\n";
  expect_error(run({"--report"}), {"report.md", "a study's tables"});
  fs::remove(out / "report.md");
  std::ofstream(out / "jobs/static.json") << "{";
  expect_error(run({"--report"}), {"static.json"});
  std::ofstream(dir.path() / "text.txt", std::ios::app) << "More.\n";
  expect_error(run({"--only", "scaling"}), {"another study", "identity"});
  fs::remove(dir.path() / "text.txt");
  expect_error(run({"--only", "pollution"}), {"text.txt", "cannot open"});
}

TEST_F(ReproduceCommand, AStudyMayHaveHorizonsAndNoSpaces) {
  write_sweeps("blocks: 3", "spaces: {controllers: []}, horizons: {controllers: [2l]}");
  const RunResult result = run({"--only", "horizons"});
  ASSERT_EQ(result.code, 0) << testing::PrintToString(result);
  EXPECT_TRUE(fs::exists(out / "csv/adherence.csv"));
}

// What is drawn over frontiers must be of their blocks; what stands in two lists, in one row.
TEST_F(ReproduceCommand, SweepsAndStaticMethodsAreOfTheSameBlocks) {
  write_sweeps("blocks: 1, sweep_blocks: 3",
               "spaces: {controllers: [2l]}, horizons: {controllers: [2l]}");
  const RunResult result = run({"--only", "spaces,scaling"});
  ASSERT_EQ(result.code, 0) << testing::PrintToString(result);
  const Json sweep = read_json(out / "jobs/sweep/made/2l.json")["result"];
  EXPECT_EQ(sweep["blocks"].size(), 3u);
  const Json points = read_json(out / "jobs/static.json")["result"]["points"];
  EXPECT_EQ(points[0]["label"], "dense");
  const RunResult dense =
      run_sol({"eval", "--data", (dir.path() / "text.txt").string(), "--context", "40", "--blocks",
               "3", "--threads", "1", "--precision", "f32", "--json"});
  EXPECT_NEAR(points[0]["perplexity"].get<double>(),
              parse_json(dense.out, "eval")["perplexity"].get<double>(), 1e-3);
  const std::string adherence = read_file(out / "csv/adherence.csv");
  EXPECT_EQ(std::ranges::count(adherence, '\n'), 2) << adherence;
  EXPECT_NE(read_file(out / "report.md").find("up to 1 test blocks (in sweeps up to 3)"),
            std::string::npos);
}

TEST_F(ReproduceCommand, ItIsNotedWhatElseAReadyControllerWasTrainedWith) {
  const RunResult same = run({"--only", "training"});
  EXPECT_EQ(same.code, 0) << testing::PrintToString(same);
  EXPECT_EQ(same.err.find("was trained with"), std::string::npos) << same.err;
  fs::remove_all(out);
  const RunResult other = run({"--only", "training", "--prune-down"});
  EXPECT_EQ(other.code, 0) << testing::PrintToString(other);
  EXPECT_NE(other.err.find("made: this controller was trained with no option outside the paper, "
                           "and is used with --prune-down"),
            std::string::npos)
      << other.err;
}

TEST_F(ReproduceCommand, TextsAreAskedForBeforeAnyWork) {
  std::ofstream(study) << "name: No text\n"
                          "families: {made: {controllers: {2l: {ready: made}}}}\n"
                          "experiments: {spaces: {controllers: [2l]}}\n";
  expect_error(run({}), {"validation text", "data.valid", "--valid-data"});
  expect_error(run({"--only", "pollution"}), {"test text", "--test-data"});
  std::ofstream(study) << "name: No text\n"
                          "families: {f: {controllers: {2l: {config: "
                       << (source_dir() / "configs/2l.yaml").string()
                       << "}}}}\n"
                          "experiments: {spaces: {controllers: [2l]}}\n";
  expect_error(run({}), {"training text", "data.train", "--train-data"});
}

TEST_F(ReproduceCommand, WhatCannotBeTrainedIsAnErrorBeforeAnyWork) {
  const std::string config = (source_dir() / "configs/2l.yaml").string();
  const auto with = [&](const std::string& more) {
    std::ofstream(study) << "name: Typing errors\n"
                            "data: {train: {files: [text.txt]}, valid: {files: [text.txt]}, test: "
                            "{files: [text.txt]}}\n"
                         << more;
  };
  with("families: {f: {controllers: {2l: {config: " + config +
       ", set: {nonsense.key: 3}}}}}\n"
       "experiments: {spaces: {controllers: [2l]}}\n");
  expect_error(run({}), {"f/2l", "nonsense"});
  // Nothing has come of that study, so the corrected one takes its place: no directory to delete.
  with(
      "families: {made: {controllers: {2l: {ready: made}}}}\n"
      "experiments: {spaces: {controllers: [2l]}}\n"
      "evaluation: {context: 5000}\n");
  expect_error(run({}), {"evaluation.context needs 5001 positions", "has 2048"});
  with("families: {f: {controllers: {2l: {config: " + config +
       ", set: {rollout.context: 40}}}}}\n"
       "experiments: {spaces: {controllers: [2l]}, pollution: {prefix: 30, corrupted: 2, tail: "
       "3000}}\n"
       "evaluation: {context: 2040}\n");
  expect_error(run({"--only", "spaces"}), {"f/2l: evaluation.context", "2056", "2048"});
  expect_error(run({"--only", "pollution"}), {"experiments.pollution needs 3032 positions"});
  with(
      "families: {made: {controllers: {2l: {ready: made}}}}\n"
      "experiments: {spaces: {controllers: [2l]}}\n");
  expect_error(run({"--only", "horizons"}), {"nothing to do"});
}

TEST_F(ReproduceCommand, AJobThatFailsLeavesTheOthers) {
  made_controller("00112233445566778899aabbccddeeff").save(dir.path() / "made");
  const RunResult result = run({"--only", "spaces,pollution"});
  EXPECT_EQ(result.code, 1) << testing::PrintToString(result);
  for (const char* part : {"train/made/2l failed", "00112233445566778899aabbccddeeff",
                           "sweep/made/2l failed: it needs frontier/made/2l", "pollution done",
                           "4 of the study's jobs failed"})
    EXPECT_NE(result.err.find(part), std::string::npos) << part << "\n" << result.err;
  const std::string report = read_file(out / "report.html");
  EXPECT_NE(report.find("Failed: train/made/2l: "), std::string::npos);
  // What its failure caused ends with it.
  EXPECT_NE(report.find("Not run yet: sweep/made/2l."), std::string::npos);
  EXPECT_FALSE(fs::exists(out / "jobs/sweep/made/2l.failed.txt"));
}

}  // namespace
}  // namespace sol::test
