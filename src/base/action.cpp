#include "sol/action.h"

#include <charconv>
#include <cstdlib>

#include "base/fail.h"
#include "base/shown_text.h"

namespace sol {
namespace {

// Names have up to fifty decimals for each share (percentage).
constexpr size_t longest_name = 160;

// Takes "<letter><number>" off the front of `rest`, the number up to the next dash or the end.
std::string_view take_part(std::string_view& rest, char letter, bool first,
                           std::string_view whole) {
  if (!first && rest.starts_with('-')) rest.remove_prefix(1);
  if (!rest.starts_with(letter))
    fail(
        "action \"{}\": expected \"{}...\" at {}; an action looks like k050-s070-q8: percent of "
        "the "
        "keys, percent of the channels, bits",
        whole, letter, rest.empty() ? "its end" : fmt::format("\"{}\"", rest));
  rest.remove_prefix(1);
  const size_t length = std::min(rest.find('-'), rest.size());
  const std::string_view number = rest.substr(0, length);
  rest.remove_prefix(length);
  return number;
}

float parse_share(std::string_view number, char letter, std::string_view whole) {
  double percent = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), percent,
                                            std::chars_format::fixed);
  if (error != std::errc() || end != number.data() + number.size())
    fail("action \"{}\": \"{}{}\" is not a percentage", whole, letter, number);
  const float share = static_cast<float>(percent / 100.0);
  if (!(share > 0.0f && share <= 1.0f))
    fail("action \"{}\": \"{}{}\" must be more than 0 and at most 100 percent", whole, letter,
         number);
  return share;
}

int parse_bits(std::string_view number, std::string_view whole) {
  int bits = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), bits);
  if (error != std::errc() || end != number.data() + number.size() || bits < 2 || bits > 16)
    fail("action \"{}\": \"q{}\" must be a whole number of bits from 2 to 16", whole, number);
  return bits;
}

}  // namespace

std::string percentage(float share, int digits) {
  const double percent = static_cast<double>(share) * 100.0;
  std::string text;
  // Names and actions must map one to one.
  for (int decimals = 0; decimals <= 50; ++decimals) {
    text = fmt::format("{:0{}.{}f}", percent, decimals == 0 ? digits : digits + 1 + decimals,
                       decimals);
    if (static_cast<float>(std::strtod(text.c_str(), nullptr) / 100.0) == share) break;
  }
  return text;
}

std::string to_string(const Action& action) {
  return fmt::format("k{}-s{}-q{}", percentage(action.kappa, 3), percentage(action.rho, 3),
                     action.bits);
}

Action parse_action(std::string_view text) {
  if (text.size() > longest_name)
    fail("action \"{}\": too long; an action looks like k050-s070-q8", shortened(text, 32));
  std::string_view rest = text;
  Action action;
  action.kappa = parse_share(take_part(rest, 'k', true, text), 'k', text);
  action.rho = parse_share(take_part(rest, 's', false, text), 's', text);
  action.bits = parse_bits(take_part(rest, 'q', false, text), text);
  if (!rest.empty()) fail("action \"{}\": nothing may follow the bits, found \"{}\"", text, rest);
  return action;
}

}  // namespace sol
