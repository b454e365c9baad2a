// Whether a file is still the one that it was when work on it began.
#pragma once

#include <cstdint>
#include <filesystem>

namespace sol {

struct FileStamp {
  uint64_t bytes = 0;
  int64_t time = 0;  // of change, in the file system's ticks
  bool operator==(const FileStamp&) const = default;
};

// Throws Error naming the path where it cannot be looked up or is no regular file.
FileStamp stamp_of(const std::filesystem::path& path);

// Throws Error naming the path where the file is gone, or has another size or time of change than
// `before`: what was read of it is neither the old text nor the new one.
void require_unchanged(const std::filesystem::path& path, const FileStamp& before);

}  // namespace sol
