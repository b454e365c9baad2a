// Stop strings in streamed text, which may begin in one piece and end in another.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sol {

class StopStrings {
 public:
  // Throws Error for an empty stop string.
  explicit StopStrings(std::vector<std::string> stops);

  // Takes the next piece of text and returns what may be shown: all that surely precedes a stop
  // string. Empty once one was met; the stop string itself is never returned.
  std::string push(std::string_view piece);
  // What was held back when the text ended without a stop string.
  std::string finish();

  bool met() const { return met_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;  // not yet shown: it may be the beginning of a stop string
  bool met_ = false;
};

}  // namespace sol
