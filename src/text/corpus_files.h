// The files of a corpus: a directory of JSON lines, as Dolma and its like are published.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "text/file_stamp.h"

namespace sol {

struct CorpusFile {
  std::string name;  // relative to the corpus, with '/'
  std::filesystem::path path;
  FileStamp stamp;  // its size is as stored
};

struct CorpusFiles {
  std::vector<CorpusFile> files;  // ascending by name
  uint64_t bytes = 0;             // of all
  std::string identity;  // a hash of names, sizes and times of change: 32 hexadecimal digits
};

// All files below `dir`, at any depth and through links, that is_json_lines() names; others are
// passed over. Throws Error when there is none, and, naming it, for a directory that cannot be
// read, a link that leads nowhere or back to a directory that it lies in, and a device or a pipe
// with such a name.
CorpusFiles find_corpus_files(const std::filesystem::path& dir);

// Throws Error where `out`, a directory that is there or is to be made, lies in the corpus or is
// it, also through the corpus's links: JSON lines that are written there would be read as its text.
void require_outside_corpus(const std::filesystem::path& out, const std::filesystem::path& corpus);

}  // namespace sol
