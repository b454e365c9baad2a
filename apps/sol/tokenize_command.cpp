// sol tokenize and sol detokenize: text to token ids and back.
#include <fmt/ranges.h>

#include <memory>
#include <vector>

#include "base/fail.h"
#include "base/json.h"
#include "commands.h"
#include "common.h"
#include "sol/tokenizer.h"

namespace sol::app {
namespace {

struct TokenizeFlags {
  std::filesystem::path model;
  bool no_bos = false;
  bool skip_special = false;

  std::shared_ptr<const Tokenizer> tokenizer() const {
    return Tokenizer::load(model.empty() ? default_model_dir() : model);
  }
};

std::vector<int32_t> parse_ids(const std::string& text) {
  const Json json = parse_json(text, "standard input");
  const bool wrapped = json.is_object() && json.contains("ids");
  const Json& list = wrapped ? json["ids"] : json;
  if (!list.is_array()) {
    fail("standard input: expected {{\"ids\": [1, 2, ...]}} or a list of ids");
  }
  std::vector<int32_t> ids;
  ids.reserve(list.size());
  for (const Json& item : list) {
    const bool fits = item.is_number_unsigned() && item.get<uint64_t>() <= INT32_MAX;
    if (!fits) {
      fail("standard input: entry {} of the ids is {}, not a token id", ids.size(), to_text(item));
    }
    ids.push_back(item.get<int32_t>());
  }
  return ids;
}

void tokenize(const TokenizeFlags& flags) {
  const auto tokenizer = flags.tokenizer();
  const std::string text = read_standard_input();
  const auto ids = tokenizer->encode(text, {.add_special_tokens = !flags.no_bos});
  write_output(fmt::format("{{\"ids\": [{}]}}\n", fmt::join(ids, ", ")));
}

void detokenize(const TokenizeFlags& flags) {
  const auto tokenizer = flags.tokenizer();
  const auto ids = parse_ids(read_standard_input());
  write_output(tokenizer->decode(ids, flags.skip_special));
}

}  // namespace

void add_tokenize_commands(CLI::App& app) {
  auto flags = std::make_shared<TokenizeFlags>();
  CLI::App* encode = app.add_subcommand(
      "tokenize", "Turn the text on standard input into token ids: {\"ids\": [...]}");
  add_model_option(*encode, flags->model);
  encode->add_flag("--no-bos", flags->no_bos,
                   "Leave out the begin token and whatever else the tokenizer puts around a text");
  encode->callback([flags] { tokenize(*flags); });

  CLI::App* decode = app.add_subcommand(
      "detokenize", "Turn token ids on standard input, {\"ids\": [...]} or a list, into text");
  add_model_option(*decode, flags->model);
  decode->add_flag("--skip-special", flags->skip_special, "Leave out special tokens");
  decode->callback([flags] { detokenize(*flags); });
}

}  // namespace sol::app
