// Requests that are wrong, too large or odd, and what the documentation says they get.
#pragma once

#include "serve_load/report.h"
#include "serve_load/tested_server.h"

namespace sol::load {

// Sends each once, one after another, and checks the answers. `large`: also those that keep the
// server busy for a while.
void send_bad_requests(const TestedServer& server, Report& report, bool large);

}  // namespace sol::load
