// What serve_load was asked to do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sol::load {

// Of a request's body, for the server: small, so that exceeding it is cheap.
inline constexpr int body_limit_mib = 1;

struct Settings {
  std::filesystem::path sol;                // the program under test
  std::filesystem::path model, controller;  // empty: the program's own, none
  std::string mode = "load";
  double seconds = 60;
  int clients = 16;
  int batch = 16, queue = 64;  // of the server
  double request_seconds = 5;  // of the server: short, so that it is seen to give up
  int tokens = 256;            // of an answer, where a mode measures a rate
  int turns = 5;               // of a measurement; medians are reported
  int requests = 24;           // of the modes budget, latency and repeat
  double budget = 0;           // of the mode overhead; 0: the middle of what the server offers
  bool deterministic = false;  // --deterministic for the program
  bool strict = false;         // goals that are missed count as failures
  uint64_t seed = 1;
  std::vector<std::string> model_arguments;  // for `sol serve` and `sol generate`
  std::vector<std::string> serve_arguments;  // for `sol serve` only
};

}  // namespace sol::load
