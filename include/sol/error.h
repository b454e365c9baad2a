// What the library throws when a caller's file, request or machine is at fault.
#pragma once

#include <stdexcept>
#include <string>

namespace sol {

// A message says what was wrong, where (file, tensor, line), and what to do. The library never
// prints and never exits: whoever calls it decides what becomes of an Error.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

// Thrown by long calls whose stop token was triggered. Nothing is lost: the callee has left its
// objects in a valid state.
class Cancelled : public Error {
 public:
  Cancelled() : Error("cancelled") {}
};

}  // namespace sol
