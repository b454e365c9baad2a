// The JSON of a request: from anybody, so its shape is checked before it is built.
#pragma once

#include <string>

#include "base/json.h"

namespace sol {

// Throws ApiError 400 for what is no JSON, has a field twice in one object, or is larger in shape
// than any request needs to be: nested deeper than 32, more than 10000 objects, 256 fields in one,
// 4 M values. (Time to build grows with the square of the second and third.)
Json parse_request(const std::string& body);

}  // namespace sol
