// What processes that train together must agree on, and how they come to.
#pragma once

#include "base/json.h"
#include "policy/network.h"
#include "training/checkpoint.h"
#include "training/process_group.h"

namespace sol {

// Throws Error naming the rank and the first field that differs: all must train the same model on
// the same data with the same configuration.
void require_same_on_all_ranks(const Json& identity, ProcessGroup& group);

// Throws Error when processes no longer hold the same policy, bit for bit, as on machines whose
// arithmetic differs.
void require_same_parameters(const Parameters& parameters, ProcessGroup& group);

// Copies the leading process's state to all. `parameters` has the names and shapes.
void broadcast_state(TrainingState& state, const Parameters& parameters, ProcessGroup& group);

double largest(double mine, ProcessGroup& group);

}  // namespace sol
