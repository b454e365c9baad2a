#include "engine/request_checks.h"

#include "base/fail.h"

namespace sol {
namespace {

void check_forced_tokens(const char* kind, int count) {
  if (count < 0 || count > most_forced_tokens)
    fail("the number of {} tokens, {}, is outside 0..{}", kind, count, most_forced_tokens);
}

}  // namespace

void check_options(const SequenceOptions& options) {
  if (options.page_size < 1 || options.page_size > 4096)
    fail("page size {} is outside 1..4096", options.page_size);
  check_forced_tokens("sink", options.sinks);
  check_forced_tokens("window", options.window);
}

void check_token(const LlamaConfig& config, int32_t token) {
  if (token < 0 || token >= config.vocab_size)
    fail(
        "token {} is outside the model's vocabulary of {}: does the tokenizer belong to this "
        "model?",
        token, config.vocab_size);
}

void check_embedding(const LlamaConfig& config, int32_t token, size_t room) {
  check_token(config, token);
  if (room < static_cast<size_t>(config.hidden_size))
    fail("embedding: there is room for {} numbers, but the model's hidden_size is {}", room,
         config.hidden_size);
}

void check_room(const LlamaConfig& config, int length, size_t count) {
  const size_t whole = static_cast<size_t>(length) + count;
  if (whole > static_cast<size_t>(config.max_position_embeddings))
    fail(
        "{} tokens exceed the model's context of {} (max_position_embeddings in config.json): use "
        "a shorter text",
        whole, config.max_position_embeddings);
}

void check_action(const Action& a) {
  if (!(a.kappa > 0 && a.kappa <= 1 && a.rho > 0 && a.rho <= 1 && a.bits >= 2 && a.bits <= 16))
    fail(
        "decode: action kappa {}, rho {}, bits {} is out of range: shares lie in (0, 1], bits in "
        "2..16",
        a.kappa, a.rho, a.bits);
}

void check_item(const LlamaConfig& config, const ExtendItem& item) {
  for (const int32_t token : item.tokens) check_token(config, token);
  check_room(config, item.sequence->length(), item.tokens.size());
  for (const ExtendItem::Wanted& wanted : item.wanted) {
    if (wanted.index >= item.tokens.size())
      fail("extend: outputs wanted of position {} of {} tokens", wanted.index, item.tokens.size());
    if (wanted.out.log_prob) check_token(config, wanted.out.target);
  }
}

void check_item(const LlamaConfig& config, const DecodeItem& item) {
  check_token(config, item.token);
  if (item.out.log_prob) check_token(config, item.out.target);
  check_room(config, item.sequence->length(), 1);
  check_action(item.action);
}

void check_truncation(const Sequence& sequence, int length) {
  if (length < 0 || length > sequence.length())
    fail("truncate: length {} is outside 0..{}", length, sequence.length());
}

}  // namespace sol
