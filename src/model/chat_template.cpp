#include "model/chat_template.h"

#include "base/fail.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "model/jinja_interpreter.h"
#include "model/jinja_parser.h"
#include "model/utf8.h"

namespace sol {
namespace {

// A token of tokenizer_config.json: its text, or an object with "content".
std::string token_text(const Json& config, const char* field, const std::string& where) {
  if (!config.contains(field) || config.at(field).is_null()) return {};
  const Json& token = config.at(field);
  if (token.is_object()) return json_get<std::string>(token, "content", where + ": " + field);
  return json_get<std::string>(config, field, where);
}

std::optional<std::string> template_text(const Json& config, const std::string& where) {
  if (!config.contains("chat_template") || config.at("chat_template").is_null())
    return std::nullopt;
  const Json& found = config.at("chat_template");
  if (found.is_string()) return found.get<std::string>();
  if (!found.is_array())
    fail("{}: field \"chat_template\" must be a string or a list of named templates", where);
  std::string names;
  for (const Json& one : found) {
    const std::string at = where + ": chat_template";
    const auto name = json_get<std::string>(one, "name", at);
    if (name == "default") return json_get<std::string>(one, "template", at);
    names += " " + name;
  }
  fail("{}: field \"chat_template\" has no template named \"default\", only:{}", where, names);
}

// A binary file without a single tag would be taken for a text that is the same in every
// conversation.
std::string_view checked_text(std::string_view source, const std::string& where) {
  if (!is_valid_utf8(source) || source.find('\0') != source.npos)
    fail("{}: is no text, so it is no chat template (a Jinja file in UTF-8)", where);
  return source;
}

}  // namespace

struct ChatTemplate::Parsed {
  jinja::Block block;
};

ChatTemplate::ChatTemplate(std::string_view source, std::string where, std::string bos_token,
                           std::string eos_token)
    : source_(checked_text(source, where)),
      where_(std::move(where)),
      bos_token_(std::move(bos_token)),
      eos_token_(std::move(eos_token)),
      fingerprint_(hash_128(source)),
      parsed_(std::make_shared<Parsed>(Parsed{jinja::parse(source, where_)})) {}

std::optional<ChatTemplate> ChatTemplate::find(const std::filesystem::path& dir) {
  Json config = Json::object();
  const auto config_path = dir / "tokenizer_config.json";
  if (path_exists(config_path)) config = read_json(config_path);
  const std::string where = config_path.string();
  const std::string bos = token_text(config, "bos_token", where);
  const std::string eos = token_text(config, "eos_token", where);
  const auto own_path = dir / "chat_template.jinja";
  if (path_exists(own_path)) return ChatTemplate(read_file(own_path), own_path.string(), bos, eos);
  if (const auto text = template_text(config, where))
    return ChatTemplate(*text, where + ": chat_template", bos, eos);
  return std::nullopt;
}

ChatTemplate ChatTemplate::load(const std::filesystem::path& dir) {
  if (auto found = find(dir)) return std::move(*found);
  fail(
      "{}: the model has no chat template: neither chat_template.jinja nor \"chat_template\" in "
      "tokenizer_config.json",
      dir.string());
}

std::string ChatTemplate::apply(const Json& messages, const ChatTemplateOptions& options) const {
  if (!messages.is_array()) fail("a conversation is a list of messages");
  for (size_t i = 0; i < messages.size(); ++i)
    json_get<std::string>(messages[i], "role", fmt::format("message {}", i));
  jinja::Globals globals;
  globals.date = options.date;
  for (const auto& [name, value] : options.variables.items())
    globals.variables.insert_or_assign(name, jinja::Value(value));
  globals.variables.insert_or_assign("messages", jinja::Value(messages));
  globals.variables.insert_or_assign("add_generation_prompt",
                                     jinja::Value(Json(options.add_generation_prompt)));
  if (!bos_token_.empty())
    globals.variables.insert_or_assign("bos_token", jinja::Value(Json(bos_token_)));
  if (!eos_token_.empty())
    globals.variables.insert_or_assign("eos_token", jinja::Value(Json(eos_token_)));
  // As Hugging Face's apply_chat_template, which passes them even where there are none.
  for (const char* name : {"tools", "documents"})
    globals.variables.try_emplace(name, jinja::Value(Json(nullptr)));
  return jinja::render(parsed_->block, where_, globals);
}

std::string ChatTemplate::apply(std::span<const ChatMessage> messages,
                                const ChatTemplateOptions& options) const {
  Json list = Json::array();
  for (const ChatMessage& message : messages)
    list.push_back({{"role", message.role}, {"content", message.content}});
  return apply(list, options);
}

}  // namespace sol
