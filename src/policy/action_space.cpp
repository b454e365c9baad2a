#include "sol/action_space.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/fail.h"
#include "policy/axis.h"

namespace sol {
namespace {

// Larger spaces are a mistake in a configuration: the paper's largest has 1560 actions.
constexpr int64_t max_actions = 1 << 20;

void check_shares(const std::vector<float>& levels, const char* axis) {
  if (levels.empty()) fail("action space: axis {} has no level; give at least one", axis);
  for (size_t i = 0; i < levels.size(); ++i) {
    if (!(levels[i] > 0.0f && levels[i] <= 1.0f))
      fail("action space: {} level {} must be more than 0 and at most 1", axis, levels[i]);
    if (i > 0 && levels[i] == levels[i - 1])
      fail("action space: {} level {} is given twice", axis, levels[i]);
    if (i > 0 && levels[i] < levels[i - 1])
      fail("action space: {} levels must ascend, but {} follows {}", axis, levels[i],
           levels[i - 1]);
  }
}

void check_bits(const std::vector<int>& levels) {
  if (levels.empty()) fail("action space: axis bits has no level; give at least one");
  for (size_t i = 0; i < levels.size(); ++i) {
    if (levels[i] < 2 || levels[i] > 16)
      fail("action space: {} bits: must be from 2 to 16", levels[i]);
    if (i > 0 && levels[i] == levels[i - 1])
      fail("action space: {} bits are given twice", levels[i]);
    if (i > 0 && levels[i] < levels[i - 1])
      fail("action space: bits must ascend, but {} follows {}", levels[i], levels[i - 1]);
  }
}

// The number of a level's name: 60 for "s60".
double level_number(const std::string& text, char letter, const char* example) {
  double number = 0;
  const char* end = text.data() + text.size();
  if (text.size() >= 2 && text[0] == letter) {
    const auto [stop, error] =
        std::from_chars(text.data() + 1, end, number, std::chars_format::fixed);
    if (error == std::errc() && stop == end) return number;
  }
  fail("action space: \"{}\" is not a level of this axis; write it as in \"{}\"", text, example);
}

// A level as it is kept, in single precision; `text` is how it was written.
float share_level(double share, const std::string& text, const char* axis) {
  if (!(share > 0.0 && share <= 1.0))
    fail("action space: {} level {} must be more than 0 and at most 1", axis, text);
  constexpr float least = std::numeric_limits<float>::min();
  if (share < static_cast<double>(least))
    fail("action space: {} level {} is smaller than a share can be, {}", axis, text, least);
  return static_cast<float>(share);
}

// Sorts levels by value; two names of one value are an error that tells both.
template <typename T>
std::vector<T> sorted_levels(std::vector<std::pair<T, std::string>> named, const char* axis) {
  std::stable_sort(named.begin(), named.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<T> levels;
  for (size_t i = 0; i < named.size(); ++i) {
    if (i > 0 && named[i].first == named[i - 1].first)
      fail("action space: {} levels \"{}\" and \"{}\" are the same; remove one of them", axis,
           named[i - 1].second, named[i].second);
    levels.push_back(named[i].first);
  }
  return levels;
}

}  // namespace

ActionSpace::ActionSpace(std::vector<float> kappa, std::vector<float> rho, std::vector<int> bits)
    : kappa_(std::move(kappa)), rho_(std::move(rho)), bits_(std::move(bits)) {
  check_shares(kappa_, "kappa");
  check_shares(rho_, "rho");
  check_bits(bits_);
  const double actions = static_cast<double>(kappa_.size()) * static_cast<double>(rho_.size()) *
                         static_cast<double>(bits_.size());
  if (actions > static_cast<double>(max_actions))
    fail("action space: {} x {} x {} levels are more than {} actions", kappa_.size(), rho_.size(),
         bits_.size(), max_actions);
}

ActionSpace ActionSpace::from_notation(const std::vector<double>& keep,
                                       const std::vector<std::string>& prune,
                                       const std::vector<std::string>& quant) {
  std::vector<std::pair<float, std::string>> kappa, rho;
  std::vector<std::pair<int, std::string>> bits;
  for (const double share : keep) {
    const std::string text = fmt::format("{}", share);
    kappa.emplace_back(share_level(share, text, "kappa"), text);
  }
  for (const std::string& text : prune)
    rho.emplace_back(share_level(level_number(text, 's', "s60") / 100.0, text, "rho"), text);
  for (const std::string& text : quant) {
    const double number = level_number(text, 'q', "q5");
    if (number != std::floor(number) || number < 2 || number > 16)
      fail("action space: \"{}\" must be a whole number of bits from 2 to 16", text);
    bits.emplace_back(static_cast<int>(number), text);
  }
  return ActionSpace(sorted_levels(std::move(kappa), "kappa"), sorted_levels(std::move(rho), "rho"),
                     sorted_levels(std::move(bits), "bits"));
}

int ActionSpace::size() const {
  return static_cast<int>(kappa_.size() * rho_.size() * bits_.size());
}

Action ActionSpace::action(int index) const {
  if (index < 0 || index >= size())
    fail("action space: index {} is outside 0..{}", index, size() - 1);
  const auto i = static_cast<size_t>(index);
  return {kappa_[i / (rho_.size() * bits_.size())], rho_[i / bits_.size() % rho_.size()],
          bits_[i % bits_.size()]};
}

int ActionSpace::index(const Action& action) const {
  const auto k = std::lower_bound(kappa_.begin(), kappa_.end(), action.kappa);
  const auto r = std::lower_bound(rho_.begin(), rho_.end(), action.rho);
  const auto q = std::lower_bound(bits_.begin(), bits_.end(), action.bits);
  if (k == kappa_.end() || *k != action.kappa || r == rho_.end() || *r != action.rho ||
      q == bits_.end() || *q != action.bits)
    fail("action {} is not in the action space: kappa {{{}}}, rho {{{}}}, bits {{{}}}",
         to_string(action), fmt::join(kappa_, ", "), fmt::join(rho_, ", "), fmt::join(bits_, ", "));
  return index(static_cast<int>(k - kappa_.begin()), static_cast<int>(r - rho_.begin()),
               static_cast<int>(q - bits_.begin()));
}

int ActionSpace::index(int kappa_level, int rho_level, int bits_level) const {
  const int rhos = static_cast<int>(rho_.size()), bits = static_cast<int>(bits_.size());
  if (kappa_level < 0 || kappa_level >= static_cast<int>(kappa_.size()) || rho_level < 0 ||
      rho_level >= rhos || bits_level < 0 || bits_level >= bits)
    fail("action space: no levels ({}, {}, {}) in {} x {} x {}", kappa_level, rho_level, bits_level,
         kappa_.size(), rhos, bits);
  return (kappa_level * rhos + rho_level) * bits + bits_level;
}

int ActionSpace::dense_index() const {
  return size() - 1;
}

std::vector<float> ActionSpace::levels(Axis axis) const {
  if (axis == Axis::kappa) return kappa_;
  if (axis == Axis::rho) return rho_;
  std::vector<float> eta;
  for (const int bits : bits_) eta.push_back(static_cast<float>(bits) / 16.0f);
  return eta;
}

bool ActionSpace::on(Axis axis) const {
  if (axis == Axis::kappa) return kappa_.size() > 1;
  if (axis == Axis::rho) return rho_.size() > 1;
  return bits_.size() > 1;
}

Budget ActionSpace::clamp_off_axes(Budget budget) const {
  for (const Axis axis : all_axes)
    if (!on(axis)) value(budget, axis) = levels(axis).front();
  return budget;
}

double ActionSpace::net_keep_rate(const Budget& budget) const {
  double sum = 0;
  int count = 0;
  for (const Axis axis : all_axes) {
    if (!on(axis)) continue;
    sum += static_cast<double>(value(budget, axis));
    ++count;
  }
  return count == 0 ? 1.0 : sum / count;
}

std::vector<std::string> ActionSpace::prune_notation() const {
  std::vector<std::string> names;
  for (const float rho : rho_) names.push_back("s" + percentage(rho));
  return names;
}

std::vector<std::string> ActionSpace::quant_notation() const {
  std::vector<std::string> names;
  for (const int bits : bits_) names.push_back(fmt::format("q{}", bits));
  return names;
}

}  // namespace sol
