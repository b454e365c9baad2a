// A directory of prepared data: a corpus as files of token ids ("shards") and the manifest that
// says which of them are finished (docs/formats.md, "Corpora and prepared data").
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "text/block_cache.h"
#include "text/corpus_reader.h"

namespace sol {

struct PreparedShard {
  int64_t tokens = 0, documents = 0;
  int64_t skipped = 0;          // lines that were bad
  std::string first_skipped{};  // why the first of them was; empty for none
  CorpusPosition end{};         // of the corpus, where the next shard begins
};

struct PreparedManifest {
  Json identity;       // all that the ids depend on: corpus, options, tokenizer
  std::string source;  // the corpus's directory, for people
  bool complete = false;
  std::vector<PreparedShard> shards;

  int64_t tokens() const;
  int64_t documents() const;
  int64_t skipped() const;
  // Of every shard's file: 32 hexadecimal digits over the identity.
  std::string key() const;
};

// DIR/manifest.json; nothing where there is none. Throws Error, with what to do, for one that is
// malformed or of another format version.
std::optional<PreparedManifest> read_prepared_manifest(const std::filesystem::path& dir);
// Replaces it atomically.
void write_prepared_manifest(const std::filesystem::path& dir, const PreparedManifest& manifest);

// Whether `dir` has such a manifest.
bool is_prepared_data(const std::filesystem::path& dir);

// DIR/00000.ids and so on.
std::filesystem::path prepared_shard_path(const std::filesystem::path& dir, size_t shard);
// Whether a file is named like one.
bool is_prepared_shard(const std::filesystem::path& path);

// Maps shard number `shard`. Throws Error when it is missing, damaged or not what the manifest
// says.
CachedIds open_prepared_shard(const std::filesystem::path& dir, const PreparedManifest& manifest,
                              size_t shard, CacheCheck check);

}  // namespace sol
