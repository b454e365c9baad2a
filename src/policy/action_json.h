// Budgets as JSON, {"kappa": 0.5, "rho": 0.7, "eta": 0.5}, action spaces in the reference's
// notation, {"keep": [0.1, 1.0], "prune": ["s60", "s100"], "quant": ["q5", "q16"]}, and how pages
// are chosen.
#pragma once

#include <string>

#include "base/json.h"
#include "sol/action_space.h"
#include "sol/frozen_model.h"

namespace sol {

Json action_space_to_json(const ActionSpace& space);

// Inverse of the above. Throws Error naming `where` (the document) and what is wrong.
ActionSpace action_space_from_json(const Json& json, const std::string& where);

Json budget_to_json(const Budget& budget);
Budget budget_from_json(const Json& json, const std::string& where);

// {"page_size": 4, "sinks": 4, "window": 2, "force_sinks": true}.
Json to_json(const SequenceOptions& sequence);

// The shortest decimal that reads back as the same float: 0.1, not 0.10000000149011612.
double shortest_decimal(float x);

}  // namespace sol
