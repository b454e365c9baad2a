#include "base/shown_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

namespace sol {
namespace {

// Longer names are nobody's slip of the pen, and comparing them takes time.
constexpr size_t longest_name = 64;

// Levenshtein's distance.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t k = 0; k < b.size(); ++k) {
      const size_t above = row[k + 1];
      row[k + 1] = std::min({above + 1, row[k] + 1, diagonal + (a[i] == b[k] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

// As a decimal of so many digits behind the point, read back.
double with_decimals(double value, int decimals) {
  return std::strtod(fmt::format("{:.{}f}", value, decimals).c_str(), nullptr);
}

}  // namespace

std::string shortened(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  size_t end = most;
  // Back to a character's beginning; one has at most three bytes behind it, so what goes on longer
  // is no UTF-8 anyway.
  while (end > 0 && most - end < 3 && (text[end] & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "…";
}

std::string suggestion(std::string_view wrong, const std::vector<std::string>& known) {
  if (wrong.size() > longest_name) return {};
  std::string best;
  size_t least = std::max<size_t>(1, wrong.size() / 3) + 1;
  for (const std::string& name : known) {
    const bool begins = name.size() > wrong.size() && name.starts_with(wrong);
    const size_t d = begins ? 1 : distance(wrong, name);
    if (d >= least) continue;
    least = d;
    best = name;
  }
  return best.empty() ? "" : fmt::format("; did you mean {}?", best);
}

std::string shown_range(double low, double high) {
  for (int decimals = 4; decimals < 15; ++decimals) {
    const double step = std::pow(10.0, -decimals);
    double inner_low = with_decimals(low, decimals), inner_high = with_decimals(high, decimals);
    if (inner_low < low) inner_low = with_decimals(low + step, decimals);
    if (inner_high > high) inner_high = with_decimals(high - step, decimals);
    if (low <= inner_low && inner_low <= inner_high && inner_high <= high)
      return fmt::format("{}..{}", inner_low, inner_high);
  }
  return fmt::format("{}..{}", low, high);
}

std::string shown_numbers(const std::vector<int64_t>& numbers) {
  constexpr size_t most = 8;  // ranges
  std::vector<std::string> ranges;
  for (size_t begin = 0, end; begin < numbers.size(); begin = end) {
    for (end = begin + 1; end < numbers.size() && numbers[end] == numbers[end - 1] + 1;) ++end;
    if (ranges.size() == most) {
      ranges.push_back("…");
      break;
    }
    ranges.push_back(end - begin == 1 ? fmt::format("{}", numbers[begin])
                                      : fmt::format("{} to {}", numbers[begin], numbers[end - 1]));
  }
  return fmt::format("{}", fmt::join(ranges, ", "));
}

}  // namespace sol
