#include "base/json_difference.h"

namespace sol {

std::optional<JsonDifference> first_difference(const Json& first, const Json& second) {
  const Json difference = Json::diff(first, second);
  if (difference.empty()) return std::nullopt;
  const std::string path = difference[0].at("path").get<std::string>();
  const Json::json_pointer pointer(path);
  const auto shown = [&](const Json& document) {
    return document.contains(pointer) ? to_text(document.at(pointer)) : std::string("absent");
  };
  return JsonDifference{path.substr(1), shown(first), shown(second)};
}

}  // namespace sol
