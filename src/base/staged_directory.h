// A directory that appears under its name as a whole or not at all.
#pragma once

#include <filesystem>

namespace sol {

// Throws Error when there is something under this name already, other than an empty directory.
void require_free_directory(const std::filesystem::path& dir);

// Files are written to path(), beside the final name; without place() it is removed again.
class StagedDirectory {
 public:
  // `final` may end in a slash. Throws Error where it is not free, or a directory beside it cannot
  // be made.
  explicit StagedDirectory(const std::filesystem::path& final);
  ~StagedDirectory();
  StagedDirectory(const StagedDirectory&) = delete;
  StagedDirectory& operator=(const StagedDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void place();  // throws Error when it cannot be renamed

 private:
  std::filesystem::path final_, path_;
  bool placed_ = false;
};

}  // namespace sol
