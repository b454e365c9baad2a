// Budgets as JSON, {"kappa": 0.5, "rho": 0.7, "eta": 0.5}, and action spaces in the reference's
// notation:
// {"keep": [0.1, 1.0], "prune": ["s60", "s100"], "quant": ["q5", "q16"]}.
#pragma once

#include <string>

#include "base/json.h"
#include "sol/action_space.h"

namespace sol {

Json action_space_to_json(const ActionSpace& space);

// Inverse of the above. Throws Error naming `where` (the document) and what is wrong.
ActionSpace action_space_from_json(const Json& json, const std::string& where);

Json budget_to_json(const Budget& budget);
Budget budget_from_json(const Json& json, const std::string& where);

// The shortest decimal that reads back as the same float: 0.1, not 0.10000000149011612.
double shortest_decimal(float x);

}  // namespace sol
