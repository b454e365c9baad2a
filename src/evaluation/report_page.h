// What reports share: the page's frame and style, colours, and numbers as text.
#pragma once

#include <string>
#include <string_view>

#include "engine/run_info.h"
#include "evaluation/statistics.h"
#include "sol/action_space.h"

namespace sol {

// A whole self-contained page; `title` is escaped, `body` is HTML.
std::string html_page(std::string_view title, std::string_view body);
// How every page begins whose title begins so.
std::string html_page_beginning(std::string_view title);

// Colours that most colour-blind readers tell apart, in print too (Okabe and Ito): the policy's,
// and the baselines' in turn.
inline constexpr const char* policy_colour = "#0072B2";
const char* baseline_colour(size_t index);

// "+0.123", with a minus sign that is as wide as the plus.
std::string signed_number(double value, int digits = 3);
// "12.3 %" of a share.
std::string percent(double share);
std::string p_value(double p);
std::string with_deviation(const MeanDeviation& value);
std::string budget_text(const Budget& budget);  // "κ 0.500, ρ 0.700, 9.00 bits"
// "κ {0.1, 1}, q {12 levels 5 .. 16}": an axis that is always dense is left out.
std::string levels_in_words(const ActionSpace& space);

// A row of a settings table, empty for an empty value; `value` is escaped.
std::string settings_row(std::string_view name, std::string_view value);
// Where results come from: program, machine, seed, options outside the paper, command.
std::string run_rows(const RunInfo& run);

}  // namespace sol
