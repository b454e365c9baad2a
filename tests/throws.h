// EXPECT_THAT([&] { call(); }, throws({"part", "part"})): an Error whose message has every part.
#pragma once

#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <vector>

#include "sol/error.h"

namespace sol::test {

class ThrowsMatcher {
 public:
  using is_gtest_matcher = void;
  explicit ThrowsMatcher(std::vector<std::string> parts) : parts_(std::move(parts)) {}

  template <typename Call>
  bool MatchAndExplain(Call&& call, std::ostream* explanation) const {
    try {
      call();
    } catch (const Error& error) {
      const std::string message = error.what();
      if (explanation) *explanation << "which throws \"" << message << "\"";
      for (const std::string& part : parts_)
        if (message.find(part) == std::string::npos) return false;
      return true;
    }
    if (explanation) *explanation << "which does not throw";
    return false;
  }
  void DescribeTo(std::ostream* out) const {
    *out << "throws an Error whose message has";
    for (const std::string& part : parts_) *out << " \"" << part << "\"";
  }
  void DescribeNegationTo(std::ostream* out) const { *out << "does not throw such an Error"; }

 private:
  std::vector<std::string> parts_;
};

inline ThrowsMatcher throws(std::vector<std::string> parts) {
  return ThrowsMatcher(std::move(parts));
}

}  // namespace sol::test
