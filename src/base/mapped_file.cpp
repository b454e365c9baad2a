#include "base/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/fail.h"
#include "base/file_io.h"

namespace sol {

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const int descriptor = open_regular_file(path);
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) {
    const int reason = errno;
    ::close(descriptor);
    fail("{}: cannot read its size: {}", path.string(), std::strerror(reason));
  }
  size_ = static_cast<size_t>(info.st_size);
  if (size_ > 0) {
    void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address == MAP_FAILED) {
      const int reason = errno;
      ::close(descriptor);
      fail("{}: cannot map {} bytes into memory: {}", path.string(), size_, std::strerror(reason));
    }
    data_ = static_cast<const std::byte*>(address);
  }
  ::close(descriptor);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace sol
