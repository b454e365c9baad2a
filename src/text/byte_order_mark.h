// What some programs begin a UTF-8 file with; it is no part of the text.
#pragma once

#include <string_view>

namespace sol {

inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

}  // namespace sol
