// What a request is answered with when it cannot be served (docs/http-api.md, "Errors").
#pragma once

#include <string>
#include <utility>

#include "base/json.h"
#include "sol/error.h"

namespace sol {

class ApiError : public Error {
 public:
  ApiError(int status, std::string type, std::string code, const std::string& message,
           std::string param = {})
      : Error(message),
        status_(status),
        type_(std::move(type)),
        code_(std::move(code)),
        param_(std::move(param)) {}

  int status() const { return status_; }
  int retry_after() const { return retry_after_; }  // seconds; 0: nothing to say
  ApiError& set_retry_after(int seconds) {
    retry_after_ = seconds;
    return *this;
  }

  // {"error": {"message", "type", "param", "code"}}
  Json to_json() const {
    const auto text_or_null = [](const std::string& text) {
      return text.empty() ? Json() : Json(text);
    };
    return {{"error",
             {{"message", what()},
              {"type", type_},
              {"param", text_or_null(param_)},
              {"code", text_or_null(code_)}}}};
  }

 private:
  int status_;
  int retry_after_ = 0;
  std::string type_, code_, param_;
};

// A field of the request is wrong: 400.
inline ApiError bad_field(const std::string& param, const std::string& message,
                          std::string code = "invalid_value") {
  return {400, "invalid_request_error", std::move(code), param + ": " + message, param};
}

inline ApiError server_error(const std::string& message) {
  return {500, "server_error", "internal_error", message};
}

}  // namespace sol
