// Answers out of written text, by gsm8k_cot_llama's filters.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sol {

// The text up to the first stop string, taken in their order as the harness does.
std::string cut_at_stops(std::string_view text, std::span<const std::string> stops);

// The last number after "The final answer is ", or "[invalid]":
// `The final answer is ((-?[$0-9.,]{2,})|(-?[0-9]+))`.
std::string strict_answer(std::string_view text);
// The last number anywhere: `(-?[$0-9.,]{2,})|(-?[0-9]+)`.
std::string flexible_answer(std::string_view text);

// Equal apart from ",", "$", all up to "#### ", a point at the end, and case.
bool same_answer(std::string_view answer, std::string_view target);

}  // namespace sol
