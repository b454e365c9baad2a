#include "text/corpus_files.h"

#include <algorithm>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "text/prepared_data.h"
#include "text/text_reader.h"

namespace sol {
namespace {

namespace fs = std::filesystem;

// What an entry is, links followed. Throws Error for what cannot be found out.
fs::file_type type_of(const fs::directory_entry& entry) {
  std::error_code error, ignored;
  const fs::file_status status = entry.status(error);
  if (status.type() == fs::file_type::not_found && entry.is_symlink(ignored))
    fail("{}: is a link to something that does not exist; restore that or remove the link",
         entry.path().string());
  if (status.type() == fs::file_type::not_found || !fs::status_known(status))
    fail("{}: cannot be looked up: {}", entry.path().string(), error.message());
  return status.type();
}

// Whether `dir` is `outer` or lies in it; both canonical.
bool lies_in(const fs::path& dir, const fs::path& outer) {
  return std::mismatch(outer.begin(), outer.end(), dir.begin(), dir.end()).first == outer.end();
}

// Throws Error where the entry, a link to a directory, leads to one that the way to it, `depth`
// directories below the corpus, has come through: the search would never end.
void require_no_way_back(const fs::path& link, int depth) {
  std::error_code error;
  const fs::path target = fs::canonical(link, error);
  fs::path through = link.parent_path();
  for (int i = depth; i >= 0 && !error; --i, through = through.parent_path())
    if (lies_in(fs::canonical(through, error), target))
      fail("{}: is a link back to {}, a directory that it lies in; remove it from the corpus",
           link.string(), target.string());
  if (error) fail("{}: cannot be looked up: {}", link.string(), error.message());
}

fs::recursive_directory_iterator entries_below(const fs::path& dir, std::error_code& error) {
  return fs::recursive_directory_iterator(dir, fs::directory_options::follow_directory_symlink,
                                          error);
}

}  // namespace

CorpusFiles find_corpus_files(const fs::path& dir) {
  std::error_code error;
  if (!path_exists(dir)) fail("{}: no such directory", dir.string());
  if (!fs::is_directory(dir, error)) fail("{}: is not a directory", dir.string());
  CorpusFiles corpus;
  int64_t others = 0;
  bool shards = false;  // are among them
  fs::path last = dir;  // that was looked at
  for (auto entries = entries_below(dir, error); !error && entries != fs::end(entries);
       entries.increment(error)) {
    const fs::path& path = last = entries->path();
    const fs::file_type type = type_of(*entries);
    if (type == fs::file_type::directory) {
      if (std::error_code ignored; entries->is_symlink(ignored))
        require_no_way_back(path, entries.depth());
      continue;
    }
    if (is_prepared_shard(path) && !is_prepared_data(path.parent_path())) shards = true;
    if (!is_json_lines(path)) {
      ++others;
      continue;
    }
    if (type != fs::file_type::regular)
      fail("{}: is not a regular file, but a device or a pipe; move it out of the corpus",
           path.string());
    corpus.files.push_back({path.lexically_relative(dir).generic_string(), path, stamp_of(path)});
    corpus.bytes += corpus.files.back().stamp.bytes;
  }
  if (error) fail("{}: cannot be searched for text: {}", last.string(), error.message());
  if (corpus.files.empty())
    fail(
        "{}: holds no .jsonl, .jsonl.gz, .jsonl.zst, .json.gz or .json.zst file at any depth ({} "
        "other files are there{})",
        dir.string(), others,
        shards ? ", among them prepared data whose manifest.json is missing" : "");
  std::ranges::sort(corpus.files, {}, &CorpusFile::name);
  Hash128 hash;
  for (const CorpusFile& file : corpus.files)
    // The length keeps two lists of names apart that would read the same joined.
    hash.add(fmt::format("{} {} {} {}\n", file.name.size(), file.name, file.stamp.bytes,
                         file.stamp.time));
  corpus.identity = hash.hexadecimal();
  return corpus;
}

void require_outside_corpus(const fs::path& out, const fs::path& corpus) {
  std::error_code absent;
  std::vector<fs::path> above;  // the directories that `out` lies in, itself included
  for (fs::path at = fs::weakly_canonical(fs::absolute(out), absent); !absent;
       at = at.parent_path()) {
    above.push_back(at);
    if (at == at.root_path()) break;
  }
  const auto refuse_below = [&](const fs::path& dir) {
    std::error_code different;
    for (const fs::path& at : above)
      if (fs::equivalent(at, dir, different))
        fail(
            "{}: lies in the corpus {}, so what is written there would be read as its text; choose "
            "a directory outside it",
            out.string(), corpus.string());
  };
  refuse_below(corpus);
  std::error_code error;  // which find_corpus_files() reports
  for (auto entries = entries_below(corpus, error); !error && entries != fs::end(entries);
       entries.increment(error))
    if (std::error_code ignored; entries->is_symlink(ignored) && entries->is_directory(ignored))
      refuse_below(entries->path());
}

}  // namespace sol
