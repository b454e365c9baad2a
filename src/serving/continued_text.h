// The text of tokens that go on from others.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "sol/tokenizer.h"

namespace sol {

// Decoders treat a text's beginning in a way of its own, most of them by dropping a space. Tokens
// after a prompt are no beginning: the prompt's text and theirs together are what the tokenizer
// makes of all of them. Ids that it does not have are no text.
class ContinuedText {
 public:
  // `before`: the tokens that precede, if any. The tokenizer must outlive it.
  explicit ContinuedText(const Tokenizer& tokenizer, std::span<const int32_t> before = {});

  // What may be shown from here on: whole characters, special tokens left out.
  std::string push(int32_t id);
  std::string finish();

  // The text of the tokens before, without what turned out to be the beginning of a character that
  // later ones complete.
  const std::string& before() const { return before_; }

 private:
  std::string without_owed(std::string text);

  const Tokenizer& tokenizer_;
  std::unique_ptr<Tokenizer::Stream> stream_;
  std::string before_;
  // What the tokens before say at their end if nothing follows: the decoder may hold it back and
  // hand it out with what follows.
  std::string owed_;
};

}  // namespace sol
