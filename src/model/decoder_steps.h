// The steps that a decoder is made of. Each is as Hugging Face's works on a list of tokens.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "model/decoder.h"
#include "model/pretokenizer_steps.h"
#include "model/regex.h"

namespace sol {

// The byte that a piece "<0x0A>" stands for; -1 for any other piece.
int fallback_byte(std::string_view piece);

std::unique_ptr<DecodeStep> decode_letters();   // byte alphabet to bytes; broken UTF-8 to U+FFFD
std::unique_ptr<DecodeStep> decode_fallback();  // runs of "<0x0A>" to bytes
std::unique_ptr<DecodeStep> decode_replace(Pattern pattern, std::string content);
std::unique_ptr<DecodeStep> decode_metaspace(Metaspace settings);
std::unique_ptr<DecodeStep> decode_with_spaces();  // a space between tokens
// Removes up to `start` times `character` in front and `stop` times at the end, of every token or,
// when they have been joined, of the whole text.
std::unique_ptr<DecodeStep> decode_strip(std::string character, size_t start, size_t stop,
                                         bool joined);
// Gathers the portions of a joined text and gives them to `step` as the one token that they are.
std::unique_ptr<DecodeStep> decode_whole(std::unique_ptr<DecodeStep> step);

}  // namespace sol
