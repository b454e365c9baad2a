// What a server serves: a model with its tokenizer, and whatever decides how much of it is
// computed.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "model/chat_template.h"
#include "policy/cost_table.h"
#include "sol/controller.h"
#include "sol/frozen_model.h"
#include "sol/policy.h"
#include "sol/tokenizer.h"

namespace sol {

struct ServedModel {
  std::string name;  // as requests call it
  std::shared_ptr<FrozenModel> model;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat;
  std::optional<Controller> controller;
  std::string controller_name;
  std::shared_ptr<const Policy> learned;  // null without a controller
  std::shared_ptr<const Policy> fixed;    // of the same space
  std::optional<CostTable> costs;         // none: times cannot be asked for
  SequenceOptions sequence;               // page size, sinks, window: of every request
  int horizon = 16;
  int context = 0;  // tokens of prompt and answer together, at most
  bool deterministic = false;
  int64_t loaded_at = 0;                           // seconds since 1970
  std::map<std::string, double> reasoning_effort;  // net keep-rates; empty: not to be asked for

  const ActionSpace& space() const { return fixed->space(); }
};

// Who picks the actions, the page rule and the horizon: a controller's (the features depend on
// sinks and window, and the policy was trained with these pages), or the fixed policy alone.
void use_controller(ServedModel& served, Controller controller, const std::string& name);
void use_fixed_policy(ServedModel& served, const SequenceOptions& sequence, int horizon);

// The levels that a server without a controller mixes: the paper's ranges in even steps.
ActionSpace default_space();

// Net keep-rates that may be asked of a policy: the frontier's ends, or of the axes' lowest levels.
// None of a learned policy without a frontier, as one for times is.
struct NetRange {
  double low = 1.0, high = 1.0;
};
std::optional<NetRange> net_range(const ServedModel& served, bool learned);

// Average shares that may be asked for: from the lowest level (or the lowest that the controller
// was trained for) of each axis.
Budget lowest_budget(const ServedModel& served);

}  // namespace sol
