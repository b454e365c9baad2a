#include "base/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fail.h"
#include "base/file_io.h"

namespace sol {
namespace {

namespace fs = std::filesystem;

bool same_file(const fs::path& one, const fs::path& other) {
  std::error_code absent;
  return fs::equivalent(one, other, absent);
}

bool begins_with(const fs::path& path, const std::string& beginning) {
  const int descriptor = open_regular_file(path);
  std::string found(beginning.size(), '\0');
  size_t size = 0;
  ssize_t got = 1;
  while (size < found.size() && got != 0) {
    got = ::read(descriptor, found.data() + size, found.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) break;
    size += static_cast<size_t>(got);
  }
  const int reason = errno;
  ::close(descriptor);
  if (got < 0) fail("{}: cannot read: {}", path.string(), std::strerror(reason));
  return size == beginning.size() && found == beginning;
}

// The directory among `inputs` that `file`, which is there, lies in at any depth; or nothing.
fs::path directory_with(const fs::path& file, const std::vector<fs::path>& inputs) {
  std::error_code unknown;
  const fs::path real = fs::canonical(file, unknown);
  for (fs::path dir = real.parent_path(); !unknown; dir = dir.parent_path()) {
    for (const fs::path& input : inputs)
      if (!input.empty() && same_file(dir, input)) return input;
    if (dir == dir.root_path()) break;
  }
  return {};
}

}  // namespace

void require_replaceable(const fs::path& out, const OutputKind& kind,
                         const std::vector<fs::path>& inputs) {
  std::error_code absent;
  for (const fs::path& input : inputs)
    if (!input.empty() && !fs::is_directory(input, absent) && same_file(out, input))
      fail("{}: is the input {} and would be overwritten; choose another output", out.string(),
           input.string());
  if (!fs::is_regular_file(out, absent) || fs::file_size(out) == 0) return;
  if (begins_with(out, kind.beginning)) return;
  const fs::path dir = directory_with(out, inputs);
  if (!dir.empty())
    fail("{}: belongs to the input {}, is not {} and would be overwritten; choose another output",
         out.string(), dir.string(), kind.what);
  fail(
      "{}: is there already and is not {}; it is not overwritten: choose another output, or delete "
      "it first",
      out.string(), kind.what);
}

void ensure_writable_output(const fs::path& out, const OutputKind& kind,
                            const std::vector<fs::path>& inputs) {
  require_replaceable(out, kind, inputs);
  ensure_writable_file(out);
}

}  // namespace sol
