// Values of chat templates: JSON, and what only templates have.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"

namespace sol::jinja {

class Value {
 public:
  enum class Kind {
    undefined,  // a name or field that is not there
    data,       // JSON: null is none, objects are mappings
    space,      // namespace(): a mapping whose fields may be set
    function,   // raise_exception, namespace, range, strftime_now
    loop,       // a for's `loop`: a mapping without unknown fields
  };

  Value() = default;  // undefined
  explicit Value(Json json)
      : kind_(Kind::data), json_(std::make_shared<const Json>(std::move(json))) {}
  // A part of a larger document, which it keeps alive: parts are not copied.
  Value(std::shared_ptr<const Json> owner, const Json& part)
      : kind_(Kind::data), json_(std::move(owner), &part) {}

  static Value make_space();
  static Value make_function(std::string name);
  static Value make_loop(size_t index, size_t length);  // the index from 0

  Kind kind() const { return kind_; }
  bool is_undefined() const { return kind_ == Kind::undefined; }
  bool is_data() const { return kind_ == Kind::data; }
  bool is_none() const { return is_data() && json_->is_null(); }
  bool is_boolean() const { return is_data() && json_->is_boolean(); }
  bool is_integer() const { return is_data() && json_->is_number_integer(); }
  bool is_number() const { return is_data() && json_->is_number(); }
  bool is_string() const { return is_data() && json_->is_string(); }
  bool is_list() const { return is_data() && json_->is_array(); }
  bool is_mapping() const { return is_data() && json_->is_object(); }

  const Json& json() const { return *json_; }  // of data; of loop: [index, length]
  const std::string& text() const { return json_->get_ref<const std::string&>(); }
  int64_t integer() const { return json_->get<int64_t>(); }
  const std::string& function_name() const { return json_->get_ref<const std::string&>(); }
  std::map<std::string, Value>& fields() const { return *fields_; }  // of a space

  // An element or field; it shares this value's document.
  Value part(const Json& inside) const { return Value(json_, inside); }

  bool truthy() const;
  // As Python's str(): "None", "True"; lists and mappings as repr.
  std::string to_text() const;
  // "a string", "a list", "undefined", ... for messages.
  std::string describe() const;

 private:
  Kind kind_ = Kind::undefined;
  std::shared_ptr<const Json> json_;
  std::shared_ptr<std::map<std::string, Value>> fields_;
};

// Python's ==: 1 == 1.0 == True.
bool equal(const Value& a, const Value& b);

// json.dumps(value, ensure_ascii=False, indent=indent); indent < 0: one line with ", " and ": ".
std::string dumps(const Json& json, int indent);

}  // namespace sol::jinja
