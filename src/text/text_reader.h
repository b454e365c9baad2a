// Documents from text files.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace sol {

struct TextOptions {
  std::string text_field = "text";  // of .jsonl lines
  // How a .txt file is cut into records: documents end with a line <|endoftext|>; wikitext: each
  // line with its newline is a record, blank lines dropped.
  enum class Format { documents, wikitext } format = Format::documents;
  // Tokens: each record between the tokenizer's begin and end token, as a base model is trained on.
  bool framed = false;
};

// Calls `on_document` for each record of a .txt, .jsonl or .raw file, or one of these compressed as
// .gz or .zst, streaming. Throws Error naming file and line for anything unreadable, truncated or
// malformed, for an unknown extension, and for a file without any text.
void read_documents(const std::filesystem::path& path, const TextOptions& options,
                    const std::function<void(std::string&&)>& on_document);

}  // namespace sol
