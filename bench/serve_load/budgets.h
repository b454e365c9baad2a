// Whether realised budgets are those that were asked for.
#pragma once

#include <string>
#include <vector>

#include "serve_load/population.h"
#include "serve_load/report.h"

namespace sol::load {

// Tokens of an answer whose averages are judged.
inline constexpr int shortest_judged = 64;

struct Share {
  int met = 0, of = 0;
  void add(bool good) {
    ++of;
    if (good) ++met;
  }
  double value() const { return of > 0 ? static_cast<double>(met) / of : 0; }
  std::string text() const;
  Json to_json() const { return {{"met", met}, {"of", of}}; }
};

// Of the answers long enough: a net rate that was asked for must be realised within 0.05, and so
// must every axis where shares were asked for (bits as shares of 16).
void judge_budgets(const std::vector<ServedRequest>& all, Report& report);

}  // namespace sol::load
