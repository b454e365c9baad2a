// Parts of error messages that come from outside: a text of any length, what was probably meant by
// a name that nobody knows, the ends of a range.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sol {

// At most `most` bytes of a text, then "…" where something was left out; a UTF-8 character is not
// cut. For whatever a message repeats: it may be a megabyte long.
std::string shortened(std::string_view text, size_t most = 80);

// "; did you mean X?", X being the known name nearest to `wrong`, or "" when none is near.
std::string suggestion(std::string_view wrong, const std::vector<std::string>& known);

// "0.2657..0.9415": to four decimals, or more where they are needed, rounded inwards, so that
// whoever asks for an end as it is shown asks for something within the range. low <= high, finite.
std::string shown_range(double low, double high);

// "1 to 4, 7": ascending numbers, of many the first ranges only.
std::string shown_numbers(const std::vector<int64_t>& numbers);

}  // namespace sol
