// The JSON of a request: from anybody, so its shape is checked while it is built.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace sol {

// Throws ApiError 415 for a Content-Type other than application/json, whose parameters ("; charset=
// utf-8") say nothing: JSON is UTF-8. Also what keeps a web page of somebody else from sending
// requests in its visitor's name.
void require_json_type(std::string_view content_type);

// A document that can be destroyed where there is no memory left: the library's own destructor
// allocates a list of all values, and ends the program when it cannot.
class RequestJson {
 public:
  // Throws ApiError 400 for what is no JSON, has a field twice in one object, or is larger in shape
  // than any request needs to be: nested deeper than 32, more than 10000 objects, 256 fields in
  // one, 1 M values. (Time to read grows with the square of the third.)
  explicit RequestJson(const std::string& body);
  RequestJson(RequestJson&&) = default;
  RequestJson& operator=(RequestJson&&) = delete;
  ~RequestJson();

  const Json& operator*() const { return json_; }

 private:
  Json json_;
};

}  // namespace sol
