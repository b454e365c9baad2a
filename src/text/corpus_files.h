// The files of a corpus: a directory of JSON lines, as Dolma and its like are published.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sol {

struct CorpusFile {
  std::string name;  // relative to the corpus, with '/'
  std::filesystem::path path;
  uint64_t bytes = 0;  // as stored
};

struct CorpusFiles {
  std::vector<CorpusFile> files;  // ascending by name
  uint64_t bytes = 0;             // of all
  std::string identity;  // a hash of names, sizes and times of change: 32 hexadecimal digits
};

// All files below `dir`, at any depth and through links, that is_json_lines() names; others are
// passed over. Throws Error when there is none or a directory cannot be read.
CorpusFiles find_corpus_files(const std::filesystem::path& dir);

}  // namespace sol
