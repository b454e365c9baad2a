#include "base/open_files.h"

#include <sys/resource.h>

#include <algorithm>

#include "base/fail.h"

namespace sol {

void ensure_open_files(uint64_t count) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= count) return;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = std::min<rlim_t>(count, limit.rlim_max);
  if (limit.rlim_cur >= count && setrlimit(RLIMIT_NOFILE, &limit) == 0) return;
  fail(
      "a process may have {} files and connections open here, and {} are needed; raise its limit "
      "(ulimit -n {}, or the container's)",
      before, count, count);
}

}  // namespace sol
