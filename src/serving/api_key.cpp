#include "serving/api_key.h"

#include "base/fail.h"

namespace sol {
namespace {

constexpr size_t longest_key = 4096;  // of the 64 KiB of a head

std::string described(char c) {
  switch (c) {
    case ' ':
      return "a space";
    case '\t':
      return "a tab";
    case '\n':
    case '\r':
      return "the end of a line";
    default:
      return static_cast<unsigned char>(c) >= 0x80 ? "a character that is not ASCII"
                                                   : "a control character";
  }
}

}  // namespace

void require_sendable_key(std::string_view key, const std::string& source) {
  if (key.empty()) fail("{}: the key is empty; leave it out to ask for none", source);
  if (key.size() > longest_key)
    fail("{}: the key has {} characters; at most {} can be sent", source, key.size(), longest_key);
  for (size_t i = 0; i < key.size(); ++i) {
    const char c = key[i];
    if (c > ' ' && c < 0x7f) continue;
    // The key itself is nobody's business.
    fail(
        "{}: character {} of the key is {}, which an Authorization header cannot carry; use "
        "visible ASCII characters",
        source, i + 1, described(c));
  }
}

}  // namespace sol
