// The entries of a zip archive that are stored as they are, which is what torch.save writes.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "base/mapped_file.h"

namespace sol {

class ZipArchive {
 public:
  // Throws Error naming the file and the entry for anything that is not such an archive: no
  // directory at the end, compressed or encrypted entries, entries outside the file, a name that is
  // there twice, more than 4 GiB, a checksum that is wrong.
  explicit ZipArchive(const std::filesystem::path& path);

  // By name; valid as long as this object.
  const std::map<std::string, std::span<const std::byte>>& entries() const { return entries_; }

 private:
  MappedFile file_;
  std::map<std::string, std::span<const std::byte>> entries_;
};

}  // namespace sol
