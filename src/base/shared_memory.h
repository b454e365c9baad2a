// Memory that several processes of one machine have in common: one makes and fills it, the others
// read it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace sol {

// An anonymous file in memory. It has no name that could be left behind: it goes with the last
// process that has it open.
class SharedMemory {
 public:
  // Of no size yet.
  static std::shared_ptr<SharedMemory> create();
  // What another process of the same user made and has filled, by its path. Read-only. Throws
  // Error when it cannot be opened, as from another container.
  static std::shared_ptr<SharedMemory> open(const std::filesystem::path& path);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // Makes room, once, in created memory; pages that are never written take none. Throws Error when
  // the system refuses.
  void reserve(size_t bytes);

  bool opened() const { return opened_; }  // filled by another process
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  // By which other processes open it while this one lives.
  std::filesystem::path path() const;

 private:
  SharedMemory(int descriptor, bool opened) : descriptor_(descriptor), opened_(opened) {}
  void map(size_t bytes);

  int descriptor_;
  bool opened_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace sol
