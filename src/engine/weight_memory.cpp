#include "engine/weight_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "base/fail.h"

namespace sol {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kLabelBytes = 512;

size_t alignment_of(size_t bytes) {
  return bytes >= kHugePage ? kHugePage : 64;
}
size_t round_up(size_t bytes, size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

void WeightMemory::Free::operator()(void* p) const {
  std::free(p);
}

WeightMemory::WeightMemory(std::shared_ptr<SharedMemory> shared, size_t most_bytes,
                           std::string_view contents)
    : shared_(std::move(shared)) {
  if (!shared_) return;
  if (!shared_->opened()) shared_->reserve(round_up(most_bytes + kLabelBytes, kHugePage));
  const std::string label(contents.substr(0, kLabelBytes - 1));
  const std::byte* const found =
      make(kLabelBytes, [&](std::byte* out) { std::memcpy(out, label.c_str(), label.size() + 1); });
  const char* const text = reinterpret_cast<const char*>(found);
  if (const std::string_view held(text, strnlen(text, kLabelBytes)); held != label)
    fail(
        "shared weights: another process holds {}, this one wants {}; start all with the same "
        "model and options",
        held, label);
}

std::byte* WeightMemory::block(size_t bytes) {
  const size_t alignment = alignment_of(bytes);
  if (shared_) {
    const size_t begin = round_up(used_, alignment);
    if (bytes > shared_->size() || begin > shared_->size() - bytes) throw std::bad_alloc();
    used_ = begin + bytes;
    return shared_->data() + begin;
  }
  void* p = std::aligned_alloc(alignment, round_up(bytes, alignment));
  if (!p) throw std::bad_alloc();
  blocks_.emplace_back(p);
  return static_cast<std::byte*>(p);
}

std::byte* WeightMemory::allocate(size_t bytes) {
  std::byte* const out = block(bytes);
  // Whole huge pages only: the rest of the last one would be memory that nobody needs. Advice that
  // the system does not take changes nothing.
  if (bytes >= kHugePage) (void)madvise(out, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return out;
}

const std::byte* WeightMemory::make(size_t bytes, const std::function<void(std::byte*)>& fill) {
  std::byte* const out = allocate(bytes);
  if (!filled()) fill(out);
  return out;
}

}  // namespace sol
