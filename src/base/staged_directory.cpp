#include "base/staged_directory.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/fail.h"
#include "base/file_io.h"

namespace sol {

namespace fs = std::filesystem;

void require_free_directory(const fs::path& dir) {
  std::error_code error;
  if (!fs::exists(dir, error)) return;
  if (!fs::is_directory(dir, error)) fail("{}: exists and is not a directory", dir.string());
  if (!fs::is_empty(dir, error))
    fail("{}: exists and is not empty; choose another directory or remove it", dir.string());
}

StagedDirectory::StagedDirectory(const fs::path& final)
    : final_(fs::absolute(final).lexically_normal()) {
  if (!final_.has_filename()) final_ = final_.parent_path();  // "out/", and "." likewise
  require_free_directory(final_);
  path_ = final_;
  path_ += fmt::format(".tmp-{}", ::getpid());
  std::error_code ignored;
  fs::remove_all(path_, ignored);  // of a process that died with this number
  ensure_writable_directory(path_);
}

StagedDirectory::~StagedDirectory() {
  std::error_code ignored;
  if (!placed_) fs::remove_all(path_, ignored);
}

void StagedDirectory::place() {
  if (std::rename(path_.c_str(), final_.c_str()) != 0)
    fail("{}: cannot rename {} to it: {}", final_.string(), path_.string(), std::strerror(errno));
  placed_ = true;
}

}  // namespace sol
