#include "serving/access.h"

#include <fmt/format.h>

#include "base/shown_text.h"
#include "serving/api_error.h"
#include "serving/loopback.h"

namespace sol {
namespace {

// Without the port.
std::string host_name(const std::string& host) {
  const size_t colon = host.rfind(':');
  const bool port = colon != std::string::npos && host.find(']', colon) == std::string::npos;
  return port ? host.substr(0, colon) : host;
}

// Takes as long for a wrong key whatever it has in common with the right one.
bool same_secret(std::string_view a, std::string_view b) {
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size() && !b.empty(); ++i)
    difference |= static_cast<unsigned char>(a[i] ^ b[i % b.size()]);
  return difference == 0;
}

bool has_key(const RequestHead& head, const std::string& key) {
  constexpr std::string_view scheme = "Bearer ";
  const std::string* given = head.find("authorization");
  if (!given || !equal_ignoring_case(given->substr(0, scheme.size()), scheme)) return false;
  const size_t begin = given->find_first_not_of(' ', scheme.size());
  return begin != std::string::npos && same_secret(std::string_view(*given).substr(begin), key);
}

}  // namespace

void check_access(const RequestHead& head, const AccessRules& rules, bool open) {
  // A page elsewhere whose name was made to point at this machine would send its own name.
  const std::string name = host_name(head.host);
  if (rules.local && !name.empty() && !is_loopback_name(name) &&
      !equal_ignoring_case(name, rules.host))
    throw ApiError(403, "invalid_request_error", "wrong_host",
                   fmt::format("this server answers to localhost, not \"{}\"", shortened(name)));
  if (rules.api_key.empty() || open || has_key(head, rules.api_key)) return;
  throw ApiError(401, "authentication_error", "invalid_api_key",
                 "the request's API key is missing or wrong; send it as "
                 "\"Authorization: Bearer KEY\"");
}

}  // namespace sol
