// A value of a configuration that is out of range.
#pragma once

#include <string>

#include "sol/error.h"

namespace sol {

// `field` as in the file ("rollout.batch"), for the one who knows its line.
class FieldError : public Error {
 public:
  FieldError(std::string name, const std::string& message)
      : Error(message), field(std::move(name)) {}
  std::string field;
};

}  // namespace sol
