// A controller for times on the command line.
#include <fstream>
#include <functional>

#include "base/file_io.h"
#include "base/json.h"
#include "made_controller.h"

namespace sol::test {
namespace {

namespace fs = std::filesystem;

class TimeBudget : public testing::Test {
 protected:
  TimeBudget() {
    std::ofstream file(text);
    for (int i = 0; i < 60; ++i)
      file << "The " << (i % 7 == 0 ? "old" : "young") << " man number " << i
           << " walked down to the river and looked at the water for " << i * 37 % 19
           << " minutes, as he had done every day.\n";
    made_time_controller(default_fingerprint()).save(timed);
    made_controller(default_fingerprint()).save(shares);
  }

  RunResult generate(const fs::path& controller, const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{"generate", "-n", "40",       "--precision",
                                       "f32",      "-c", controller, "Once upon a time there was"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_sol(arguments);
  }
  RunResult evaluate(const std::string& command, const fs::path& controller,
                     const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{
        command,       "--data", text,       "--context", "48", "--threads", "1",
        "--precision", "f32",    "--blocks", "4",         "-c", controller};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_sol(arguments);
  }

  TemporaryDirectory dir;
  fs::path text = dir.path() / "text.txt", timed = dir.path() / "timed",
           shares = dir.path() / "shares";
};

TEST_F(TimeBudget, GenerateTakesATimeEitherWay) {
  // 7.5 ms are 7 of a step and 0.5 of the refresh, at every length.
  for (const auto& flags : {std::vector<std::string>{"--ms", "7.5"}, {"--time", "0.7"}}) {
    const RunResult result = generate(timed, flags);
    ASSERT_EQ(result.code, 0) << testing::PrintToString(result);
    EXPECT_NE(result.err.find("requested  0.700 of the dense time"), std::string::npos)
        << result.err;
    EXPECT_NE(result.err.find("refresh included\nrealised"), std::string::npos) << result.err;
  }
  EXPECT_NE(generate(timed, {}).err.find("requested  1.000 of the dense time"), std::string::npos);
  // 3 ms are less than the lowest levels take: what was trained for at least.
  const RunResult least = generate(timed, {"--ms", "3"});
  EXPECT_NE(least.err.find("requested  0.400"), std::string::npos);
  EXPECT_NE(least.err.find("note: 3 ms per token are less than this controller can take"),
            std::string::npos)
      << least.err;
  EXPECT_NE(least.err.find("4.5 ms, 0.400 of the dense time"), std::string::npos) << least.err;
  EXPECT_NE(least.err.find("3 ms per token were asked for"), std::string::npos) << least.err;
  EXPECT_NE(least.err.find("ms per token by the cost table"), std::string::npos) << least.err;
  const RunResult most = generate(timed, {"--ms", "12"});
  EXPECT_NE(most.err.find("note: 12 ms per token are more than a dense token takes"),
            std::string::npos)
      << most.err;
  EXPECT_EQ(generate(timed, {"--ms", "7.5"}).err.find("note: "), std::string::npos);
  EXPECT_NE(generate(timed, {"--time", "0.001"}).err.find("outside the trained range"),
            std::string::npos);
  const RunResult outside = generate(timed, {"--time", "0.3"});
  EXPECT_NE(outside.err.find("outside the trained range 0.4..1"), std::string::npos) << outside.err;
}

TEST_F(TimeBudget, SharesAndTimesAreNotConfused) {
  for (const char* flag : {"--keep", "--budget", "--prune", "--bits"})
    expect_error(generate(timed, {flag, "0.5"}), {"trained for times", "--ms or --time"});
  expect_error(generate(shares, {"--ms", "5"}), {"--ms needs a controller", "trained for times"});
  expect_error(generate(shares, {"--time", "0.5"}), {"--time needs a controller"});
  expect_error(generate(timed, {"--ms", "5", "--horizon", "4"}), {"episodes of 8 steps"});
  EXPECT_EQ(generate(timed, {"--ms", "5", "--time", "0.5"}).code, 2);
  EXPECT_EQ(generate(timed, {"--ms", "0"}).code, 2);
  EXPECT_EQ(generate(timed, {"--time", "1.5"}).code, 2);
}

TEST_F(TimeBudget, EvalReportsTheShareOfTheTime) {
  const RunResult result = evaluate("eval", timed, {"--time", "0.7", "--json"});
  ASSERT_EQ(result.code, 0) << testing::PrintToString(result);
  const Json json = parse_json(result.out, "output");
  EXPECT_EQ(json["requested"], (Json{{"time", 0.7}}));
  const double keep = json["realised"]["kappa"], prune = json["realised"]["rho"];
  // Of two levels the averages say how many steps took either: 1 of 10 ms and 5 of 10 are saved.
  EXPECT_NEAR(json["realised_time"].get<double>(),
              1 - 0.1 * (1 - keep) / 0.9 - 0.5 * (1 - prune) / 0.5, 1e-5);
  expect_error(evaluate("eval", timed, {"--keep", "0.5"}), {"trained for times"});
  expect_error(evaluate("eval", timed, {"--schedule-out", dir.path() / "s.jsonl"}), {"yet"});
  expect_error(evaluate("eval", shares, {"--time", "0.5"}), {"--time needs a controller"});
  // The fixed policy of the same levels takes shares.
  EXPECT_EQ(evaluate("eval", timed, {"-p", "fixed", "--keep", "0.5"}).code, 0);
}

TEST_F(TimeBudget, EvalTakesATableOfTheSameModelPagesAndOptions) {
  const std::string costs = (dir.path() / "costs.json").string();
  const RunResult measured =
      run_sol({"calibrate", "-c", shares, "--context", "16,48", "--repetitions", "9", "-o", costs});
  ASSERT_EQ(measured.code, 0) << testing::PrintToString(measured);
  const Json table = read_json(costs);
  const auto eval = [&](const std::function<void(Json&)>& change) {
    Json changed = table;
    change(changed);
    std::ofstream(costs) << changed.dump();
    return evaluate("eval", shares, {"--keep", "0.5", "--costs", costs});
  };
  const RunResult same = eval([](Json&) {});
  EXPECT_EQ(same.code, 0) << testing::PrintToString(same);
  // Judging need not happen where the times count.
  EXPECT_EQ(eval([](Json& j) { j["run"]["threads"] = 77; }).code, 0);
  expect_error(eval([](Json& j) { j["run"]["outside_paper"] = Json::array({"prune-down"}); }),
               {"costs.json", "another outside_paper", "[\"prune-down\"]"});
  expect_error(eval([](Json& j) { j["measured_with"]["force_sinks"] = false; }),
               {"costs.json", "another force_sinks"});
  expect_error(eval([](Json& j) { j["measured_with"]["deterministic"] = "no"; }),
               {"costs.json", "deterministic", "true or false"});
  expect_error(eval([](Json& j) { j["run"] = "mine"; }), {"costs.json", "is no cost table"});
  expect_error(eval([](Json& j) { j["costs"]["lengths"][0]["keys"] = 2147483648; }),
               {"costs.json", "at most 2147483647"});
}

TEST_F(TimeBudget, SweepGoesOverTimes) {
  const fs::path out = dir.path() / "sweep";
  const RunResult result = evaluate("sweep", timed, {"--time", "0.5,0.75,0.9", "-o", out});
  ASSERT_EQ(result.code, 0) << testing::PrintToString(result);
  EXPECT_NE(result.out.find("of the dense time (inside)"), std::string::npos) << result.out;
  std::ifstream lines(out / "points.jsonl");
  std::string line;
  int learned = 0, fixed = 0;
  double time = 0;
  while (std::getline(lines, line)) {
    const Json row = parse_json(line, "points.jsonl");
    EXPECT_TRUE(row["requested"].contains("time")) << line;
    if (row["policy"] == "learned") {
      ++learned;
      time = row["realised_time"];
    } else {
      ++fixed;
      EXPECT_TRUE(row["asked"].contains("kappa")) << line;
      // At the policy's averages it takes the policy's time, as far as 4 x 8 steps can meet them.
      EXPECT_NEAR(row["realised_time"].get<double>(), time, 0.04) << line;
    }
  }
  EXPECT_EQ(learned, 3);
  EXPECT_EQ(fixed, 3);
  const Json summary = read_json(out / "summary.json");
  EXPECT_TRUE(summary["adherence"][0].contains("time_share"));
  EXPECT_NE(read_file(out / "report.html").find("id=\"costs\""), std::string::npos);

  expect_error(evaluate("sweep", timed, {"--keep", "0.5", "-o", out}), {"trained for times"});
  expect_error(evaluate("sweep", timed, {"--store-frontier", "-o", out}), {"--store-frontier"});
  expect_error(evaluate("sweep", timed, {"--compare", "requested", "-o", out}), {"realises only"});
  expect_error(evaluate("sweep", shares, {"--time", "0.5", "-o", out}), {"trained for times"});
  expect_error(evaluate("sweep", timed, {"-p", "fixed", "--baselines", "learned", "-o", out}),
               {"baseline learned", "times"});
}

// Beside a controller for times, averages per axis lie inside its levels' ranges, not its time's.
TEST_F(TimeBudget, OtherPoliciesAreSweptOverTheAxes) {
  const fs::path out = dir.path() / "sweep";
  const RunResult result = evaluate("sweep", timed,
                                    {"-p", "random-matched", "--keep", "0.3,0.99", "--prune", "0.8",
                                     "--compare", "realised", "-o", out});
  ASSERT_EQ(result.code, 0) << testing::PrintToString(result);
  std::ifstream lines(out / "points.jsonl");
  int points = 0;
  for (std::string line; std::getline(lines, line); ++points)
    EXPECT_EQ(parse_json(line, "points.jsonl")["inside"], true) << line;
  EXPECT_EQ(points, 4);
}

TEST_F(TimeBudget, OtherCommandsSayThatTheyCannotUseIt) {
  expect_error(evaluate("probe", timed, {}), {"trained for times", "sol probe yet"});
}

TEST_F(TimeBudget, ServeRefusesNetKeepRatesForEfforts) {
  const RunResult result = run_sol(
      {"serve", "--port", "0", "-c", timed, "--reasoning-effort", "low=0.5", "--latency", "off"});
  EXPECT_EQ(result.code, 1) << testing::PrintToString(result);
  EXPECT_NE(result.err.find("--reasoning-effort names net keep-rates, but this controller was "
                            "trained for times"),
            std::string::npos)
      << result.err;
}

}  // namespace
}  // namespace sol::test
