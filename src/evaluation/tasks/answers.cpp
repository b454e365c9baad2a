#include "evaluation/tasks/answers.h"

#include <algorithm>

#include "model/python_text.h"

namespace sol {
namespace {

constexpr std::string_view invalid = "[invalid]";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Length of `(-?[$0-9.,]{2,})|(-?[0-9]+)` at `at`; 0 where it does not match.
size_t number_length(std::string_view text, size_t at) {
  const size_t begin = at < text.size() && text[at] == '-' ? at + 1 : at;
  const auto run = [&](const auto& belongs) {
    size_t end = begin;
    while (end < text.size() && belongs(text[end])) ++end;
    return end;
  };
  const size_t loose = run([](char c) { return is_digit(c) || c == '$' || c == '.' || c == ','; });
  if (loose - begin >= 2) return loose - at;
  const size_t digits = run(is_digit);
  return digits > begin ? digits - at : 0;
}

std::string found(std::string_view number) {
  const std::string_view bare = strip(number);
  return std::string(bare.empty() ? invalid : bare);
}

std::string normalised(std::string_view answer) {
  std::string text = replace_text(replace_text(answer, ",", ""), "$", "");
  if (const size_t mark = text.rfind("#### "); mark != std::string::npos) text.erase(0, mark + 5);
  if (text.ends_with('.')) text.pop_back();
  return lower_case(text);
}

}  // namespace

std::string cut_at_stops(std::string_view text, std::span<const std::string> stops) {
  for (const std::string& stop : stops)
    if (!stop.empty()) text = text.substr(0, text.find(stop));
  return std::string(text);
}

std::string strict_answer(std::string_view text) {
  constexpr std::string_view lead = "The final answer is ";
  std::string_view last;
  for (size_t at = 0; (at = text.find(lead, at)) != std::string_view::npos;) {
    at += lead.size();
    const size_t length = number_length(text, at);
    if (length > 0) last = text.substr(at, length);
    at += length;
  }
  return found(last);
}

std::string flexible_answer(std::string_view text) {
  std::string_view last;
  for (size_t at = 0; at < text.size();) {
    const size_t length = number_length(text, at);
    if (length > 0) last = text.substr(at, length);
    at += std::max<size_t>(length, 1);
  }
  return found(last);
}

bool same_answer(std::string_view answer, std::string_view target) {
  return normalised(answer) == normalised(target);
}

}  // namespace sol
