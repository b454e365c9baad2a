// A well-behaved client of the completion interfaces: sends a request and takes down all of the
// answer, with times.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/stopwatch.h"

namespace sol::load {

struct Request {
  std::string path = "/v1/completions";
  Json body;
  std::string kind;  // for tables: dense, budget, ...

  bool streamed() const { return body.value("stream", false); }
};

struct ChoiceAnswer {
  std::string text;
  Json finish_reason;  // null until it ended
  Json sol;            // of its end
  Json actions = Json::array();
  Json tokens = Json::array();  // of its log-probabilities, where asked for
};

struct Answer {
  int status = 0;             // 0: none came
  std::string failure;        // of the connection; empty: none
  bool disconnected = false;  // by us
  int retry_after = 0;
  Json error;  // the object, from the body or from an event
  std::vector<ChoiceAnswer> choices;
  Json usage;
  bool done = false;                   // [DONE] came, last
  std::vector<std::string> malformed;  // what the interface does not allow
  int events = 0;                      // with choices
  // From the moment of sending.
  double seconds = 0, first_event = 0, last_event = 0;

  bool complete() const { return status == 200 && error.is_null() && failure.empty(); }
};

struct ClientHooks {
  // After each piece of a stream; false: disconnect.
  std::function<bool(const Answer&)> on_piece = {};
  int receive_buffer = 0;  // bytes of the socket's buffer; 0: the system's choice
  // Events are only kept while they come, and read at the end: where rates are measured, reading
  // them would take the processor from the server. Not with `on_piece`.
  bool read_late = false;
};

// Sends it to the server on this port of the loopback address. Never throws for what the server
// does: whatever it is stands in the answer.
Answer send(int port, const Request& request, const ClientHooks& hooks = {});

struct Fetched {
  int status = 0;  // 0: no answer
  std::string body;
};
Fetched fetch(int port, const std::string& path);

}  // namespace sol::load
