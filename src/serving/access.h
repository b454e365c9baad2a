// Who may ask: by the name under which the server is reached, and by the API key.
#pragma once

#include <string>

#include "serving/request_head.h"

namespace sol {

struct AccessRules {
  std::string api_key;  // empty: none is asked for
  bool local = false;   // only this machine can reach the port
  std::string host;     // another name that the server goes by, as the user gave it
};

// `open`: the key is not asked for. Throws ApiError: 403 (`wrong_host`), 401.
void check_access(const RequestHead& head, const AccessRules& rules, bool open);

}  // namespace sol
