// What a request is answered with when it cannot be served (docs/http-api.md, "Errors").
#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/shown_text.h"
#include "sol/error.h"

namespace sol {

class ApiError : public Error {
 public:
  // Whatever of a request is repeated, an answer is of a size that people read. Where a message
  // repeats a text, that text is shortened; this is for what was forgotten.
  static constexpr size_t most_message = 2000, most_param = 128;

  ApiError(int status, std::string type, std::string code, const std::string& message,
           std::string param = {})
      : Error(shortened(message, most_message)),
        status_(status),
        type_(std::move(type)),
        code_(std::move(code)),
        param_(shortened(param, most_param)) {}

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
  return {400, "invalid_request_error", std::move(code),
          shortened(param, ApiError::most_param) + ": " + message, param};
}

inline ApiError malformed(const std::string& what) {
  return {400, "invalid_request_error", "bad_request",
          "the request is not well-formed HTTP: " + what};
}

inline ApiError too_slow() {
  return {408, "invalid_request_error", "request_timeout", "the request took too long to arrive"};
}

inline ApiError shutting_down() {
  return {503, "server_error", "shutting_down", "the server is shutting down"};
}

// What went wrong within the server.
inline ApiError server_error(const std::string& reason) {
  return {500, "server_error", "internal_error", reason};
}
inline ApiError server_error(const std::exception& error) {
  if (!dynamic_cast<const std::bad_alloc*>(&error)) return server_error(error.what());
  return ApiError(503, "server_error", "out_of_memory", "the server is out of memory")
      .set_retry_after(1);
}
inline ApiError api_error_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const ApiError& known) {
    return known;
  } catch (const std::exception& other) {
    return server_error(other);
  }
}

}  // namespace sol
