// How many files and connections this process may have open.
#pragma once

#include <cstdint>

namespace sol {

// Sees to it that `count` can be open at once, raising the process's own limit as far as the
// system's lets it. Throws Error saying what the limit is where that is not enough: for libraries
// that end the program when they cannot open one more.
void ensure_open_files(uint64_t count);

}  // namespace sol
