#include "base/number_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace sol {
namespace {

TEST(NumberText, IsTheWholeTextOrNothing) {
  EXPECT_EQ(parse_number<double>("0.25"), 0.25);
  EXPECT_EQ(parse_number<double>("-1e3"), -1000.0);
  EXPECT_EQ(parse_number<int>("-7"), -7);
  EXPECT_EQ(parse_number<uint64_t>("18446744073709551615"), UINT64_MAX);
  for (const char* text : {"", " ", " 1", "1 ", "1x", "x", "0x1p-1", "1,2", "+1", "--1"})
    EXPECT_EQ(parse_number<double>(text), std::nullopt) << text;
  EXPECT_EQ(parse_number<int>("1.5"), std::nullopt);
  EXPECT_EQ(parse_number<int>("99999999999"), std::nullopt);
  EXPECT_EQ(parse_number<uint64_t>("-1"), std::nullopt);
  EXPECT_TRUE(std::isinf(parse_number<double>("inf").value()));
}

}  // namespace
}  // namespace sol
