// Tokenises a corpus into prepared data: one thread reads, all others tokenise, one writes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>

#include "sol/tokenizer.h"
#include "text/prepared_data.h"

namespace sol {

struct CorpusOptions {
  std::string text_field = "text";
  uint64_t seed = 0;  // of the order of files and documents
  // What is shuffled together and becomes one shard, in bytes of JSON lines. Up to twice as much is
  // in memory: a window that is being tokenised and the next one that is being read.
  uint64_t window_bytes = uint64_t{128} << 20;
  // Leave out lines that are no valid JSON object with the text field, and count them; else the
  // first ends the preparation. A file that is truncated or damaged always does.
  bool skip_bad_lines = false;
};

// Of this call.
struct PrepareProgress {
  double seconds = 0;
  int64_t tokens = 0, documents = 0;
  int64_t all_tokens = 0, shards = 0;        // earlier calls' included
  uint64_t bytes_done = 0, bytes_total = 0;  // of the files, as stored; whole files only
};

struct PrepareCallbacks {
  std::function<void(const PrepareProgress&)> on_progress{};
  std::function<void(const std::string&)> on_note{};  // a resumption, a process that is waited for
};

// The subdirectory of a cache in which this corpus is prepared: "<the corpus's name>-<a hash over
// all that decides the ids>".
std::filesystem::path prepared_cache_path(const std::filesystem::path& cache_dir,
                                          const std::filesystem::path& corpus_dir,
                                          const CorpusOptions& options, const Tokenizer& tokenizer);

// Prepares the corpus in `out`, or goes on where a call that was killed had got to: at the end of
// the last shard that its manifest has. The shards do not depend on the number of threads or on
// interruptions. Processes take turns: one that finds another at work waits for it, and then finds
// the data. Shards that are there are checked by size, or with `verify` by their checksums.
// Throws Error for an empty corpus or one without text, bad lines and files (naming file and line),
// an `out` that holds other data (naming the difference) and whatever writing throws; Cancelled
// soon after `stop` is requested. All finished shards stay.
PreparedManifest prepare_corpus(const std::filesystem::path& corpus_dir,
                                const std::filesystem::path& out, const CorpusOptions& options,
                                const Tokenizer& tokenizer, bool verify = false,
                                const PrepareCallbacks& callbacks = {}, std::stop_token stop = {});

}  // namespace sol
