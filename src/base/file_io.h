// Reading whole files and writing ones that matter.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace sol {

// What a file that is read whole may have, where nothing larger is to be expected.
inline constexpr uint64_t default_file_limit = uint64_t{256} << 20;

// Whether there is anything under this name; a link whose target is missing is nothing. Throws
// Error naming the path and the system's reason when that cannot be found out.
bool path_exists(const std::filesystem::path& path);

// Opens a regular file, or a link to one, for reading: a device has no end, and nobody may ever
// write into a pipe. The caller closes the descriptor. Throws Error naming the path and the
// system's reason.
int open_regular_file(const std::filesystem::path& path);

// The whole content. Throws Error as open_regular_file, and for a file of more than `limit` bytes.
std::string read_file(const std::filesystem::path& path, uint64_t limit = default_file_limit);

// Waits until all that was written to a file is on the disk. Throws Error naming the path and the
// system's reason.
void flush_file(const std::filesystem::path& path);

// Likewise of a directory's names: without it a power cut could undo a rename there, or what was
// made. Nothing where the file system has no such operation.
void flush_directory(const std::filesystem::path& dir);

// Whether the process of this number that made a file or directory has ended: no process has the
// number, and nobody has what it made locked either, as a process of another container has numbers
// of its own. False where the file system has no locks.
bool is_left_behind(const std::filesystem::path& path, long process);

// Creates the directory and its parents. Throws Error when that fails or when the path is not a
// directory one can write to: called before long work starts, not after it.
void ensure_writable_directory(const std::filesystem::path& dir);

// While it lives, no other process can hold the same directory: for runs that write several files
// over hours. A process that ends in whatever way lets go of it.
class DirectoryLock {
 public:
  // Throws Error when another process holds `dir`. Where the file system has no locks, there is
  // none.
  explicit DirectoryLock(const std::filesystem::path& dir);
  // Waits for it instead; `on_wait` is called once where there is somebody to wait for. Throws
  // Cancelled soon after `stop` is requested.
  DirectoryLock(const std::filesystem::path& dir, const std::stop_token& stop,
                const std::function<void()>& on_wait = {});
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  bool try_lock();
  int descriptor_;
};

// Throws the Error that an AtomicFile of this path would: called before long work starts.
void ensure_writable_file(const std::filesystem::path& path);

// A file written beside its final name, which commit() renames over it; without commit() the
// destructor removes it, so a full disk or a crash never leaves half a file under the final name.
// Several files that belong together are all flushed before the first of them is committed: then
// only renames are left that could fail. A link stays, and the file it leads to is replaced by one
// with the same permissions; one that the caller may not write to is not. What has no content to
// replace, a character device or a pipe that somebody reads from, is written to directly. Every
// call throws Error naming the path and the system's reason.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  void flush();   // all that was written is on the disk; nothing can be written any more
  void commit();  // flushes where that has not been done

 private:
  void discard();  // the temporary file, where there still is one
  std::filesystem::path path_;
  std::filesystem::path target_, temporary_;  // empty where written to directly
  int lock_ = -1;                             // held as long as the temporary file is in use
  std::FILE* file_ = nullptr;                 // null once flushed
  bool committed_ = false;
};

void write_file_atomically(const std::filesystem::path& path, std::string_view content);

// All are complete on the disk before the first replaces an older one.
void write_files_together(const std::filesystem::path& dir,
                          std::span<const std::pair<const char*, std::string>> contents);

}  // namespace sol
