// What plain text is: UTF-8 without zero bytes, as JSON is. Anything else is a file of another kind
// or encoding, of which a tokenizer would make tokens all the same.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace sol {

// Throws Error, with the line (from 1) and the byte (from 0), for text that is not. `text` is the
// whole file, or the part of it that begins with line `line` behind `before` bytes, whole
// characters. Where the file's name says that it is compressed, what counts is what comes out.
void require_plain_text(std::string_view text, const std::filesystem::path& path, int64_t line = 1,
                        uint64_t before = 0);

}  // namespace sol
