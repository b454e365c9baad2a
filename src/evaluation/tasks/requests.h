// Requests as token ids, by lm-evaluation-harness's rules for causal models (docs/tasks.md,
// "Tokens").
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sol/tokenizer.h"

namespace sol {

// What is scored: log p of every token from `context` on, given all tokens before it. The last
// token is never an input.
struct TokenRequest {
  std::vector<int32_t> tokens;
  size_t context = 0;  // at least 1

  size_t scored() const { return tokens.size() - context; }
};

class RequestEncoder {
 public:
  // Positions of the model: how many tokens may be its input. The tokenizer must outlive this.
  // Throws Error when the tokenizer has neither a begin nor an end token.
  RequestEncoder(const Tokenizer& tokenizer, int max_length);

  // With the tokenizer's own special tokens, unless the text already begins with the begin token.
  std::vector<int32_t> encode(std::string_view text) const;

  // The prompt's trailing white space goes over to the continuation; both are encoded together,
  // and what follows the context's own ids is the continuation. Before truncation. Throws Error for
  // a continuation without any token.
  TokenRequest pair(std::string_view context, std::string_view continuation) const;

  // Keeps the end of what is too long for the model. Throws Error when the continuation alone is.
  TokenRequest truncated(TokenRequest request) const;

  // Windows that predict every token of the text once: the first after the prefix token, each
  // later full window after the one token before it, the last after as many as fit.
  std::vector<TokenRequest> rolling(std::string_view text) const;

  // The end of a prompt, so that `max_tokens` can follow it. Throws Error when nothing is left.
  std::vector<int32_t> prompt(std::string_view text, int max_tokens) const;

 private:
  const Tokenizer& tokenizer_;
  int max_length_;
  int32_t prefix_;          // begin token, else end token
  std::string begin_text_;  // as it stands in a text; empty: none
};

}  // namespace sol
