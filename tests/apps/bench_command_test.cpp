#include <gmock/gmock.h>

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

}  // namespace
}  // namespace sol::test
