// The JSON of a request: from anybody, so its shape is checked before it is built.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace sol {

// Throws ApiError 415 for a Content-Type other than application/json, whose parameters ("; charset=
// utf-8") say nothing: JSON is UTF-8. Also what keeps a web page of somebody else from sending
// requests in its visitor's name.
void require_json_type(std::string_view content_type);

// Throws ApiError 400 for what is no JSON, has a field twice in one object, or is larger in shape
// than any request needs to be: nested deeper than 32, more than 10000 objects, 256 fields in one,
// 4 M values. (Time to build grows with the square of the second and third.)
Json parse_request(const std::string& body);

}  // namespace sol
