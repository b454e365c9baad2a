// Whether an answer is what docs/http-api.md promises: complete and consistent in itself, or an
// error in the documented form.
#pragma once

#include <string>
#include <vector>

#include "serve_load/client.h"

namespace sol::load {

// What is wrong with an answer of status 200 to this request; empty: nothing.
std::vector<std::string> faults_of_answer(const Request& request, const Answer& answer);
// The same for an error of any status. `retry_after`: its header, 0 where there is none.
std::vector<std::string> faults_of_error(int status, const Json& error, int retry_after);

}  // namespace sol::load
