// The special tokens that the template puts around a text.
#pragma once

#include <cstdint>
#include <vector>

#include "model/added_tokens.h"
#include "model/tokenizer_file.h"

namespace sol {

struct PostProcessor {
  std::vector<int32_t> before, after;

  // From the component "post_processor"; null adds nothing. Throws Error naming what it does not
  // know, or an id that neither the vocabulary nor the added tokens have.
  static PostProcessor parse(const Component& component, const Vocabulary& vocabulary,
                             const AddedTokens& added);
};

}  // namespace sol
