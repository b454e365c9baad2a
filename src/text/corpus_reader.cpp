#include "text/corpus_reader.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "base/random.h"

namespace sol {
namespace {

constexpr size_t longest_line = size_t{256} << 20;

// A window's memory grows by so much: what was there is not copied, and a window that holds less
// than it may takes no more.
constexpr size_t piece_bytes = size_t{4} << 20;

// Decides where windows end: with another size the same corpus would give other shards.
static_assert(sizeof(CorpusWindow::Line) == 32);

bool blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos;
}

// Copies lines into a window's memory.
class LineKeeper {
 public:
  LineKeeper(CorpusWindow& window, size_t piece) : window_(window), piece_(piece) {}

  std::string_view keep(std::string_view line) {
    if (line.size() > left_) {
      left_ = std::max(line.size(), piece_);
      window_.memory.push_back(std::make_unique_for_overwrite<char[]>(left_));
      at_ = window_.memory.back().get();
    }
    std::ranges::copy(line, at_);
    const std::string_view kept(at_, line.size());
    at_ += line.size();
    left_ -= line.size();
    return kept;
  }

 private:
  CorpusWindow& window_;
  const size_t piece_;
  char* at_ = nullptr;
  size_t left_ = 0;  // behind `at_`
};

}  // namespace

CorpusReader::CorpusReader(const CorpusFiles& corpus, uint64_t seed, size_t window_bytes,
                           CorpusPosition start)
    : seed_(seed), window_bytes_(window_bytes), position_(start) {
  std::vector<const CorpusFile*> files;
  for (const CorpusFile& file : corpus.files) files.push_back(&file);
  Random random({.seed = seed, .stream = RandomStream::corpus_files});
  shuffle(files, random);
  uint64_t bytes = 0;
  for (const CorpusFile* file : files) {
    paths_.push_back(file->path.string());
    bytes_before_.push_back(bytes);
    bytes += file->stamp.bytes;
    stamps_.push_back(file->stamp);
  }
  bytes_before_.push_back(bytes);
  if (start.file < 0 || start.line < 0 || start.file > static_cast<int64_t>(files.size()))
    fail("a corpus of {} files has no file {}, line {} to go on from", files.size(), start.file,
         start.line);
}

bool CorpusReader::read_line() {
  const auto require_same_file = [this] {
    require_unchanged(path(position_.file), stamps_[static_cast<size_t>(position_.file)]);
  };
  try {
    if (reader_->next(line_)) return true;
  } catch (const Error&) {
    require_same_file();  // the better reason for whatever is wrong with it
    throw;
  }
  require_same_file();
  return false;
}

void CorpusReader::skip_lines(int64_t count, const std::stop_token& stop) {
  for (int64_t i = 0; i < count; ++i) {
    if (stop.stop_requested()) throw Cancelled();
    if (!read_line())
      fail("{}: has {} lines, but {} of it have been read before", path(position_.file), i, count);
  }
}

bool CorpusReader::next_line(const std::stop_token& stop) {
  if (have_line_) return true;
  while (position_.file < static_cast<int64_t>(paths_.size())) {
    if (!reader_) {
      reader_.emplace(open_byte_source(path(position_.file)), longest_line);
      skip_lines(position_.line, stop);
    }
    if (read_line()) return have_line_ = true;
    reader_.reset();
    position_ = {position_.file + 1, 0};
  }
  return false;
}

bool CorpusReader::next(CorpusWindow& window, const std::stop_token& stop) {
  window = {};
  LineKeeper keeper(window, std::min(window_bytes_, piece_bytes));
  // Where it begins: its own part of the random stream, however reading got here.
  bool begun = false;
  CorpusPosition begin;
  size_t used = 0;
  while (next_line(stop)) {
    if (stop.stop_requested()) throw Cancelled();
    if (!std::exchange(begun, true)) begin = position_;
    const size_t cost = line_.size() + sizeof(CorpusWindow::Line);
    if (!blank(line_)) {
      if (!window.lines.empty() && used + cost > window_bytes_) break;
      used += cost;
      window.lines.push_back({keeper.keep(line_), position_.file, position_.line + 1});
    }
    ++position_.line;
    have_line_ = false;
  }
  window.end = position_;
  if (window.lines.empty()) return false;
  Random random({.seed = seed_,
                 .stream = RandomStream::corpus_documents,
                 .block = static_cast<uint64_t>(begin.file),
                 .rollout = static_cast<uint32_t>(begin.line >> 32),
                 .step = static_cast<uint32_t>(begin.line)});
  shuffle(window.lines, random);
  return true;
}

}  // namespace sol
