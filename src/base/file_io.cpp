#include "base/file_io.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/fail.h"

namespace sol {
namespace {

std::filesystem::path directory_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

int open_directory(const std::filesystem::path& dir) {
  const int descriptor = ::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail("{}: cannot open directory: {}", dir.string(), std::strerror(errno));
  return descriptor;
}

// Where the content of `path` lies: itself, or what its links lead to. Empty for a character device
// or a pipe, which are written to as they are.
std::filesystem::path file_to_replace(const std::filesystem::path& path) {
  if (path.empty()) fail("the name of a file to write is empty");
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    const int reason = errno;
    std::error_code none;
    const bool link = std::filesystem::is_symlink(std::filesystem::symlink_status(path, none));
    if (reason == ENOENT && link)
      fail("{}: is a link to a file that does not exist", path.string());
    if (reason != ENOENT) fail("{}: cannot be written: {}", path.string(), std::strerror(reason));
    return path;
  }
  if (S_ISDIR(info.st_mode)) fail("{}: is a directory, cannot be written as a file", path.string());
  if (S_ISCHR(info.st_mode) || S_ISFIFO(info.st_mode)) return {};
  if (!S_ISREG(info.st_mode)) fail("{}: exists and is not a regular file", path.string());
  if (::access(path.c_str(), W_OK) != 0)
    fail("{}: cannot be written: {}", path.string(), std::strerror(errno));
  return std::filesystem::canonical(path);
}

// For writing. A pipe is waited for until somebody reads, but not without end: what opens it
// without O_NONBLOCK cannot be interrupted.
int open_device_or_pipe(const std::filesystem::path& path) {
  constexpr std::chrono::seconds patience(5);
  const auto begin = std::chrono::steady_clock::now();
  int descriptor = -1;
  while ((descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK)) < 0 &&
         errno == ENXIO && std::filesystem::is_fifo(path)) {
    if (std::chrono::steady_clock::now() - begin > patience)
      fail("{}: nobody reads from this pipe; start the reader first", path.string());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  if (descriptor >= 0) ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  return descriptor;
}

constexpr std::string_view temporary_mark = ".sol-tmp-";

// Takes "<number><end>" off the front of `text`; -1 when there is none.
long take_number(std::string_view& text, std::string_view end) {
  long number = -1;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return -1;
  text.remove_prefix(static_cast<size_t>(stop - text.data()));
  if (!text.starts_with(end)) return -1;
  text.remove_prefix(end.size());
  return number;
}

// "<any name>.sol-tmp-<process>-<counter>"; 0 for other names.
long process_of_temporary(std::string_view name) {
  const size_t mark = name.rfind(temporary_mark);
  if (mark == std::string_view::npos) return 0;
  name.remove_prefix(mark + temporary_mark.size());
  const long process = take_number(name, "-");
  return take_number(name, "") >= 0 && name.empty() ? process : 0;
}

// Removes what earlier processes that were killed have left in the directory.
void remove_stale_temporaries(const std::filesystem::path& dir) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(dir, ignored)) {
    const long process = process_of_temporary(entry.path().filename().native());
    if (process > 0 && is_left_behind(entry.path(), process)) ::unlink(entry.path().c_str());
  }
}

// Creates a new file beside `target`: the rename must not cross file systems.
std::filesystem::path create_beside(const std::filesystem::path& target, int& descriptor) {
  static std::atomic<unsigned> counter{0};
  std::string name;
  do {
    name = fmt::format("{}{}{}-{}", target.string(), temporary_mark, ::getpid(), counter++);
    descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor < 0 && errno == EEXIST);
  if (descriptor < 0)
    fail("{}: cannot create a file in this directory: {}", directory_of(target).string(),
         std::strerror(errno));
  return name;
}

// Those of the file that will be replaced, where there is one and the file system has any.
void keep_permissions(const std::filesystem::path& replaced, int descriptor) {
  struct stat info {};
  if (::stat(replaced.c_str(), &info) == 0) (void)::fchmod(descriptor, info.st_mode & 07777);
}

}  // namespace

bool path_exists(const std::filesystem::path& path) {
  std::error_code error;
  const bool exists = std::filesystem::exists(path, error);
  if (error) fail("{}: cannot be looked up: {}", path.string(), error.message());
  return exists;
}

int open_regular_file(const std::filesystem::path& path) {
  if (path.empty()) fail("the name of a file to read is empty");
  // Without O_NONBLOCK the opening of a pipe would wait for somebody who writes.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) fail("{}: cannot open: {}", path.string(), std::strerror(errno));
  struct stat info {};
  const int result = ::fstat(descriptor, &info);
  const int reason = errno;
  if (result == 0 && S_ISREG(info.st_mode)) return descriptor;
  ::close(descriptor);
  if (result != 0) fail("{}: cannot open: {}", path.string(), std::strerror(reason));
  fail("{}: is {}", path.string(),
       S_ISDIR(info.st_mode) ? "a directory" : "not a regular file, but a device or a pipe");
}

