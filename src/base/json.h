// JSON with errors that name the file and the field.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace sol {

using Json = nlohmann::ordered_json;

// `where` is what error messages call the document (a path, "line 12 of x.jsonl", ...).
Json parse_json(std::string_view text, const std::string& where);
Json read_json(const std::filesystem::path& path);

// A field of an object, converted; throws Error naming document, field and expected type when it is
// missing (first form) or has another type. Integers must be integral and fit.
template <typename T>
T json_get(const Json& object, const char* field, const std::string& where);
template <typename T>
T json_get_or(const Json& object, const char* field, T fallback, const std::string& where);
// Instantiated for bool, int, int64_t, uint64_t, float, double, std::string.

}  // namespace sol
