// Expected values as Python 3 gives them.
#include "model/python_text.h"

#include <gtest/gtest.h>

namespace sol {
namespace {

TEST(PythonText, StripsWhatPythonStrips) {
  EXPECT_EQ(strip(" \t\n\u00A0\u2003x y\u3000\x1C "), "x y");
  EXPECT_EQ(strip("\u200Bx\u200B"), "\u200Bx\u200B");  // zero width space is none
  EXPECT_EQ(left_strip("  x "), "x ");
  EXPECT_EQ(right_strip("  x "), "  x");
  EXPECT_EQ(strip(" \n "), "");
  EXPECT_EQ(left_strip("\n\nab\n", "\n"), "ab\n");
  EXPECT_EQ(right_strip("x\u00E9e\u00E9", "\u00E9"), "x\u00E9e");
  EXPECT_EQ(strip("\xFF \xFF"), "\xFF \xFF");
  EXPECT_EQ(strip("\x85x\xA0"), "\x85x\xA0");  // lone bytes are no characters
}

TEST(PythonText, Replaces) {
  EXPECT_EQ(replace_text("aaa", "aa", "b"), "ba");
  EXPECT_EQ(replace_text("abc", "x", "y"), "abc");
}

TEST(PythonText, Cases) {
  EXPECT_EQ(capitalised("then YOU \u00C9T\u00C9"), "Then you \u00E9t\u00E9");
  EXPECT_EQ(capitalised("\u00E9A"), "\u00C9a");
  EXPECT_EQ(capitalised(""), "");
  EXPECT_EQ(upper_case("a\u00E9z1"), "A\u00C9Z1");
  EXPECT_EQ(lower_case("A\u00C9Z1"), "a\u00E9z1");
  EXPECT_EQ(title_case("they're BILL's 2nd"), "They'Re Bill'S 2Nd");
}

TEST(PythonText, Counts) {
  EXPECT_EQ(code_points("a\u00E9\U0001F600"), 3u);
  EXPECT_EQ(code_points("a\xFF"), 2u);
  EXPECT_EQ(split_by_space_count(""), 1u);
  EXPECT_EQ(split_by_space_count("a b"), 2u);
  EXPECT_EQ(split_by_space_count(" a \n b "), 4u);
}

}  // namespace
}  // namespace sol
