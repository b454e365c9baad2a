#include "text/file_stamp.h"

#include "base/fail.h"

namespace sol {

FileStamp stamp_of(const std::filesystem::path& path) {
  std::error_code error;
  if (const auto status = std::filesystem::status(path, error);
      std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    fail("{}: is {}", path.string(),
         std::filesystem::is_directory(status) ? "a directory"
                                               : "not a regular file, but a device or a pipe");
  FileStamp stamp;
  stamp.bytes = std::filesystem::file_size(path, error);
  if (error) fail("{}: cannot read its size: {}", path.string(), error.message());
  const auto time = std::filesystem::last_write_time(path, error);
  if (error) fail("{}: cannot read its time of change: {}", path.string(), error.message());
  stamp.time = time.time_since_epoch().count();
  return stamp;
}

void require_unchanged(const std::filesystem::path& path, const FileStamp& before) {
  const FileStamp now = stamp_of(path);
  if (now == before) return;
  fail("{}: was changed while it was read ({}); begin again when nobody writes to it any more",
       path.string(),
       now.bytes == before.bytes
           ? "its time of change is another"
           : fmt::format("it had {} bytes and has {}", before.bytes, now.bytes));
}

}  // namespace sol
