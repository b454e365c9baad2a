#include "base/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fail.h"

namespace sol {

std::shared_ptr<SharedMemory> SharedMemory::create() {
  const int descriptor = memfd_create("sol-weights", MFD_CLOEXEC);
  if (descriptor < 0) fail("shared memory: cannot be made: {}", std::strerror(errno));
  return std::shared_ptr<SharedMemory>(new SharedMemory(descriptor, false));
}

std::shared_ptr<SharedMemory> SharedMemory::open(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    fail(
        "{}: shared memory of another process cannot be opened: {}. Processes of one machine that "
        "do not see each other, as in different containers, are started as on different machines "
        "(LOCAL_RANK 0, LOCAL_WORLD_SIZE 1)",
        path.string(), std::strerror(errno));
  const std::shared_ptr<SharedMemory> out(new SharedMemory(descriptor, true));
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || status.st_size <= 0)
    fail("{}: shared memory of another process is empty", path.string());
  out->map(static_cast<size_t>(status.st_size));
  return out;
}

SharedMemory::~SharedMemory() {
  if (data_) munmap(data_, size_);
  close(descriptor_);
}

void SharedMemory::reserve(size_t bytes) {
  if (opened_ || data_) fail("shared memory: has its size already");
  if (ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0)
    fail("shared memory: no room for {} bytes: {}", bytes, std::strerror(errno));
  map(bytes);
}

void SharedMemory::map(size_t bytes) {
  const int access = opened_ ? PROT_READ : PROT_READ | PROT_WRITE;
  void* const address = mmap(nullptr, bytes, access, MAP_SHARED | MAP_NORESERVE, descriptor_, 0);
  if (address == MAP_FAILED)
    fail("shared memory: {} bytes cannot be mapped: {}", bytes, std::strerror(errno));
  data_ = static_cast<std::byte*>(address);
  size_ = bytes;
}

std::filesystem::path SharedMemory::path() const {
  return fmt::format("/proc/{}/fd/{}", getpid(), descriptor_);
}

}  // namespace sol
