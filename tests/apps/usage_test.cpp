// What the program says about itself, and of wrong usage.
#include <algorithm>
#include <sstream>

#include "run_program.h"

namespace sol::test {
namespace {

// Those that the program's own help lists.
std::vector<std::string> listed_commands(const std::string& help) {
  std::vector<std::string> commands;
  std::istringstream lines(help.substr(std::min(help.size(), help.find("Subcommands:"))));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("  ") && line.size() > 2 && line[2] != ' ')
      commands.push_back(line.substr(2, line.find(' ', 2) - 2));
  return commands;
}

TEST(Usage, EveryCommandExplainsItself) {
  const RunResult help = run_sol({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_TRUE(help.err.empty());
  const std::vector<std::string> commands = listed_commands(help.out);
  for (const char* command : {"generate", "serve", "sweep", "reproduce", "logits"})
    EXPECT_NE(std::ranges::find(commands, command), commands.end()) << command << "\n" << help.out;
  EXPECT_GE(commands.size(), 16u) << help.out;
  for (const std::string& command : commands) {
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

TEST(Usage, WrongNamesAreNamedWithWhatWasProbablyMeant) {
  const auto expect = [](const std::vector<std::string>& arguments,
                         const std::vector<std::string>& words) {
    const RunResult result = run_sol(arguments);
    EXPECT_EQ(result.code, 2);
    EXPECT_TRUE(result.err.starts_with("sol: ")) << result.err;
    for (const std::string& word : words)
      EXPECT_NE(result.err.find(word), std::string::npos) << word << "\n" << result.err;
  };
  expect({"generte", "hi"}, {"no command generte", "did you mean generate?", "tokenize"});
  expect({"hello"}, {"no command hello", "generate", "sol --help"});
  expect({}, {"name a command", "generate"});
  expect({"generate", "--temprature", "0.8", "hi"},
         {"no option --temprature", "did you mean --temperature?", "sol generate --help"});
  expect({"generate", "--temp", "0.8", "hi"}, {"did you mean --temperature?"});
  expect({"generate", "-n", "5", "one", "two"}, {"\"two\"", "quoted"});
  expect({"eval", "--zzzzzzzz"}, {"no option --zzzzzzzz\n", "sol eval --help"});
}

TEST(Usage, OnlyCommandsThatDrawAtRandomTakeASeed) {
  for (const char* command : {"generate", "eval", "sweep", "probe", "tasks"}) {
    const RunResult help = run_sol({command, "--help"});
    EXPECT_NE(help.out.find("--seed"), std::string::npos) << command << "\n" << help.out;
  }
  for (const char* command : {"serve", "logits", "calibrate", "bench"}) {
    const RunResult result = run_sol({command, "--seed", "1"});
    EXPECT_EQ(result.code, 2) << command;
    expect_error(result, {"no option --seed"});
  }
}

// An unset variable of a shell script must not pass for an option that was not given.
TEST(Usage, EmptyValuesAreErrorsThatNameTheOption) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"generate", "--fixed", "", "hi"},
           {"generate", "--fixed=", "hi"},
           {"generate", "--controller", "", "hi"},
           {"generate", "--model", "", "hi"},
           {"generate", "--stop", "", "hi"},
           {"eval", "--data", "x", "--policy", ""},
           {"eval", "--data", "x", "--schedule-out", ""},
           {"eval", "--data", "x", "--cache", ""},
           {"sweep", "--data", "x", "-o", "x", "--rho", ""},
           {"sweep", "--data", "x", "--out", ""},
           {"logits", "--ids", "x", "--prefill", "1", "--out", ""},
       }) {
    const RunResult result = run_sol(arguments);
    EXPECT_EQ(result.code, 2) << testing::PrintToString(result);
    for (const std::string& argument : arguments)
      if (argument.starts_with("--") && argument.ends_with("="))
        expect_error(result, {argument.substr(0, argument.size() - 1)});
    expect_error(result, {"must not be empty"});
  }
  EXPECT_EQ(run_sol({"generate", "-n", "1", ""}).code, 0);  // the model begins by itself
}

TEST(Usage, EmptyElementsOfListsAreErrorsThatNameTheOption) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"bench", "--batch", "1,,4"},
           {"bench", "--batch=1,"},
           {"tasks", "--tasks", ",piqa"},
           {"sweep", "--data", "x", "-o", "x", "--baselines", "fixed,,emc"},
       }) {
    const RunResult result = run_sol(arguments);
    EXPECT_EQ(result.code, 2) << testing::PrintToString(result);
    expect_error(result, {"lists an empty value"});
  }
  // Commas are nothing special elsewhere.
  EXPECT_EQ(run_sol({"generate", "-n", "1", "--stop", ",", "One,, two,"}).code, 0);
}

TEST(Usage, NumbersOutOfRangeSayTheRange) {
  const auto fails = [](const std::vector<std::string>& arguments,
                        const std::vector<std::string>& words) {
    const RunResult result = run_sol(arguments);
    EXPECT_EQ(result.code, 2) << testing::PrintToString(result);
    expect_error(result, words);
    EXPECT_LT(result.err.size(), 200u) << result.err;
  };
  fails({"generate", "--seed", "-1", "hi"}, {"--seed", "from 0 to 18446744073709551615", "-1"});
  fails({"generate", "--seed", "18446744073709551616", "hi"}, {"--seed"});
  fails({"generate", "-n", "x", "hi"}, {"--max-tokens", "from -1 to 2147483647", "\"x\""});
  fails({"generate", "-n", "4294967297", "hi"}, {"--max-tokens"});
  fails({"generate", "--top-k", "1.5", "hi"}, {"--top-k", "from 0 to 2147483647"});
  fails({"generate", "-c", "x", "--keep", "nan", "hi"}, {"--keep", "from 0 to 1"});
  fails({"eval", "--data", "x", "--blocks", "1e12"}, {"--blocks", "from 1 to"});
  fails({"generate", "--no-sinks", "--sinks", "8", "hi"}, {"--sinks"});
  expect_error(run_sol({"generate", "--horizon", "2147483647", "hi"}), {"--horizon", "2048"});
}

TEST(Usage, AnOptionThatMayBeRepeatedTakesOneValue) {
  const RunResult result = run_sol({"generate", "-n", "1", "--stop", "foo", "The house"});
  EXPECT_EQ(result.code, 0) << testing::PrintToString(result);
  EXPECT_NE(result.err.find("prompt     3 tokens"), std::string::npos) << result.err;
}

// Whatever is opened next must not become what the program reads from and writes to.
TEST(Usage, ClosedStandardDescriptorsAreNotReused) {
  const TemporaryDirectory dir;
  const auto shell = [&](const std::string& redirection) {
    return run_program("/bin/sh",
                       {"-c", "exec '" SOL_BINARY "' generate -n 2 Once " + redirection});
  };
  EXPECT_EQ(shell("<&-").code, 0);
  EXPECT_EQ(shell("2>&-").code, 0);
  EXPECT_EQ(shell("<&- 2>&-").code, 0);
  expect_error(shell(">&-"), {"standard output", "Bad file descriptor"});
  EXPECT_EQ(shell("<&- >&- 2>&-").code, 1);
}

TEST(Usage, SignalsShowInTheExitStatus) {
  for (const int number : {SIGINT, SIGTERM}) {
    const RunResult result = run_sol({"generate", "-n", "100000", "--ignore-end", "Once"},
                                     {.interrupt_when = " ", .interrupt_signal = number});
    EXPECT_EQ(result.code, 128 + number) << testing::PrintToString(result);
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
