// A tokenizer.json either is an Error or a tokenizer that takes text there and back without failing
// in any other way.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "model/make_tokenizer.h"
#include "model/utf8.h"
#include "sol/error.h"

// The input is a tokenizer.json, a zero byte and a text; without a zero byte the text is fixed.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0');
  const std::string_view text = end == std::string_view::npos
                                    ? std::string_view("ab c<s> \xC3\xA9 \xF0\x9F\x99\x82\xFF")
                                    : input.substr(end + 1);
  try {
    const auto tokenizer =
        sol::make_tokenizer(sol::TokenizerFile::parse(input.substr(0, end), "fuzz"));
    const auto ids = tokenizer->encode(text);
    const std::string whole = tokenizer->decode(ids);
    if (!sol::is_valid_utf8(whole)) std::abort();
    const auto stream = tokenizer->stream(false);
    std::string streamed;
    for (const int32_t id : ids) streamed += stream->push(id);
    if (streamed + stream->finish() != whole) std::abort();
  } catch (const sol::Error&) {
  }
  return 0;
}
