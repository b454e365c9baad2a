// One decode step's efficiency action and a budget, the two words everything else is built on.
#pragma once

#include <string>
#include <string_view>

namespace sol {

// How much of the frozen model one decode step computes (paper, "Actions and controlled compute").
struct Action {
  float kappa = 1.0f;  // share of the cached tokens attended to, (0, 1]
  float rho = 1.0f;    // share of the MLP's input channels used, (0, 1]
  int bits = 16;       // activation bits of the MLP's output, 2..16; 16 leaves it alone

  float eta() const { return static_cast<float>(bits) / 16.0f; }  // normalised precision
  bool dense() const { return kappa >= 1.0f && rho >= 1.0f && bits >= 16; }
  bool operator==(const Action&) const = default;
};

// Averages over an episode's effective steps, requested or realised: (C_kappa, C_rho, C_eta).
struct Budget {
  float kappa = 1.0f;
  float rho = 1.0f;
  float eta = 1.0f;
  bool operator==(const Budget&) const = default;
};

// "k050-s070-q8" for {0.50, 0.70, 8}: percentages with three digits, decimals where needed
// ("k012.5-s100-q16").
std::string to_string(const Action& action);

// A share in percent, as to_string writes it: the shortest decimal that gives the share back, with
// at least `digits` before its point ("7", "007", "012.5").
std::string percentage(float share, int digits = 1);

// Inverse of to_string. Throws Error naming the faulty part: shares must lie in (0, 1], bits in
// 2..16.
Action parse_action(std::string_view text);

}  // namespace sol
