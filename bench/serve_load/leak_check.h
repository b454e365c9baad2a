// Whether a server that nobody uses any more has given everything back.
#pragma once

#include <string>

#include "serve_load/report.h"
#include "serve_load/tested_server.h"

namespace sol::load {

class LeakCheck {
 public:
  // The server must be idle: its open files are what there should be again later.
  explicit LeakCheck(TestedServer& server);

  // After the last client has gone. `when`: for the table. First what is kept must explain what is
  // used; then everything that is kept is pushed out by requests that reserve the whole cache and
  // are given up, and nothing may be left.
  void run(Report& report, const std::string& when);

 private:
  bool wait_until_idle(Report& report, const std::string& when);
  void check_blocks(Report& report, const std::string& what, double most_kept);
  double push_out_prefixes();  // returns how many tokens may be kept after it

  TestedServer& server_;
  size_t files_;
};

// Clients that go away while a long prompt is computed, or waits: most of what they asked for must
// never be generated. The server must be idle.
void check_cancellation(TestedServer& server, Report& report);

}  // namespace sol::load
