// A corpus as a stream of shuffled windows: so many lines as fit a bounded buffer, in an order
// drawn by a seed. A window is a function of the corpus, the seed and the place where it begins, so
// that reading can go on at any window's end. Windows keep the files' order; the trainer's shuffle
// of blocks (training/data_order.h) mixes over the whole corpus.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_source.h"
#include "text/corpus_files.h"

namespace sol {

// In the seed's order of the files: all before `file`, and `line` lines of that one.
struct CorpusPosition {
  int64_t file = 0, line = 0;
  bool operator==(const CorpusPosition&) const = default;
};

struct CorpusWindow {
  struct Line {
    std::string_view text;         // in `memory`
    int64_t file = 0, number = 0;  // in the seed's order of the files; from 1
  };
  std::vector<std::unique_ptr<char[]>> memory;  // pieces of it, which stay where they are
  std::vector<Line> lines;                      // shuffled; blank ones are left out
  CorpusPosition end;                           // behind the last line that was read
};

class CorpusReader {
 public:
  // Begins at `start`. A window holds at most `window_bytes`, its lines' bookkeeping included, or
  // one line that is longer. Files are read in an order drawn by the seed.
  CorpusReader(const CorpusFiles& corpus, uint64_t seed, size_t window_bytes,
               CorpusPosition start = {});

  // The window that begins where the last one ended; false at the end. Throws Error naming file and
  // line for a file that is truncated or damaged, has fewer lines than `start` says, was changed
  // since the corpus was searched, or a line of more than 256 MiB; Cancelled soon after `stop` is
  // requested.
  bool next(CorpusWindow& window, const std::stop_token& stop);

  const std::string& path(int64_t file) const { return paths_[static_cast<size_t>(file)]; }
  // Of the files before `position`, as stored.
  uint64_t bytes_before(const CorpusPosition& position) const {
    return bytes_before_[static_cast<size_t>(position.file)];
  }

 private:
  bool next_line(const std::stop_token& stop);  // into line_; false at the end of the corpus
  bool read_line();                             // of the present file; false at its end
  void skip_lines(int64_t count, const std::stop_token& stop);

  const uint64_t seed_;
  const size_t window_bytes_;
  std::vector<std::string> paths_;  // in reading order
  std::vector<FileStamp> stamps_;   // likewise
  std::vector<uint64_t> bytes_before_;
  CorpusPosition position_;  // behind the last line that went into a window
  std::optional<LineReader> reader_;
  std::string line_;
  bool have_line_ = false;  // line_ was read, but goes into the next window
};

}  // namespace sol
