// Ordinary clients, each sending one request after another, and what became of them.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "serve_load/report.h"
#include "serve_load/workload.h"

namespace sol::load {

struct ServedRequest {
  std::string kind;
  int tokens = 0;  // of all its choices
  int sequences = 0;
  double first_token_ms = 0;   // as the client saw it; 0 where it was not streamed
  double token_ms = 0;         // from the second token on, likewise
  double server_token_ms = 0;  // as the server says
  std::vector<Json> ends;      // "sol" of its choices
};

// Of a complete answer.
ServedRequest take_down(const Request& request, const Answer& answer);

struct Population {
  double seconds = 0;
  int refused = 0;  // with 429
  std::vector<ServedRequest> served;

  int64_t tokens() const;
  // One line of the table of rates; its header.
  std::string line(const std::string& name) const;
  static std::string header();
  Json to_json() const;
};

// `clients` of them for so many seconds, or until `stop`; the requests under way are awaited. Each
// answer is checked.
Population run_population(const TestedServer& server, const Workload& workload, Report& report,
                          int clients, double seconds, uint64_t seed, std::stop_token stop = {});

}  // namespace sol::load
