#include "serving/request_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "serving/api_error.h"
#include "serving/request_head.h"

namespace sol {
namespace {

constexpr size_t most_depth = 32, most_objects = 10000, most_fields = 256,
                 most_values = size_t{1} << 20;

ApiError refused(const std::string& message) {
  return {400, "invalid_request_error", "invalid_json", "the request's body " + message};
}

// Leaves no value that has others in it.
void dismantle(Json& json) noexcept {
  if (!json.is_structured()) return;
  for (Json& value : json) dismantle(value);
  if (json.is_array())
    json.get_ref<Json::array_t&>().clear();
  else
    json.get_ref<Json::object_t&>().clear();
}

// Builds a document value by value. Whatever throws on the way, for lack of memory too, what has
// been built can be destroyed.
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(bool lines) : lines_(lines) {
    open_.reserve(most_depth + 1);
    open_.emplace_back();
  }
  Json take() { return std::move(open_.front().values.front()); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // JSON has none

  bool start_object(size_t) override {
    if (++objects_ > most_objects) too_many("objects", most_objects);
    return open();
  }
  bool key(string_t& name) override {
    std::vector<std::string>& keys = open_.back().keys;
    if (keys.size() == most_fields) too_many("fields in one object", most_fields);
    if (std::ranges::find(keys, name) != keys.end())
      throw refused(fmt::format("has the field \"{}\" twice in one object", shortened(name)));
    keys.push_back(std::move(name));
    return true;
  }
  bool end_object() override {
    Level& level = open_.back();
    place() = Json::object();
    auto& fields = place().get_ref<Json::object_t&>();
    fields.reserve(level.keys.size());
    // In place: a pair on its way would have its name copied, and fall with its value if that
    // fails.
    for (size_t i = 0; i < level.keys.size(); ++i)
      fields.emplace_back(std::move(level.keys[i]), std::move(level.values[i]));
    open_.pop_back();
    return true;
  }
  bool start_array(size_t) override { return open(); }
  bool end_array() override {
    place() = Json::array();
    place().get_ref<Json::array_t&>().swap(open_.back().values);
    open_.pop_back();
    return true;
  }

  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    throw refused("is not valid JSON: " + json_reason(error.what(), lines_));
  }

 private:
  // An object or list that has not ended.
  struct Level {
    std::vector<std::string> keys;
    Json::array_t values;
    Level() = default;
    Level(Level&&) noexcept = default;
    ~Level() {
      for (Json& value : values) dismantle(value);
    }
  };

  [[noreturn]] static void too_many(const char* what, size_t most) {
    throw refused(fmt::format("has more than {} {}", most, what));
  }
  template <typename T>
  bool add(T&& value) {
    if (++values_ > most_values) too_many("values", most_values);
    open_.back().values.emplace_back(std::forward<T>(value));
    return true;
  }
  bool open() {
    if (open_.size() > most_depth) too_many("levels of nesting", most_depth);
    add(nullptr);  // its place
    open_.emplace_back();
    return true;
  }
  // Of the innermost object or list.
  Json& place() { return open_[open_.size() - 2].values.back(); }

  std::vector<Level> open_;  // the first holds the whole document
  size_t objects_ = 0, values_ = 0;
  bool lines_;
};

}  // namespace

void require_json_type(std::string_view content_type) {
  constexpr std::string_view expected = "application/json", blanks = " \t";
  std::string_view type = content_type.substr(0, content_type.find(';'));
  type.remove_prefix(std::min(type.find_first_not_of(blanks), type.size()));
  type = type.substr(0, type.find_last_not_of(blanks) + 1);
  if (!equal_ignoring_case(type, expected))
    throw ApiError(
        415, "invalid_request_error", "unsupported_media_type",
        fmt::format("Content-Type must be {}, not \"{}\"", expected, shortened(content_type)));
}

RequestJson::RequestJson(const std::string& body) {
  // The library takes it for the end.
  if (body.find('\0') != std::string::npos)
    throw refused("is not valid JSON: it holds a zero byte");
  Builder builder(body.find('\n') != std::string::npos);
  Json::sax_parse(body, &builder);
  json_ = builder.take();
}

RequestJson::~RequestJson() {
  dismantle(json_);
}

}  // namespace sol
