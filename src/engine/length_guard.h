// What keeps a pass that fails from leaving sequences longer than they were.
#pragma once

#include <utility>
#include <vector>

namespace sol {

// Takes sequences back to the lengths they had, unless the pass that lengthens them succeeds.
template <typename EngineSequence>
class LengthGuard {
 public:
  LengthGuard() = default;
  LengthGuard(const LengthGuard&) = delete;
  LengthGuard& operator=(const LengthGuard&) = delete;
  ~LengthGuard() {
    for (const auto& [sequence, length] : lengths_) sequence->truncate(length);
  }
  void remember(EngineSequence& sequence) { lengths_.emplace_back(&sequence, sequence.length()); }
  void keep() { lengths_.clear(); }

 private:
  std::vector<std::pair<EngineSequence*, int>> lengths_;
};

}  // namespace sol
