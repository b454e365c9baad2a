// Memory behind which nothing may be read: sanitizers do not see what tiles read.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace sol::test {

// A copy of bytes that ends where no memory may be read.
class GuardedCopy {
 public:
  explicit GuardedCopy(const std::vector<std::byte>& bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t filled = (bytes.size() + page - 1) / page * page;
    size_ = filled + page;
    memory_ = static_cast<std::byte*>(
        mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    begin_ = memory_ + filled - bytes.size();
    std::copy(bytes.begin(), bytes.end(), begin_);
    mprotect(memory_ + filled, page, PROT_NONE);
  }
  ~GuardedCopy() { munmap(memory_, size_); }
  GuardedCopy(const GuardedCopy&) = delete;
  std::byte* data() const { return begin_; }

 private:
  size_t size_;
  std::byte *memory_, *begin_;
};

}  // namespace sol::test
