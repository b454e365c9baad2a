// JSON with errors that name the file and the field.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace sol {

using Json = nlohmann::ordered_json;

// What a JSON file that is read whole may have, where nothing larger is to be expected.
inline constexpr uint64_t default_json_limit = uint64_t{64} << 20;

// RFC 8259 allows numbers of any size, of which a double holds those up to 1.8e308. A larger one is
// an error, or, for who ignores a document's numbers, is some other number in the result.
enum class JsonNumbers { read, ignored };

// `where` is what error messages call the document (a path, "line 12 of x.jsonl", ...). Two values
// for one key of an object are an error as well: readers differ in which one they take.
Json parse_json(std::string_view text, const std::string& where,
                JsonNumbers numbers = JsonNumbers::read);
Json read_json(const std::filesystem::path& path, uint64_t limit = default_json_limit);

// The reason of a JSON library's exception, as UTF-8 whatever the document was, without its prefix
// for machines and, where the document has only one line, without that.
std::string json_reason(const char* what, bool lines = true);

// As text; names and paths need not be UTF-8, so what is not becomes a replacement character.
std::string to_text(const Json& json, int indent = -1);

// A field of an object, converted; throws Error naming document, field and expected type when it is
// missing (first form) or has another type. Integers must be integral and fit.
template <typename T>
T json_get(const Json& object, const char* field, const std::string& where);
template <typename T>
T json_get_or(const Json& object, const char* field, T fallback, const std::string& where);
// Instantiated for bool, int, int64_t, uint64_t, float, double, std::string.

}  // namespace sol
