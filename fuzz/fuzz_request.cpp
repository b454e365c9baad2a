// A request's bytes are an ApiError or a request, however malformed they are; and where its body in
// chunks ends does not depend on how it arrives.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "serving/api_error.h"
#include "serving/chunked_decoder.h"
#include "serving/request_head.h"
#include "serving/request_json.h"

namespace {

// How much of it the body takes, decoded piece by piece; nothing where it is malformed.
std::string decode(std::string_view bytes, size_t piece) {
  sol::ChunkedDecoder decoder;
  std::string data;
  try {
    for (size_t at = 0; at < bytes.size() && !decoder.done();)
      at += decoder.take(bytes.substr(at, piece), data);
  } catch (const sol::ApiError&) {
    return {};
  }
  return decoder.done() ? data : "";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::string_view body = bytes;
  try {
    size_t scanned = 0;
    if (const auto end = sol::find_head_end(bytes, scanned)) {
      body.remove_prefix(*end);
      (void)sol::parse_request_head(bytes.substr(0, *end));
    }
  } catch (const sol::ApiError&) {
  }
  if (decode(body, 1) != decode(body, 4096)) std::abort();
  try {
    (void)sol::RequestJson(std::string(body));
  } catch (const sol::ApiError&) {
  }
  return 0;
}
