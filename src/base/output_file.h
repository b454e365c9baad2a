// Files that a command is asked to write: what must not be lost is not written over.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sol {

// A kind of file that a command writes, known by how every one of them begins.
struct OutputKind {
  std::string what;       // "a page of `sol report`"
  std::string beginning;  // in bytes
};

// Throws Error, before any work, where writing `out` would lose something or cannot succeed:
// - `out` is one of `inputs`, which are files that the command reads, under whatever name (links,
//   hard links, "..");
// - `out` is there and is neither empty nor of this kind. So a result replaces an older one of the
//   same command, and nothing else; the message says where the file belongs to a directory among
//   `inputs`. Devices and pipes hold nothing that could be lost;
// - as ensure_writable_file (base/file_io.h).
// Empty paths among `inputs` are of options that were not given.
void ensure_writable_output(const std::filesystem::path& out, const OutputKind& kind,
                            const std::vector<std::filesystem::path>& inputs = {});

// Of the above, only what must not be lost: for files in a directory that is yet to be made.
void require_replaceable(const std::filesystem::path& out, const OutputKind& kind,
                         const std::vector<std::filesystem::path>& inputs = {});

}  // namespace sol
