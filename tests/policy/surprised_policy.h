// A policy that spends on tokens that were surprising, and remembers what it was shown.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sol/policy.h"

namespace sol::test {

class SurprisedPolicy final : public Policy {
 public:
  SurprisedPolicy(ActionSpace space, float threshold)
      : space_(std::move(space)), threshold_(threshold) {}
  std::string name() const override { return "surprised"; }
  const ActionSpace& space() const override { return space_; }
  Needs needs() const override { return {.surprisal = true}; }
  std::unique_ptr<PolicyState> begin(const Budget&, int, const EpisodeId&) const override {
    return std::make_unique<PolicyState>();
  }
  void next(std::span<PolicyStep> steps) const override {
    for (PolicyStep& step : steps) {
      seen.push_back(step.observation->surprisal);
      step.action = seen.back() > threshold_ ? space_.dense_index() : 0;
    }
  }

  mutable std::vector<float> seen;

 private:
  ActionSpace space_;
  float threshold_;
};

}  // namespace sol::test
