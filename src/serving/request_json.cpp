#include "serving/request_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "serving/api_error.h"

namespace sol {
namespace {

constexpr size_t most_depth = 32, most_objects = 10000, most_fields = 256,
                 most_values = size_t{4} << 20;

// Walks over a document without building it; false ends the walk.
class ShapeCheck : public nlohmann::json_sax<Json> {
 public:
  std::string fault;  // empty: the shape is fine (the text may still be no JSON)

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool start_object(size_t) override {
    if (++objects_ > most_objects) return fails("objects", most_objects);
    return open();
  }
  bool key(string_t&) override {
    if (++fields_.back() > most_fields) return fails("fields in one object", most_fields);
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool fails(const char* what, size_t most) {
    fault = fmt::format("more than {} {}", most, what);
    return false;
  }
  bool value() { return ++values_ <= most_values || fails("values", most_values); }
  bool open() {
    fields_.push_back(0);
    return fields_.size() <= most_depth ? value() : fails("levels of nesting", most_depth);
  }
  bool close() {
    fields_.pop_back();
    return true;
  }

  std::vector<size_t> fields_;  // of the open objects and lists
  size_t objects_ = 0, values_ = 0;
};

}  // namespace

void require_json_type(std::string_view content_type) {
  constexpr std::string_view expected = "application/json", blanks = " \t";
  std::string_view type = content_type.substr(0, content_type.find(';'));
  type.remove_prefix(std::min(type.find_first_not_of(blanks), type.size()));
  type = type.substr(0, type.find_last_not_of(blanks) + 1);
  const auto same = [](char a, char b) { return b == (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a); };
  if (!std::ranges::equal(type, expected, same))
    throw ApiError(
        415, "invalid_request_error", "unsupported_media_type",
        fmt::format("Content-Type must be {}, not \"{}\"", expected, shortened(content_type)));
}

Json parse_request(const std::string& body) {
  const auto refused = [](const std::string& message) {
    return ApiError(400, "invalid_request_error", "invalid_json", message);
  };
  ShapeCheck shape;
  if (!Json::sax_parse(body, &shape) && !shape.fault.empty())
    throw refused("the request's body has " + shape.fault);
  try {
    return parse_json(body, "the request's body");
  } catch (const Error& error) {
    throw refused(error.what());
  }
}

}  // namespace sol
