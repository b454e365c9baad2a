// Numbers as people read them in a response.
#pragma once

#include <fmt/format.h>

#include <string>

namespace sol {

// To so many significant digits; a float32 has six that mean something.
inline double rounded(double value, int digits = 4) {
  return std::stod(fmt::format("{:.{}g}", value, digits));
}

}  // namespace sol
