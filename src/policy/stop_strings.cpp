#include "policy/stop_strings.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"

namespace sol {

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& stop : stops_)
    if (stop.empty()) fail("a stop string is empty; give it at least one character");
}

std::string StopStrings::push(std::string_view piece) {
  if (met_) return {};
  held_ += piece;
  size_t first = std::string::npos;
  for (const std::string& stop : stops_) first = std::min(first, held_.find(stop));
  if (first != std::string::npos) {
    met_ = true;
    held_.resize(first);
    return std::exchange(held_, {});
  }
  // The longest end of the text that begins a stop string must wait for more.
  size_t wait = 0;
  for (const std::string& stop : stops_) {
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > wait; --n) {
      if (held_.compare(held_.size() - n, n, stop, 0, n) == 0) wait = n;
    }
  }
  std::string shown = held_.substr(0, held_.size() - wait);
  held_.erase(0, shown.size());
  return shown;
}

std::string StopStrings::finish() {
  return met_ ? std::string{} : std::exchange(held_, {});
}

}  // namespace sol
