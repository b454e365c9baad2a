// Documents from text files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace sol {

struct TextOptions {
  std::string text_field = "text";  // of JSON lines
  // How a .txt file is cut into records: documents end with a line <|endoftext|>; wikitext: each
  // line with its newline is a record, blank lines dropped.
  enum class Format { documents, wikitext } format = Format::documents;
  // Tokens: each record between the tokenizer's begin and end token, as a base model is trained on.
  bool framed = false;
};

// Whether a file of this name holds a JSON object a line: .jsonl, also as .gz or .zst, and the
// .json.gz and .json.zst in which corpora are published; in upper case, too.
bool is_json_lines(const std::filesystem::path& path);

// The text of line `number` (from 1) of such a file; empty for a blank one. The first line may
// begin with a byte order mark. Throws Error naming file and line for invalid JSON (broken UTF-8
// included), a byte order mark elsewhere, and a field that is missing or no string. Other fields
// may hold numbers of any size.
std::string text_of_json_line(std::string_view line, int64_t number, const std::string& field,
                              const std::string& path);

// Calls `on_document` for each record of a .txt or .raw file, also compressed as .gz or .zst, or
// of one that holds JSON lines, streaming. Throws Error naming file and line for anything
// unreadable, truncated or malformed, for text that is not UTF-8 or has zero bytes (with the
// place, counted in bytes), for an unknown extension, a file without any text, and one that is
// changed while it is read.
void read_documents(const std::filesystem::path& path, const TextOptions& options,
                    const std::function<void(std::string&&)>& on_document);

}  // namespace sol
