// Bytes of a file as a stream, decompressed where its name says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace sol {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills a part of `out` (not empty) and returns its size; 0 at the end. Throws Error naming the
  // file when it cannot be read, is damaged or ends in the middle of a compressed stream.
  virtual size_t read(std::span<char> out) = 0;
  virtual const std::string& path() const = 0;
};

// The last extension in lower case: names from other systems are often in upper case.
std::string extension_of(const std::filesystem::path& path);
// Whether that is .gz or .zst.
bool is_compressed(const std::filesystem::path& path);

// Plain, .gz or .zst by the last extension.
std::unique_ptr<ByteSource> open_byte_source(const std::filesystem::path& path);

// Lines of a byte source, each with its newline (the last may lack one).
class LineReader {
 public:
  // A line may have `limit` bytes, for who must not hold a whole file that has no newlines.
  explicit LineReader(std::unique_ptr<ByteSource> source,
                      size_t limit = std::numeric_limits<size_t>::max())
      : source_(std::move(source)), limit_(limit) {}
  // False at the end. Throws the source's Error, with the number of lines that came before it, and
  // one for a line that is longer than the limit.
  bool next(std::string& line);
  int64_t line_number() const { return line_number_; }  // of the line last read, from 1

 private:
  size_t read_more(std::span<char> out);
  std::unique_ptr<ByteSource> source_;
  size_t limit_;
  std::string buffer_;
  size_t begin_ = 0;
  int64_t line_number_ = 0;
  bool ended_ = false;
};

}  // namespace sol
