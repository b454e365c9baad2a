// A chat template either is an Error or writes a prompt: nothing else happens, however malformed it
// or the conversation is.
#include <cstdint>
#include <string>
#include <string_view>

#include "model/chat_template.h"
#include "sol/error.h"

// The input is a template, a zero byte and the content of a message.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0');
  const std::string content(end == std::string_view::npos ? "hello" : input.substr(end + 1));
  try {
    const sol::ChatTemplate chat(input.substr(0, end), "fuzz", "<s>", "</s>");
    sol::ChatTemplateOptions options;
    options.date = "2024-07-26";
    const sol::Json messages = {{{"role", "system"}, {"content", "s"}},
                                {{"role", "user"}, {"content", content}},
                                {{"role", "assistant"}, {"content", "b"}}};
    chat.apply(messages, options);
  } catch (const sol::Error&) {
  }
  return 0;
}
