// sol plan: what training will take, before it starts.
#include <gmock/gmock.h>

#include "run_program.h"

namespace sol::test {
namespace {

const std::string config = (source_dir() / "configs/default-demo.yaml").string();

RunResult plan(std::vector<std::string> more) {
  std::vector<std::string> arguments{
      "plan", config, "--threads", "1", "--set", "rollout.batch=2", "--set", "rollout.context=128"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_sol(arguments);
}

TEST(PlanCommand, SaysMemoryAndTime) {
  const RunResult result = plan({"--processes", "2"});
  ASSERT_EQ(result.code, 0) << testing::PrintToString(result);
  for (const char* part :
       {"weights, as loaded", "cache: prefixes and schedules", "together", "dense pass of 2 inputs",
        "a collection", "2 processes share these processors", "2 machines",
        "4 machines need --set rollout.batch=4"})
    EXPECT_THAT(result.out, testing::HasSubstr(part));
}

TEST(PlanCommand, MeasuresWhatThePolicyIsShown) {
  const RunResult result = plan({"--set", "policy.surprisal=true"});
  EXPECT_EQ(result.code, 0) << testing::PrintToString(result);
  EXPECT_THAT(result.out, testing::HasSubstr("a collection"));
}

TEST(PlanCommand, SaysWhatToLower) {
  const RunResult result = plan({"--memory-limit", "0.4", "--set", "rollout.batch=512"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, testing::HasSubstr("does not fit: fits with --set rollout.batch="));
  EXPECT_THAT(result.err, testing::HasSubstr("training needs"));
}

// The table, its verdict and the error speak of all processes, and nothing is measured.
TEST(PlanCommand, WhatDoesNotFitSeveralProcessesIsAnError) {
  const RunResult result =
      plan({"--memory-limit", "0.7", "--processes", "2", "--set", "rollout.batch=512"});
  EXPECT_EQ(result.code, 1) << testing::PrintToString(result);
  EXPECT_THAT(result.out, testing::HasSubstr("once for all"));
  EXPECT_THAT(result.out, testing::Not(testing::HasSubstr("dense pass of")));
  const std::string verdict = "does not fit: ";
  const size_t begin = result.out.find(verdict);
  ASSERT_NE(begin, std::string::npos) << result.out;
  const std::string advice = result.out.substr(
      begin + verdict.size(), result.out.find('\n', begin) - begin - verdict.size());
  EXPECT_THAT(result.err, testing::HasSubstr("training with 2 processes needs"));
  EXPECT_THAT(result.err, testing::HasSubstr(advice));
  // What it offers does.
  const std::string setting = "rollout.batch=";
  const size_t at = advice.find(setting);
  ASSERT_NE(at, std::string::npos) << advice;
  const RunResult smaller = plan({"--memory-limit", "0.7", "--processes", "2", "--set",
                                  advice.substr(at, advice.find(' ', at) - at)});
  EXPECT_EQ(smaller.code, 0) << testing::PrintToString(smaller);
}

TEST(PlanCommand, ProcessesOnALibTorchDeviceHaveAModelEach) {
  const RunResult result = plan({"--device", "cpu", "--processes", "2", "--memory-limit", "0.05"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, testing::HasSubstr("weights, as loaded"));
  EXPECT_THAT(result.out, testing::Not(testing::HasSubstr("once for all")));
}

TEST(PlanCommand, ABatchHasAnInputForEachProcess) {
  expect_error(plan({"--processes", "3"}), {"rollout.batch = 2", "3 processes"});
}

TEST(PlanCommand, AModelThatIsTooLargeIsNotLoaded) {
  expect_error(plan({"--memory-limit", "0.001"}), {"weights alone take", "1.0 MiB are available"});
}

// There is nothing to tidy up, and what is measured may take seconds between places to stop at.
TEST(PlanCommand, ASignalEndsTheMeasurement) {
  const RunResult result = run_sol({"plan", config, "--threads", "1"},
                                   {.interrupt_when = "measuring", .interrupt_signal = SIGTERM});
  EXPECT_EQ(result.signal, SIGTERM) << testing::PrintToString(result);
}

TEST(PlanCommand, BadInputIsNamed) {
  expect_error(plan({"--processes", "0"}), {"--processes"});
  for (const char* gib : {"0", "-1", "17179869184", "1e300", "nan", "inf"})
    expect_error(plan({"--memory-limit", gib}), {"--memory-limit", "at most 1073741824", gib});
  expect_error(plan({"--set", "rollout.bach=3"}), {"rollout.bach"});
  expect_error(plan({"--set", "rollout.context=1000000"}),
               {"rollout.context 1000000", "positions"});
  expect_error(run_sol({"plan"}), {"config"});
}

}  // namespace
}  // namespace sol::test
