// Reading whole files and writing ones that matter.
#pragma once

#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace sol {

// Throws Error naming the path and the system's reason.
std::string read_file(const std::filesystem::path& path);

// Creates the directory and its parents. Throws Error when that fails or when the path is not a
// directory one can write to: called before long work starts, not after it.
void ensure_writable_directory(const std::filesystem::path& dir);

// A file written beside its final name, which commit() renames over it; without commit() the
// destructor removes it, so a full disk or a crash never leaves half a file under the final name.
// Several files that belong together are all flushed before the first of them is committed: then
// only renames are left that could fail. Every call throws Error naming the path and the system's
// reason.
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
  std::filesystem::path path_, temporary_;
  std::FILE* file_ = nullptr;  // null once flushed
};

void write_file_atomically(const std::filesystem::path& path, std::string_view content);

}  // namespace sol
