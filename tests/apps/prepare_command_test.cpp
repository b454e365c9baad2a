// sol prepare.
#include <fstream>

#include "run_program.h"

namespace sol::test {
namespace {

namespace fs = std::filesystem;

class PrepareCommand : public testing::Test {
 protected:
  PrepareCommand() {
    fs::create_directories(corpus / "deep");
    write("a.jsonl", 0);
    write("deep/b.jsonl", 300);
  }
  void write(const std::string& name, int first) {
    std::ofstream file(corpus / name);
    for (int i = first; i < first + 300; ++i)
      file << "{\"text\": \"In the year " << 1000 + i << " there were " << i * i << " houses.\"}\n";
  }
  RunResult prepare(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"prepare", corpus.string(), "-o", out.string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_sol(arguments);
  }

  RunResult prepare_until(const std::string& seen) const {
    return run_sol(
        {"prepare", corpus.string(), "-o", out.string(), "--shuffle-buffer", "1", "--threads", "1"},
        {.interrupt_when = seen});
  }

  TemporaryDirectory dir;
  fs::path corpus = dir.path() / "corpus", out = dir.path() / "ids";
};

TEST_F(PrepareCommand, SaysWhatItWrote) {
  const RunResult first = prepare();
  ASSERT_EQ(first.code, 0) << testing::PrintToString(first);
  EXPECT_NE(first.out.find("1 shard, "), std::string::npos) << first.out;
  EXPECT_NE(first.out.find("tokens of 600 documents"), std::string::npos) << first.out;
  EXPECT_NE(first.err.find("tokens/s"), std::string::npos) << first.err;
  EXPECT_TRUE(fs::exists(out / "00000.ids"));
  const RunResult second = prepare();
  EXPECT_EQ(second.code, 0);
  EXPECT_NE(second.out.find("checksums are right"), std::string::npos) << second.out;
  EXPECT_EQ(second.err, "");
}

TEST_F(PrepareCommand, BadLinesAreErrorsUnlessSkipped) {
  std::ofstream(corpus / "a.jsonl", std::ios::app) << "{\"txt\": 1}\n";
  expect_error(prepare(), {"a.jsonl, line 301", "\"text\"", "sol prepare --skip-bad-lines"});
  const RunResult skipped = prepare({"--skip-bad-lines"});
  ASSERT_EQ(skipped.code, 0) << testing::PrintToString(skipped);
  EXPECT_NE(skipped.err.find("1 bad line was left out; the first: "), std::string::npos);
  EXPECT_NE(skipped.err.find("a.jsonl, line 301"), std::string::npos) << skipped.err;
}

TEST_F(PrepareCommand, WhoInterruptsItIsToldHowItGoesOn) {
  for (int i = 0; i < 300; ++i) write(std::to_string(i) + ".jsonl", i);
  const RunResult stopped = prepare_until("tokenising");
  EXPECT_EQ(stopped.code, 130) << testing::PrintToString(stopped);
  EXPECT_NE(stopped.err.find("the same command goes on"), std::string::npos) << stopped.err;
  const RunResult again = prepare({"--shuffle-buffer", "1"});
  EXPECT_EQ(again.code, 0) << testing::PrintToString(again);
}

TEST_F(PrepareCommand, WithoutEnoughMemoryItSaysWhatToLower) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer needs more addresses than this leaves";
#endif
  // 512 lines of a MiB, which take no disk but for their ends.
  constexpr std::streamoff mib = 1 << 20, lines = 512;
  std::ofstream large(corpus / "large.jsonl", std::ios::binary);
  for (std::streamoff i = 1; i <= lines; ++i) large.seekp(i * mib - 1).put('\n');
  large.close();
  const RunResult result = run_sol({"prepare", corpus.string(), "-o", out.string(), "--threads",
                                    "1", "--shuffle-buffer", "1024"},
                                   {.address_limit = 400 << 20});
  expect_error(result, {"out of memory; lower --shuffle-buffer (it is 1024 MiB", "--threads (1)"});
}

TEST_F(PrepareCommand, BadInputIsNamed) {
  expect_error(prepare({"--shuffle-buffer", "0"}), {"--shuffle-buffer"});
  for (const char* seed : {"-1", "18446744073709551616", "1.5", "x"})
    expect_error(prepare({"--seed", seed}), {"--seed", "from 0 to 18446744073709551615", seed});
  for (const char* mib : {"-1", "1048577", "18446744073709551617"})
    expect_error(prepare({"--shuffle-buffer", mib}), {"--shuffle-buffer", "from 1 to 1048576"});
  expect_error(prepare({"--text-field", "body"}), {"\"body\""});
  out = corpus;
  expect_error(prepare(), {"corpus", "holds other files", "a directory of its own"});
  EXPECT_FALSE(fs::exists(corpus / "manifest.json"));
  corpus = dir.path() / "none";
  expect_error(prepare(), {"none", "no such directory"});
}

}  // namespace
}  // namespace sol::test
