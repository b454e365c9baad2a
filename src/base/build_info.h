// Which source this program was built from, for every result it writes.
#pragma once

#include <string>

namespace sol {

std::string build_version();  // "0.1.0"
std::string
build_commit();  // abbreviated hash, "-dirty" when the tree had changes, "unknown" outside git

}  // namespace sol
