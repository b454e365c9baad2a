#include "base/file_io.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/fail.h"

namespace sol {
namespace {

std::filesystem::path directory_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

// The name of the rename lives in the directory: without this a power cut could undo it.
void flush_directory(const std::filesystem::path& dir) {
  const int descriptor = ::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail("{}: cannot open directory: {}", dir.string(), std::strerror(errno));
  const int result = ::fsync(descriptor);
  const int reason = errno;
  ::close(descriptor);
  // Some file systems have no such operation for directories; there is nothing to flush then.
  if (result != 0 && reason != EINVAL && reason != ENOTSUP)
    fail("{}: cannot flush directory: {}", dir.string(), std::strerror(reason));
}

// Creates a new file beside `path`: the rename must not cross file systems.
std::filesystem::path create_beside(const std::filesystem::path& path, std::FILE*& file) {
  static std::atomic<unsigned> counter{0};
  std::string name;
  int descriptor;
  do {
    name = fmt::format("{}.tmp-{}-{}", path.string(), ::getpid(), counter++);
    descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor < 0 && errno == EEXIST);
  if (descriptor < 0)
    fail("{}: cannot create a file in this directory: {}", directory_of(path).string(),
         std::strerror(errno));
  file = ::fdopen(descriptor, "wb");
  if (!file) {
    const int reason = errno;
    ::close(descriptor);
    ::unlink(name.c_str());
    fail("{}: cannot open for writing: {}", path.string(), std::strerror(reason));
  }
  return name;
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  std::error_code status;
  if (std::filesystem::is_directory(path, status)) fail("{}: is a directory", path.string());
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                             std::fclose);
  if (!file) fail("{}: cannot open: {}", path.string(), std::strerror(errno));
  std::string content;
  std::vector<char> buffer(1 << 16);
  while (const size_t n = std::fread(buffer.data(), 1, buffer.size(), file.get()))
    content.append(buffer.data(), n);
  if (std::ferror(file.get())) fail("{}: cannot read: {}", path.string(), std::strerror(errno));
  return content;
}

void ensure_writable_directory(const std::filesystem::path& dir) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) fail("{}: cannot create directory: {}", dir.string(), error.message());
  if (!std::filesystem::is_directory(dir, error)) fail("{}: not a directory", dir.string());
  // Permission bits do not tell (read-only mounts, access lists, quotas), a real file does.
  std::string probe = (dir / ".write-test-XXXXXX").string();
  const int descriptor = ::mkostemp(probe.data(), O_CLOEXEC);
  if (descriptor < 0) fail("{}: cannot write to directory: {}", dir.string(), std::strerror(errno));
  ::close(descriptor);
  ::unlink(probe.c_str());
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code status;
  if (std::filesystem::is_directory(path_, status))
    fail("{}: is a directory, cannot be written as a file", path_.string());
  temporary_ = create_beside(path_, file_);
}

AtomicFile::~AtomicFile() {
  if (file_) std::fclose(file_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (!file_) fail("{}: written to after it was flushed", path_.string());
  if (bytes.empty()) return;
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size())
    fail("{}: cannot write: {}", path_.string(), std::strerror(errno));
}

void AtomicFile::write(std::string_view text) {
  write(std::as_bytes(std::span(text)));
}

void AtomicFile::flush() {
  if (!file_) return;
  if (std::fflush(file_) != 0 || ::fsync(::fileno(file_)) != 0)
    fail("{}: cannot write: {}", path_.string(), std::strerror(errno));
  // Closing can still report a delayed write error (network file systems).
  if (std::fclose(std::exchange(file_, nullptr)) != 0)
    fail("{}: cannot write: {}", path_.string(), std::strerror(errno));
}

void AtomicFile::commit() {
  if (temporary_.empty()) fail("{}: committed twice", path_.string());
  flush();
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
    fail("{}: cannot rename {} to it: {}", path_.string(), temporary_.string(),
         std::strerror(errno));
  temporary_.clear();
  flush_directory(directory_of(path_));
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

}  // namespace sol
