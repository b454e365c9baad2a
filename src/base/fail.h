// fail("{}: ...", x): throw an Error with a formatted message.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "sol/error.h"

namespace sol {

template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace sol
