#include <gmock/gmock.h>

#include "base/file_io.h"
#include "base/json.h"
#include "run_program.h"

namespace sol::test {
namespace {

TEST(BenchCommand, UnknownShapeAndActionAreErrorsBeforeAnyMeasuring) {
  const RunResult shape = run_sol({"bench", "--shape", "llama-9b"});
  EXPECT_EQ(shape.code, 1);
  EXPECT_THAT(shape.err, testing::HasSubstr("llama-3.2-1b"));
  EXPECT_EQ(shape.out, "");
  const RunResult action = run_sol({"bench", "--shape", "small-27m", "--action", "k000-s100-q16"});
  EXPECT_EQ(action.code, 1);
  EXPECT_EQ(action.out, "");
}

TEST(BenchCommand, ShapeAndModelExcludeEachOther) {
  EXPECT_EQ(run_sol({"bench", "--shape", "small-27m", "-m", "somewhere"}).code, 2);
}

// Contexts that are measured unless asked for otherwise need not fit the model; those asked for
// must.
TEST(BenchCommand, OnlyDefaultsAreDroppedWhereTheyDoNotFit) {
  const std::vector<std::string> short_run{"bench", "--tokens", "1", "--repeats", "1", "--cached"};
  const RunResult defaults = run_sol(short_run);
  EXPECT_EQ(defaults.code, 0) << testing::PrintToString(defaults);
  EXPECT_THAT(defaults.out, testing::HasSubstr("decode"));
  std::vector<std::string> asked = short_run;
  asked.insert(asked.end(), {"--context", "4096"});
  const RunResult refused = run_sol(asked);
  EXPECT_EQ(refused.code, 1);
  EXPECT_EQ(refused.out, "");  // before anything is measured
}

TEST(BenchCommand, OutputsAreNamedOnceHoweverTheyAreWritten) {
  const TemporaryDirectory dir;
  const std::string plain = (dir.path() / "y").string();
  const std::string dotted = (dir.path() / "." / "y").string();
  const RunResult same = run_sol({"bench", "--csv", plain, "--json", dotted});
  EXPECT_EQ(same.code, 1);
  EXPECT_THAT(same.err, testing::HasSubstr("name the same file"));
  EXPECT_EQ(same.out, "");
  EXPECT_EQ(run_sol({"bench", "--ceilings-only", "--json", plain}).code, 2);
  EXPECT_FALSE(std::filesystem::exists(plain));
}

TEST(BenchCommand, KeysAndValuesThatDoNotFitAreAnError) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer needs more addresses than this leaves";
#endif
  const RunResult result =
      run_sol({"bench", "--cached", "--precision", "f32", "--prefill", "1", "--batch", "1024",
               "--context", "2000", "--repeats", "1", "--tokens", "1", "--threads", "1"},
              {.address_limit = long{9} << 30});
  EXPECT_EQ(result.code, 1) << testing::PrintToString(result);
  EXPECT_THAT(result.err, testing::HasSubstr("1024 sequences of 2000 tokens need"));
  EXPECT_THAT(result.err, testing::HasSubstr("smaller --batch or --context"));
}

TEST(BenchCommand, ResultsNameTheThreadsOfTheRun) {
  const TemporaryDirectory dir;
  const std::string json = (dir.path() / "rows.json").string();
  const RunResult result =
      run_sol({"bench", "--cached", "--prefill", "1", "--context", "8", "--repeats", "1",
               "--tokens", "1", "--threads", "2", "--with-threads", "1", "--json", json});
  ASSERT_EQ(result.code, 0) << testing::PrintToString(result);
  const Json results = read_json(json);
  EXPECT_EQ(results["rows"].size(), 2u);
  EXPECT_EQ(results["rows"][0]["threads"], 1);
  EXPECT_EQ(results["run"]["threads"], 2);
}

TEST(BenchCommand, RowsThatAreDoneAreKept) {
  const TemporaryDirectory dir;
  const std::string csv = (dir.path() / "rows.csv").string();
  const RunResult result =
      run_sol({"bench", "--cached", "--prefill", "1,2", "--context", "8", "--repeats", "100",
               "--tokens", "1000000", "--threads", "1", "--csv", csv},
              {.interrupt_when = "       2  dense"});
  EXPECT_NE(result.code, 0);
  const std::string rows = read_file(csv);
  EXPECT_THAT(rows, testing::HasSubstr("prefill,1,1,0,1,"));
  EXPECT_THAT(rows, testing::Not(testing::HasSubstr("decode")));
}

}  // namespace
}  // namespace sol::test
