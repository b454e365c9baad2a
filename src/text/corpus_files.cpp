#include "text/corpus_files.h"

#include <algorithm>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "text/text_reader.h"

namespace sol {

namespace fs = std::filesystem;

CorpusFiles find_corpus_files(const fs::path& dir) {
  std::error_code error;
  if (!path_exists(dir)) fail("{}: no such directory", dir.string());
  if (!fs::is_directory(dir, error)) fail("{}: is not a directory", dir.string());
  CorpusFiles corpus;
  int64_t others = 0;
  // A link that leads back to a directory above ends in the system's error, not in a loop.
  fs::recursive_directory_iterator entries(dir, fs::directory_options::follow_directory_symlink,
                                           error);
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    const fs::path& path = entries->path();
    if (!entries->is_regular_file(error)) {
      if (error) break;
      continue;
    }
    if (!is_json_lines(path)) {
      ++others;
      continue;
    }
    const uint64_t bytes = entries->file_size(error);
    if (error) break;
    corpus.files.push_back({path.lexically_relative(dir).generic_string(), path, bytes});
    corpus.bytes += bytes;
  }
  if (error) fail("{}: cannot be searched for text: {}", dir.string(), error.message());
  if (corpus.files.empty())
    fail(
        "{}: holds no .jsonl, .jsonl.gz, .jsonl.zst, .json.gz or .json.zst file at any depth ({} "
        "other files are there)",
        dir.string(), others);
  std::ranges::sort(corpus.files, {}, &CorpusFile::name);
  Hash128 hash;
  for (const CorpusFile& file : corpus.files) {
    const auto time = fs::last_write_time(file.path, error);
    if (error) fail("{}: cannot read its time of change: {}", file.path.string(), error.message());
    // The length keeps two lists of names apart that would read the same joined.
    hash.add(fmt::format("{} {} {} {}\n", file.name.size(), file.name, file.bytes,
                         time.time_since_epoch().count()));
  }
  corpus.identity = hash.hexadecimal();
  return corpus;
}

}  // namespace sol