std::string read_file(const std::filesystem::path& path, uint64_t limit) {
  const int descriptor = open_regular_file(path);
  std::string content;
  std::vector<char> buffer(1 << 16);
  ssize_t got;
  while ((got = ::read(descriptor, buffer.data(), buffer.size())) != 0) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 || content.size() + static_cast<size_t>(got) > limit) break;
    content.append(buffer.data(), static_cast<size_t>(got));
  }
  const int reason = errno;
  ::close(descriptor);
  if (got < 0) fail("{}: cannot read: {}", path.string(), std::strerror(reason));
  if (got > 0)
    fail("{}: has more than {} bytes, which no file of its kind has", path.string(), limit);
  return content;
}

void flush_file(const std::filesystem::path& path) {
  const int descriptor = open_regular_file(path);
  const int result = ::fsync(descriptor);
  const int reason = errno;
  ::close(descriptor);
  if (result != 0) fail("{}: cannot be written: {}", path.string(), std::strerror(reason));
}

void flush_directory(const std::filesystem::path& dir) {
  const int descriptor = open_directory(dir);
  const int result = ::fsync(descriptor);
  const int reason = errno;
  ::close(descriptor);
  // Some file systems have no such operation for directories; there is nothing to flush then.
  if (result != 0 && reason != EINVAL && reason != ENOTSUP)
    fail("{}: cannot flush directory: {}", dir.string(), std::strerror(reason));
}

bool is_left_behind(const std::filesystem::path& path, long process) {
  if (::kill(static_cast<pid_t>(process), 0) == 0 || errno != ESRCH) return false;
  // Without O_NONBLOCK the opening of a pipe would wait for somebody who writes.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) return false;
  const bool unlocked = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  ::close(descriptor);
  return unlocked;
}

void ensure_writable_directory(const std::filesystem::path& dir) {
  if (dir.empty()) fail("the name of a directory to write to is empty");
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

DirectoryLock::DirectoryLock(const std::filesystem::path& dir) : descriptor_(open_directory(dir)) {
  if (try_lock()) return;
  ::close(descriptor_);
  fail("{}: another process is writing to this directory", dir.string());
}

DirectoryLock::DirectoryLock(const std::filesystem::path& dir, const std::stop_token& stop,
                             const std::function<void()>& on_wait)
    : descriptor_(open_directory(dir)) {
  try {
    // A blocking flock() could not be told to stop.
    for (bool told = false; !try_lock();
         std::this_thread::sleep_for(std::chrono::milliseconds(100))) {
      if (stop.stop_requested()) throw Cancelled();
      if (!std::exchange(told, true) && on_wait) on_wait();
    }
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

bool DirectoryLock::try_lock() {
  return ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

DirectoryLock::~DirectoryLock() {
  ::close(descriptor_);
}

void ensure_writable_file(const std::filesystem::path& path) {
  const std::filesystem::path target = file_to_replace(path);
  if (!target.empty()) AtomicFile file(target);
}

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(std::move(path)), target_(file_to_replace(path_)) {
  int descriptor = -1;
  if (target_.empty()) {
    descriptor = open_device_or_pipe(path_);
  } else {
    remove_stale_temporaries(directory_of(target_));
    temporary_ = create_beside(target_, descriptor);
    keep_permissions(target_, descriptor);
    ::flock(descriptor, LOCK_EX | LOCK_NB);  // where the file system has no locks, there is none
    lock_ = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  }
  if (descriptor >= 0) file_ = ::fdopen(descriptor, "wb");
  if (file_) return;
  const int reason = errno;
  if (descriptor >= 0) ::close(descriptor);
  discard();
  fail("{}: cannot open for writing: {}", path_.string(), std::strerror(reason));
}

AtomicFile::~AtomicFile() {
  if (file_) std::fclose(file_);
  discard();
}

void AtomicFile::discard() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  if (lock_ >= 0) ::close(lock_);
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
  // A device or a pipe holds nothing that could be flushed to a disk.
  if (std::fflush(file_) != 0 || (!target_.empty() && ::fsync(::fileno(file_)) != 0))
    fail("{}: cannot write: {}", path_.string(), std::strerror(errno));
  // Closing can still report a delayed write error (network file systems).
  if (std::fclose(std::exchange(file_, nullptr)) != 0)
    fail("{}: cannot write: {}", path_.string(), std::strerror(errno));
}

void AtomicFile::commit() {
  if (std::exchange(committed_, true)) fail("{}: committed twice", path_.string());
  flush();
  if (target_.empty()) return;
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0)
    fail("{}: cannot rename {} to it: {}", target_.string(), temporary_.string(),
         std::strerror(errno));
  temporary_.clear();
  flush_directory(directory_of(target_));
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

void write_files_together(const std::filesystem::path& dir,
                          std::span<const std::pair<const char*, std::string>> contents) {
  std::vector<std::unique_ptr<AtomicFile>> files;
  for (const auto& [name, content] : contents) {
    files.push_back(std::make_unique<AtomicFile>(dir / name));
    files.back()->write(content);
  }
  for (const auto& file : files) file->flush();
  for (const auto& file : files) file->commit();
}

}  // namespace sol
