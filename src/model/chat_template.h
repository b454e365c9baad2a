// A model's chat template: how a conversation becomes a prompt (docs/formats.md, "Chat templates").
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "model/chat_message.h"

namespace sol {

struct ChatTemplateOptions {
  bool add_generation_prompt = true;  // ends where the assistant's turn begins
  // "YYYY-MM-DD", for templates that show the day; empty: the date that such a template has for
  // that case, so that prompts do not change overnight.
  std::string date;
  // Further variables that a template may look at: "tools", "enable_thinking", "documents", ...
  Json variables = Json::object();
};

class ChatTemplate {
 public:
  // Reads DIR/chat_template.jinja, else "chat_template" of DIR/tokenizer_config.json (a string, or
  // a list of named templates, of which "default" is taken), and the begin and end token's text.
  // None where there is no template. Throws Error naming file, line and construct for one that is
  // malformed or outside the subset of Jinja that is supported.
  static std::optional<ChatTemplate> find(const std::filesystem::path& dir);
  // The same; throws Error where there is none.
  static ChatTemplate load(const std::filesystem::path& dir);

  // `where` is what messages call the template. Empty tokens are not defined in it.
  ChatTemplate(std::string_view source, std::string where, std::string bos_token = {},
               std::string eos_token = {});

  // The prompt, begin token's text included where the template writes it. `messages` is a list of
  // objects with "role", "content" and whatever else the template reads ("tool_calls", ...). Throws
  // Error for what the template does not support, and with the text of its raise_exception.
  std::string apply(const Json& messages, const ChatTemplateOptions& options = {}) const;
  std::string apply(std::span<const ChatMessage> messages,
                    const ChatTemplateOptions& options = {}) const;

  const std::string& source() const { return source_; }
  const std::string& fingerprint() const { return fingerprint_; }  // of the source

 private:
  struct Parsed;
  std::string source_, where_, bos_token_, eos_token_, fingerprint_;
  std::shared_ptr<const Parsed> parsed_;
};

}  // namespace sol
