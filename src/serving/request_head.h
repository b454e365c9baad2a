// The head of an HTTP/1.1 request, read as strictly as RFC 9112 asks: where two readers of the same
// bytes could differ on where a request ends, it is an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sol {

inline constexpr size_t most_head_bytes = 64 * 1024, most_head_fields = 100,
                        most_target_bytes = 8000;  // httplib takes lines of 8192

struct RequestHead {
  std::string method;  // GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS
  std::string path;    // as sent, without the query; "*" for OPTIONS *
  std::string host;    // with the port, if one was given; the target's where that names one
  bool http_1_0 = false;
  std::vector<std::pair<std::string, std::string>> fields;  // names in lower case

  std::optional<uint64_t> content_length;
  bool chunked = false;
  bool close = false;             // no further request is to follow
  bool expects_continue = false;  // the client waits for a word before it sends the body

  // A field's value, null where there is none. `name` in lower case.
  const std::string* find(std::string_view name) const;
  bool has_body() const { return chunked || content_length.value_or(0) > 0; }
};

// Where the head that begins `bytes` ends, its empty line included; none while that has not come.
// `scanned` bytes were looked at before (0 at first); it is moved on. Throws ApiError: 400 for a
// line that ends with LF alone, 431 for more than `most_head_bytes`.
std::optional<size_t> find_head_end(std::string_view bytes, size_t& scanned);

// Reads a head, from the request line to the empty line. Throws ApiError: 400 for what is not
// well-formed, 414, 417, 431, 501 (a method unknown here) and 505.
RequestHead parse_request_head(std::string_view head);

// Whether both are the same but for the case of ASCII letters.
bool equal_ignoring_case(std::string_view a, std::string_view b);

}  // namespace sol
