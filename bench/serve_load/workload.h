// Requests as many different people would send them.
#pragma once

#include "base/random.h"
#include "serve_load/client.h"
#include "serve_load/tested_server.h"

namespace sol::load {

class Workload {
 public:
  // `server` must outlive it.
  explicit Workload(const TestedServer& server) : server_(server) {}

  // One that the server must answer completely: any budget, action or time that it offers, any
  // length, streamed or not. `timed`: also those that ask for a time, whose results depend on the
  // machine.
  Request draw(Random& random, bool timed = true) const;

  // A dense stream of exactly so many tokens.
  Request dense_stream(Random& random, int tokens) const;
  // A text of so many words.
  std::string words(Random& random, int count) const;
  // Token ids that no other request begins with.
  Json ids(Random& random, int count) const;

 private:
  Json dial(Random& random, bool timed, std::string& kind) const;
  void add_prompt(Random& random, Request& request) const;
  void add_options(Random& random, Request& request) const;

  const TestedServer& server_;
};

}  // namespace sol::load
