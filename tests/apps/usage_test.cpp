// What the program says about itself, and of wrong usage.
#include "run_program.h"

namespace sol::test {
namespace {

bool has_training() {
  return run_sol({"--version"}).out.find("training:     yes") != std::string::npos;
}

TEST(Usage, EveryCommandExplainsItself) {
  const RunResult help = run_sol({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_TRUE(help.err.empty());
  std::vector<std::string> commands{"generate", "sweep",    "eval",       "probe",
                                    "inspect",  "tokenize", "detokenize", "logits"};
  if (has_training()) commands.push_back("train");
  for (const std::string& command : commands) {
    EXPECT_NE(help.out.find("  " + command + " "), std::string::npos) << command << "\n"
                                                                      << help.out;
    const RunResult own = run_sol({command, "--help"});
    EXPECT_EQ(own.code, 0) << command;
    EXPECT_NE(own.out.find("--help"), std::string::npos) << command;
    EXPECT_TRUE(own.err.empty()) << command;
  }
}

TEST(Usage, VersionNamesCommitAndInstructionSets) {
  const RunResult version = run_sol({"--version"});
  EXPECT_EQ(version.code, 0);
  for (const char* word :
       {"sol 0.", "commit:", "training:", "instructions:", "reference", "processor:"})
    EXPECT_NE(version.out.find(word), std::string::npos) << word << "\n" << version.out;
  const RunResult forced = run_sol({"--version"}, {.environment = {"SOL_ISA=reference"}});
  EXPECT_NE(forced.out.find("reference in use"), std::string::npos) << forced.out;
}

TEST(Usage, WrongUsageEndsWithTwo) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {},
           {"fly"},
           {"generate", "--colour", "red"},
           {"generate", "--budget", "0.5"},  // needs a controller
           {"generate", "--fixed", "k050-s070-q8", "-c", "x"},
           {"generate", "--threads", "-3"},
           {"generate", "--precision", "f8"},
           {"logits"},
       }) {
    const RunResult result = run_sol(arguments);
    EXPECT_EQ(result.code, 2) << testing::PrintToString(result);
    EXPECT_TRUE(result.out.empty()) << result.out;
    EXPECT_FALSE(result.err.empty());
  }
}

TEST(Usage, AnUnknownInstructionSetIsAnError) {
  expect_error(run_sol({"generate", "x"}, {.environment = {"SOL_ISA=sse9"}}), {"sol: ", "sse9"});
}

TEST(Usage, AClosedOutputEndsTheProgramQuietly) {
  const RunResult result = run_sol({"generate", "-n", "40", "Once"}, {.close_output = true});
  EXPECT_EQ(result.code, 128 + SIGPIPE) << testing::PrintToString(result);
  EXPECT_EQ(result.err.find("sol:"), std::string::npos) << result.err;
}

TEST(Usage, AFullOutputIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const RunResult result =
      run_program("/bin/sh", {"-c", "exec '" SOL_BINARY "' generate -n 4 Once >/dev/full"});
  expect_error(result, {"standard output", "No space left"});
}

}  // namespace
}  // namespace sol::test
