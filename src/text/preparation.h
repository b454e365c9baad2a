// What prepared data depends on, and where it may lie.
#pragma once

#include <filesystem>

#include "base/json.h"
#include "sol/tokenizer.h"
#include "text/corpus_files.h"
#include "text/prepare_corpus.h"

namespace sol {

// All that decides the ids: the corpus's files, the options, the tokenizer.
Json preparation_identity(const CorpusFiles& corpus, const CorpusOptions& options,
                          const Tokenizer& tokenizer);

// Throws Error, naming every difference, where `dir` holds data of another identity.
void require_same_preparation(const Json& found, const Json& wanted,
                              const std::filesystem::path& dir);

// Throws Error where `dir` holds files but no prepared data: shards must not lie among a model's, a
// corpus's or anybody's files.
void require_directory_for_shards(const std::filesystem::path& dir);

}  // namespace sol
