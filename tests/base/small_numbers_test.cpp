#include "base/small_numbers.h"

#include <gtest/gtest.h>

namespace sol {
namespace {

TEST(SmallNumbers, AreCutToTwoDigitsAndStringsStay) {
  EXPECT_EQ(with_small_numbers("[12345.6789e-400, 1, 12]"), "[12.67e-40, 1, 12]");
  EXPECT_EQ(with_small_numbers(R"({"a1234": "5678\"9012", "b": 3456})"),
            R"({"a1234": "5678\"9012", "b": 34})");
  EXPECT_EQ(with_small_numbers(R"(["", 123])"), R"(["", 12])");
  // What is malformed stays so.
  EXPECT_EQ(with_small_numbers("[0123, 123e]"), "[01, 12e]");
  EXPECT_EQ(with_small_numbers("[\"1234"), "[\"1234");
  EXPECT_EQ(with_small_numbers("\"1234\\"), "\"1234\\");
  EXPECT_EQ(with_small_numbers(""), "");
}

}  // namespace
}  // namespace sol
