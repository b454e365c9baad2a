// What the library throws when a caller's file, request or machine is at fault.
#pragma once

#include <stdexcept>
#include <string>

namespace sol {

// A message says what was wrong, where (file, tensor, line), and what to do. The library never
// prints and never exits: whoever calls it decides what becomes of an Error.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(printable(message)) {}

 private:
  // Names from files may hold anything: a zero byte would end the message, and an escape would be
  // obeyed by the terminal.
  static std::string printable(const std::string& message) {
    std::string text;
    for (const char c : message) {
      const bool control = (c >= 0 && c < ' ' && c != '\n' && c != '\t') || c == 0x7f;
      if (control) {
        constexpr const char* digits = "0123456789abcdef";
        text += {'\\', 'x', digits[c >> 4], digits[c & 15]};
      } else {
        text += c;
      }
    }
    return text;
  }
};

// Thrown by long calls whose stop token was triggered. Nothing is lost: the callee has left its
// objects in a valid state.
class Cancelled : public Error {
 public:
  Cancelled() : Error("cancelled") {}
};

}  // namespace sol
