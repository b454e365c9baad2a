// llama2.c's files (Karpathy, 2023): checkpoints of the legacy format, "version 0", and
// tokenizer.bin.
#pragma once

#include <filesystem>
#include <stop_token>

#include "base/json.h"

namespace sol {

// A Hugging Face tokenizer.json with llama2.c's pieces: a space before the text, characters without
// a piece as bytes, then the pair of neighbours whose joint piece has the highest score, again and
// again. The ids are those of llama2.c's encode() as long as no text holds "<s>" or "</s>", which
// become the special tokens unless that is switched off, and no three neighbours can be joined to
// the same piece both ways, where llama2.c takes the left pair and this the better ranked.
// Throws Error naming the file, and the piece, for one that is truncated, has another number of
// pieces, lacks the byte pieces, or holds a piece twice.
Json read_llama2c_tokenizer(const std::filesystem::path& path, int vocab_size);

// Writes `to`, a Hugging Face directory in F32: config.json, model.safetensors, tokenizer.json,
// tokenizer_config.json, generation_config.json. Query and key rows are reordered: llama2.c rotates
// pairs of neighbours, Hugging Face the two halves of a head. `to` appears as a whole or not at
// all. Throws Error for a file that is not such a checkpoint, sizes that cannot be, a file shorter
// or longer than its header says, weights that are not finite or too large, a tokenizer that does
// not fit, and a directory that is not empty; Cancelled when `stop` was requested.
void convert_llama2c(const std::filesystem::path& checkpoint,
                     const std::filesystem::path& tokenizer, const std::filesystem::path& to,
                     const std::stop_token& stop = {});

}  // namespace sol
