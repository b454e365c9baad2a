// What every backend asks of a request before it changes anything. Each throws Error that says what
// was wrong and what is allowed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sol/frozen_model.h"

namespace sol {

void check_options(const SequenceOptions& options);
// A token of the model's vocabulary.
void check_token(const LlamaConfig& config, int32_t token);
// Such a token, and room for its embedding.
void check_embedding(const LlamaConfig& config, int32_t token, size_t room);
// `count` more tokens after `length` cached ones stay within max_position_embeddings.
void check_room(const LlamaConfig& config, int length, size_t count);
// Shares in (0, 1], 2 to 16 bits.
void check_action(const Action& action);
// Tokens, room and the positions that outputs are wanted of.
void check_item(const LlamaConfig& config, const ExtendItem& item);
void check_item(const LlamaConfig& config, const DecodeItem& item);
// A length to truncate to.
void check_truncation(const Sequence& sequence, int length);

}  // namespace sol
