#include "base/staged_directory.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/fail.h"

namespace sol {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view temporary_mark = ".tmp-";

// "<final name>.tmp-<process>"; 0 for other names.
long process_of_temporary(std::string_view name, std::string_view final) {
  if (!name.starts_with(final)) return 0;
  name.remove_prefix(final.size());
  if (!name.starts_with(temporary_mark)) return 0;
  name.remove_prefix(temporary_mark.size());
  long process = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data(), end, process);
  return error == std::errc() && stop == end ? process : 0;
}

void remove_stale_directories(const fs::path& final) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(final.parent_path(), ignored)) {
    const long process =
        process_of_temporary(entry.path().filename().native(), final.filename().native());
    if (process > 0 && fs::is_directory(entry.symlink_status(ignored)) &&
        is_left_behind(entry.path(), process))
      fs::remove_all(entry.path(), ignored);
  }
}

}  // namespace

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
  remove_stale_directories(final_);
  path_ = final_;
  path_ += fmt::format("{}{}", temporary_mark, ::getpid());
  std::error_code ignored;
  fs::remove_all(path_, ignored);  // of a process that died with this number
  ensure_writable_directory(path_);
  lock_.emplace(path_);
}

StagedDirectory::~StagedDirectory() {
  std::error_code ignored;
  if (!placed_) fs::remove_all(path_, ignored);
}

void StagedDirectory::place() {
  if (std::rename(path_.c_str(), final_.c_str()) != 0)
    fail("{}: cannot rename {} to it: {}", final_.string(), path_.string(), std::strerror(errno));
  placed_ = true;
  flush_directory(final_.parent_path());
}

}  // namespace sol
