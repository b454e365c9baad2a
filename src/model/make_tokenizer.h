// A tokenizer from a file that has been read already.
#pragma once

#include <memory>

#include "model/tokenizer_file.h"
#include "sol/tokenizer.h"

namespace sol {

// Throws Error naming the file and the component for anything that is not supported or contradicts
// itself.
std::shared_ptr<const Tokenizer> make_tokenizer(TokenizerFile file);

}  // namespace sol
