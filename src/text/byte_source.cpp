#include "text/byte_source.h"

#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/fail.h"
#include "base/file_io.h"

namespace sol {
namespace {

constexpr size_t chunk_bytes = 1 << 17;

class PlainSource : public ByteSource {
 public:
  explicit PlainSource(const std::filesystem::path& path)
      : path_(path.string()), file_(nullptr, std::fclose) {
    const int descriptor = open_regular_file(path);
    file_.reset(::fdopen(descriptor, "rb"));
    if (file_) return;
    const int reason = errno;
    ::close(descriptor);
    fail("{}: cannot open: {}", path_, std::strerror(reason));
  }

  size_t read(std::span<char> out) override {
    const size_t n = std::fread(out.data(), 1, out.size(), file_.get());
    if (n < out.size() && std::ferror(file_.get()))
      fail("{}: cannot read: {}", path_, std::strerror(errno));
    return n;
  }

  const std::string& path() const override { return path_; }

 private:
  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

// Inflates one gzip member after another: tools that append to logs and parallel compressors write
// several. zlib's own gzread would pass a file that is not compressed through without a word.
class GzipSource : public ByteSource {
 public:
  explicit GzipSource(const std::filesystem::path& path) : file_(path), input_(chunk_bytes) {
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) fail("{}: cannot start zlib", file_.path());
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  size_t read(std::span<char> out) override {
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    while (stream_.avail_out == out.size()) {
      if (stream_.avail_in == 0) {
        stream_.avail_in = static_cast<uInt>(file_.read(input_));
        stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
        if (stream_.avail_in == 0) {
          if (!between_members_) fail("{}: truncated gzip file", file_.path());
          return 0;
        }
      }
      if (between_members_) {
        inflateReset(&stream_);
        between_members_ = false;
      }
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result == Z_STREAM_END) {
        between_members_ = true;
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        fail("{}: damaged gzip file: {}", file_.path(),
             stream_.msg ? stream_.msg : "unexpected data");
      }
    }
    return out.size() - stream_.avail_out;
  }

  const std::string& path() const override { return file_.path(); }

 private:
  PlainSource file_;
  std::vector<char> input_;
  z_stream stream_{};
  bool between_members_ = false;  // also the end of the file is only valid there
};

class ZstdSource : public ByteSource {
 public:
  explicit ZstdSource(const std::filesystem::path& path)
      : file_(path), input_(ZSTD_DStreamInSize()), stream_(ZSTD_createDStream(), ZSTD_freeDStream) {
    if (!stream_) throw std::bad_alloc();
  }

  size_t read(std::span<char> out) override {
    ZSTD_outBuffer target{out.data(), out.size(), 0};
    while (target.pos == 0) {
      // With all input taken the decoder may still hold output, so it is asked before the file is.
      if (pending_.pos == pending_.size && !may_hold_output_) {
        pending_ = {input_.data(), file_.read(input_), 0};
        if (pending_.size == 0) {
          if (!between_frames_) fail("{}: truncated zstd file", file_.path());
          return 0;
        }
      }
      const size_t result = ZSTD_decompressStream(stream_.get(), &target, &pending_);
      if (ZSTD_isError(result))
        fail("{}: damaged zstd file: {}", file_.path(), ZSTD_getErrorName(result));
      between_frames_ = result == 0;
      may_hold_output_ = target.pos == target.size && !between_frames_;
    }
    return target.pos;
  }

  const std::string& path() const override { return file_.path(); }

 private:
  PlainSource file_;
  std::vector<char> input_;
  std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> stream_;
  ZSTD_inBuffer pending_{nullptr, 0, 0};
  bool between_frames_ = false;
  bool may_hold_output_ = false;
};

}  // namespace

std::string extension_of(const std::filesystem::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return extension;
}

bool is_compressed(const std::filesystem::path& path) {
  const std::string extension = extension_of(path);
  return extension == ".gz" || extension == ".zst";
}

std::unique_ptr<ByteSource> open_byte_source(const std::filesystem::path& path) {
  const std::string extension = extension_of(path);
  if (extension == ".gz") return std::make_unique<GzipSource>(path);
  if (extension == ".zst") return std::make_unique<ZstdSource>(path);
  return std::make_unique<PlainSource>(path);
}

size_t LineReader::read_more(std::span<char> out) {
  try {
    return source_->read(out);
  } catch (const Error& error) {
    if (line_number_ == 0) throw;
    fail("{} (after line {})", error.what(), line_number_);
  }
}

bool LineReader::next(std::string& line) {
  size_t searched = begin_;
  for (;;) {
    const size_t newline = buffer_.find('\n', searched);
    if (newline != std::string::npos) {
      line.assign(buffer_, begin_, newline + 1 - begin_);
      begin_ = newline + 1;
      ++line_number_;
      return true;
    }
    if (ended_) break;
    buffer_.erase(0, begin_);
    begin_ = 0;
    searched = buffer_.size();
    if (searched > limit_)
      fail("{}, line {}: longer than {} bytes; does each document have a line of its own?",
           source_->path(), line_number_ + 1, limit_);
    buffer_.resize(searched + chunk_bytes);
    const size_t n = read_more(std::span(buffer_).subspan(searched));
    buffer_.resize(searched + n);
    ended_ = n == 0;
  }
  if (begin_ == buffer_.size()) return false;
  line.assign(buffer_, begin_);
  begin_ = buffer_.size();
  ++line_number_;
  return true;
}

}  // namespace sol
