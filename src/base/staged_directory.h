// A directory that appears under its name as a whole or not at all.
#pragma once

#include <filesystem>
#include <optional>

#include "base/file_io.h"

namespace sol {

// Throws Error when there is something under this name already, other than an empty directory.
void require_free_directory(const std::filesystem::path& dir);

// Files are written to path(), beside the final name; without place() it is removed again. What
// processes that were killed have left of earlier attempts at the same name is removed first.
class StagedDirectory {
 public:
  // `final` may end in a slash. Throws Error where it is not free, or a directory beside it cannot
  // be made.
  explicit StagedDirectory(const std::filesystem::path& final);
  ~StagedDirectory();
  StagedDirectory(const StagedDirectory&) = delete;
  StagedDirectory& operator=(const StagedDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // The directory has its name, also after a power cut. Throws Error when it cannot be renamed.
  void place();

 private:
  std::filesystem::path final_, path_;
  std::optional<DirectoryLock> lock_;  // of path_, which so is nobody's leftover
  bool placed_ = false;
};

}  // namespace sol
