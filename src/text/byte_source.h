// Bytes of a file as a stream, decompressed where its name says so.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace sol {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills a part of `out` (not empty) and returns its size; 0 at the end. Throws Error naming the
  // file when it cannot be read, is damaged or ends in the middle of a compressed stream.
  virtual size_t read(std::span<char> out) = 0;
};

// Plain, .gz or .zst by the last extension.
std::unique_ptr<ByteSource> open_byte_source(const std::filesystem::path& path);

// Lines of a byte source, each with its newline (the last may lack one).
class LineReader {
 public:
  explicit LineReader(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}
  bool next(std::string& line);                         // false at the end
  int64_t line_number() const { return line_number_; }  // of the line last read, from 1

 private:
  std::unique_ptr<ByteSource> source_;
  std::string buffer_;
  size_t begin_ = 0;
  int64_t line_number_ = 0;
  bool ended_ = false;
};

}  // namespace sol
