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
  const RunResult result = plan({});
  ASSERT_EQ(result.code, 0) << testing::PrintToString(result);
  for (const char* part :
       {"weights, as loaded", "cache: prefixes and schedules", "together", "dense pass of 2 inputs",
        "a collection", "2 machines", "4 machines need --set rollout.batch=4"})
    EXPECT_THAT(result.out, testing::HasSubstr(part));
}

TEST(PlanCommand, SaysWhatToLower) {
  const RunResult result = plan({"--memory-limit", "0.1", "--set", "rollout.batch=512"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, testing::HasSubstr("does not fit: fits with --set rollout.batch="));
  EXPECT_THAT(result.err, testing::HasSubstr("training needs"));
}

TEST(PlanCommand, BadInputIsNamed) {
  expect_error(plan({"--processes", "0"}), {"--processes"});
  expect_error(plan({"--set", "rollout.bach=3"}), {"rollout.bach"});
  expect_error(run_sol({"plan"}), {"config"});
}

}  // namespace
}  // namespace sol::test
