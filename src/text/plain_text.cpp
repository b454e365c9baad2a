#include "text/plain_text.h"

#include <algorithm>

#include "base/fail.h"
#include "model/utf8.h"
#include "text/byte_source.h"

namespace sol {

void require_plain_text(std::string_view text, const std::filesystem::path& path, int64_t line,
                        uint64_t before) {
  const size_t zero = std::min(text.find('\0'), text.size());
  // Of a character that is cut by a zero byte, the character is at fault.
  const size_t good = valid_utf8_prefix(text.substr(0, zero));
  if (good == text.size()) return;
  fail("{}, line {}: not UTF-8 text: byte {} of the {} is 0x{:02x}{}", path.string(),
       line + std::ranges::count(text.substr(0, good), '\n'), before + good,
       is_compressed(path) ? "decompressed text" : "file", static_cast<unsigned char>(text[good]),
       good == zero ? "; is it text at all, or UTF-16?" : "");
}

}  // namespace sol
