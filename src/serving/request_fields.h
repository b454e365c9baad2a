// The fields of a request's JSON object, read strictly: a field of another type, out of range or
// unknown is an error that names it. A known field that is null counts as absent, as OpenAI's
// clients send it; an unknown one does not.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "serving/api_error.h"

namespace sol {

// A value that must be an integer within a range. Throws ApiError that says `name`.
int64_t read_integer(const Json& value, const std::string& name, int64_t low, int64_t high);

// Item `index` of the list `name`: a token's id below `vocab`. Throws ApiError naming the item.
int32_t read_token_id(const Json& item, const std::string& name, size_t index, int vocab);

class RequestFields {
 public:
  // `object` must outlive it. `prefix` precedes the names in messages: "sol." Throws ApiError when
  // it is not an object.
  explicit RequestFields(const Json& object, std::string prefix = {});

  // Each marks the field as known. All throw ApiError.
  const Json* find(const std::string& name);  // null where absent
  std::optional<bool> boolean(const std::string& name);
  std::optional<int64_t> integer(const std::string& name, int64_t low,
                                 int64_t high = std::numeric_limits<int64_t>::max());
  // In [low, high]; `open_low`: not low itself.
  std::optional<double> number(const std::string& name, double low, double high,
                               bool open_low = false);
  std::optional<std::string> text(const std::string& name);
  std::optional<std::string> choice(const std::string& name,
                                    const std::vector<std::string>& choices);
  std::optional<std::vector<std::string>> text_or_texts(const std::string& name);

  std::string full_name(const std::string& name) const { return prefix_ + name; }

  // OpenAI's fields that this server has nothing for: null, their default, changes nothing, and
  // all else is an error.
  void allow_null_only(std::initializer_list<const char*> names);

  // Throws ApiError for a field that nobody asked for, null or not.
  void reject_unknown() const;

 private:
  const Json& object_;
  std::string prefix_;
  std::set<std::string> known_, null_only_;
};

}  // namespace sol
