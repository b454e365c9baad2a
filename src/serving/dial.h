// The dial: the object "sol" of a request, and what it means for this server (docs/http-api.md).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "serving/request_fields.h"
#include "serving/served_model.h"

namespace sol {

// As the request says it.
struct Dial {
  enum class Policy { unsaid, learned, fixed };
  std::optional<double> net_keep;           // "budget"
  std::optional<double> keep, prune, bits;  // per axis
  std::optional<double> ms_per_token;
  std::optional<Action> action;  // "fixed"
  Policy policy = Policy::unsaid;
  bool actions = false;  // of every token, in the response
  bool decode_scoring = false;
  int scored_from = 1;

  bool dense() const { return !net_keep && !keep && !prune && !bits && !ms_per_token && !action; }
};

// Reads "sol" and "reasoning_effort" of a request. Throws ApiError for a field that is unknown, of
// another type, out of range, or one too many.
Dial read_dial(RequestFields& request, const ServedModel& served);

// Who picks the actions, and at which averages.
struct ResolvedDial {
  std::shared_ptr<const Policy> policy;
  Budget budget;  // of the first episode where a time is asked for
  std::optional<double> ms_per_token;
  Json requested;       // for the response
  std::string outside;  // a sentence, where the budget lies outside the trained ranges
};

// Throws ApiError for what this server cannot do: no controller, no cost table, a rate outside the
// frontier.
ResolvedDial resolve_dial(const Dial& dial, const ServedModel& served);

// {"keep", "prune", "bits", "net"}
Json budget_json(const Budget& budget, const ServedModel& served);

}  // namespace sol
