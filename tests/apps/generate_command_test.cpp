// sol generate on the embedded model.
#include <filesystem>
#include <fstream>

#include "../model/tokenizer_files.h"
#include "made_controller.h"

namespace sol::test {
namespace {

const std::vector<std::string> greedy{"generate", "-n", "24", "--precision", "f32"};

std::vector<std::string> with(std::vector<std::string> arguments,
                              const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

const std::string prompt = "The old man looked out of the window and";

TEST(GenerateCommand, WritesTextToStandardOutputAndFiguresToStandardError) {
  const RunResult result = run_sol(with(greedy, {prompt}));
  ASSERT_EQ(result.code, 0) << testing::PrintToString(result);
  EXPECT_GT(result.out.size(), 40u);
  EXPECT_EQ(result.out.back(), '\n');
  EXPECT_EQ(result.out.find("tokens/s"), std::string::npos);
  for (const char* word : {"generated  24 tokens", "token limit", "tokens/s", "GB/s", "realised",
                           "attended   100.0 %", "policy", "refresh"})
    EXPECT_NE(result.err.find(word), std::string::npos) << word << " in " << result.err;
  EXPECT_EQ(result.err.find('\x1b'), std::string::npos);  // not a terminal: no escapes
  // The embedded model writes English: these words make up a third of any such text.
  int known = 0;
  for (const char* word :
       {" the ", " of ", " and ", " to ", " a ", " was ", " in ", " had ", " he ", " it "})
    known += result.out.find(word) != std::string::npos;
  EXPECT_GE(known, 2) << result.out;
}

TEST(GenerateCommand, ThePromptMayComeFromStandardInput) {
  EXPECT_EQ(run_sol(greedy, {.input = prompt}).out, run_sol(with(greedy, {prompt})).out);
}

TEST(GenerateCommand, TheSeedDecidesWhatIsSampled) {
  const auto sampled = [](const char* seed, const char* threads) {
    return run_sol(with(greedy, {"--temperature", "0.9", "--top-p", "0.95", "--top-k", "200",
                                 "--deterministic", "--seed", seed, "--threads", threads, prompt}))
        .out;
  };
  const std::string first = sampled("1", "1");
  EXPECT_EQ(sampled("1", "2"), first);
  EXPECT_NE(sampled("2", "1"), first);
}

// Random weights choose among 320 ids, of which the tokenizer knows eight.
TEST(GenerateCommand, IdsBeyondTheTokenizerAreNoText) {
  const TemporaryDirectory dir;
  for (const char* name : {"config.json", "model.safetensors"})
    std::filesystem::copy_file(test_data() / "golden/tiny_tied_f32" / name, dir.path() / name);
  std::ofstream(dir.path() / "tokenizer.json") << small_tokenizer();
  const auto result = run_sol({"generate", "-m", dir.path().string(), "-n", "40", "abc"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_LT(result.out.size(), 40u) << result.out;
  EXPECT_NE(result.err.find("40 tokens"), std::string::npos) << result.err;
}

TEST(GenerateCommand, EndsBeforeAStopString) {
  const std::string text = run_sol(with(greedy, {prompt})).out;
  // A piece that certainly spans tokens: the last letters of one word and the first of the next.
  const size_t space = text.find(' ', 12);
  ASSERT_NE(space, std::string::npos);
  const std::string stop = text.substr(space - 1, 3);
  const RunResult result = run_sol(with(greedy, {"--stop", "never there", "--stop", stop, prompt}));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, text.substr(0, text.find(stop)) + "\n");
  EXPECT_NE(result.err.find("(stopped)"), std::string::npos) << result.err;
  // The last token that is allowed completes this one.
  const RunResult last = run_sol(with(greedy, {"--stop", text.substr(1, text.size() - 2), prompt}));
  EXPECT_EQ(last.out, text.substr(0, 1) + "\n");
  EXPECT_NE(last.err.find("generated  24 tokens"), std::string::npos) << last.err;
  EXPECT_NE(last.err.find("(stopped)"), std::string::npos) << last.err;
}

TEST(GenerateCommand, AFixedActionChangesTheTextAndIsReported) {
  const RunResult dense = run_sol(with(greedy, {prompt}));
  const RunResult fixed = run_sol(with(greedy, {"--fixed", "k010-s030-q4", prompt}));
  ASSERT_EQ(fixed.code, 0) << fixed.err;
  EXPECT_NE(fixed.out, dense.out);
  EXPECT_NE(fixed.err.find("realised   keep 0.100  prune 0.300  bits 4.00"), std::string::npos)
      << fixed.err;
  EXPECT_NE(fixed.err.find("(1 refreshes)"), std::string::npos) << fixed.err;
  const RunResult off =
      run_sol(with(greedy, {"--fixed", "k010-s030-q4", "--refresh", "off", prompt}));
  EXPECT_NE(off.err.find("(0 refreshes)"), std::string::npos) << off.err;
  const RunResult often =
      run_sol(with(greedy, {"--fixed", "k010-s030-q4", "--horizon", "4", prompt}));
  EXPECT_NE(often.err.find("(5 refreshes)"), std::string::npos) << often.err;
}

TEST(GenerateCommand, AControllerMeetsABudgetGivenEitherWay) {
  const TemporaryDirectory dir;
  made_controller(default_fingerprint()).save(dir.path() / "c");
  const auto run = [&](const std::vector<std::string>& more) {
    return run_sol(with(with(greedy, {"-c", (dir.path() / "c").string()}), with(more, {prompt})));
  };
  const RunResult triple = run({"--keep", "0.5", "--prune", "0.75", "--bits", "10"});
  ASSERT_EQ(triple.code, 0) << triple.err;
  EXPECT_NE(triple.err.find("requested  keep 0.500  prune 0.750  bits 10.00"), std::string::npos)
      << triple.err;
  EXPECT_NE(triple.err.find("realised"), std::string::npos);
  EXPECT_EQ(triple.err.find("note:"), std::string::npos) << triple.err;

  const RunResult net = run({"--budget", "0.65"});
  ASSERT_EQ(net.code, 0) << net.err;
  EXPECT_NE(net.err.find("requested  keep 0.550  prune 0.700  bits 11.20"), std::string::npos)
      << net.err;

  const RunResult outside = run({"--keep", "0.05"});
  ASSERT_EQ(outside.code, 0) << outside.err;
  EXPECT_NE(outside.err.find("note: "), std::string::npos) << outside.err;
}

TEST(GenerateCommand, AnInterruptEndsItCleanly) {
  const RunResult result =
      run_sol({"generate", "-n", "1500", "--ignore-end", "--threads", "1", prompt},
              {.interrupt_when = " "});
  // 130 as shells have it; the text so far and its figures are there.
  EXPECT_EQ(result.code, 130) << testing::PrintToString(result);
  EXPECT_NE(result.err.find("(cancelled)"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("sol: interrupted"), std::string::npos) << result.err;
}

TEST(GenerateCommand, BadRequestsAreNamed) {
  const auto fails = [&](const std::vector<std::string>& more,
                         const std::vector<std::string>& words) {
    const RunResult result = run_sol(with({"generate"}, with(more, {prompt})));
    expect_error(result, words);
    EXPECT_TRUE(result.out.empty()) << result.out;
  };
  fails({"--temperature", "-1"}, {"temperature"});
  fails({"--temperature", "nan"}, {"temperature"});
  fails({"--top-p", "1.5"}, {"top-p"});
  fails({"--top-k", "-3"}, {"top-k"});
  fails({"-n", "-7"}, {"max-tokens"});
  fails({"--stop", ""}, {"--stop"});
  fails({"--fixed", "k050-s070"}, {"k050-s070"});
  fails({"--fixed", "k000-s070-q8"}, {"k000-s070-q8"});
  fails({"--fixed", "k050-s070-q1"}, {"q1"});
  fails({"--horizon", "0"}, {"horizon"});
  fails({"-m", "/does/not/exist"}, {"/does/not/exist"});
  expect_error(run_sol({"generate", "--no-bos"}, {.input = ""}), {"prompt is empty"});
}

}  // namespace
}  // namespace sol::test
