// Clients that are slow, rude, broken or too many.
#pragma once

#include "serve_load/report.h"
#include "serve_load/tested_server.h"

namespace sol::load {

// All kinds at once, for so many seconds: slow and stalled readers, disconnects in streams and
// prompts, requests that are never sent whole, malformed and oversized ones, and a flood beyond the
// queue, while somebody looks after /health and /metrics. Returns when the last of them has gone.
void run_hostile_clients(TestedServer& server, Report& report, double seconds, uint64_t seed);

}  // namespace sol::load
