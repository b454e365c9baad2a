#include "base/system_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

#include "base/fail.h"

namespace sol {
namespace {

namespace fs = std::filesystem;

// The number after `key` in a file of "key value" lines; an empty key: the file's first word.
std::optional<uint64_t> read_number(const fs::path& path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    if (!key.empty()) {
      if (word != key) {
        file.ignore(1 << 20, '\n');
        continue;
      }
      file >> word;
    }
    try {
      return std::stoull(word);
    } catch (const std::exception&) {
      return std::nullopt;  // "max"
    }
  }
  return std::nullopt;
}

// The control group's path, of version 2: "0::/path".
std::string control_group(const fs::path& root) {
  std::ifstream file(root / "proc/self/cgroup");
  std::string line;
  while (std::getline(file, line))
    if (line.starts_with("0::")) return line.substr(3);
  return "/";
}

// Addresses that are reserved and hardly used: 72 MiB for each thread's heap and stack, and
// OpenBLAS's buffer of 128 MiB, which it goes on asking for without end where it gets none.
constexpr uint64_t unused_addresses = uint64_t{512} << 20;

// Bytes of this process.
struct OwnMemory {
  uint64_t mapped = 0, resident = 0;
};
OwnMemory own_memory() {
  std::ifstream file("/proc/self/statm");
  uint64_t mapped = 0, resident = 0;
  file >> mapped >> resident;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return {mapped * page, resident * page};
}

}  // namespace

uint64_t available_memory_under(const fs::path& root) {
  uint64_t available = UINT64_MAX;
  if (const auto kib = read_number(root / "proc/meminfo", "MemAvailable:")) available = *kib * 1024;
  // Every group above has a say. A container sees its own group as the root, whatever path the
  // process is told.
  fs::path group = control_group(root);
  for (bool more = true; more; group = group.parent_path()) {
    const fs::path dir = root / "sys/fs/cgroup" / group.relative_path();
    const auto limit = read_number(dir / "memory.max", "");
    const auto used = read_number(dir / "memory.current", "");
    if (limit && used) {
      // Cached files count as used, but give way.
      const uint64_t cached = read_number(dir / "memory.stat", "inactive_file").value_or(0);
      const uint64_t needed = *used - std::min(*used, cached);
      available = std::min(available, *limit - std::min(*limit, needed));
    }
    more = group.has_relative_path();
  }
  return available;
}

void require_addresses(uint64_t bytes, const std::string& who) {
  struct Limit {
    decltype(RLIMIT_AS) resource;
    const char* option;
  };
  for (const Limit& limit : {Limit{RLIMIT_AS, "-v"}, Limit{RLIMIT_DATA, "-d"}}) {
    rlimit value{};
    if (getrlimit(limit.resource, &value) != 0 || value.rlim_cur == RLIM_INFINITY ||
        value.rlim_cur >= bytes)
      continue;
    fail("{}: needs {} MiB of addresses at least, and ulimit {} allows {} MiB; raise it", who,
         bytes >> 20, limit.option, value.rlim_cur >> 20);
  }
}

uint64_t available_memory() {
  const uint64_t available = available_memory_under("/");
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return available;
  const uint64_t taken = own_memory().mapped + unused_addresses;
  return std::min<uint64_t>(available, limit.rlim_cur - std::min<uint64_t>(limit.rlim_cur, taken));
}

uint64_t resident_memory() {
  return own_memory().resident;
}

}  // namespace sol
