#include "engine/weight_memory.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "base/fail.h"
#include "base/large_memory.h"

namespace sol {
namespace {

constexpr size_t kLabelBytes = 512;

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
  if (!shared_->opened()) shared_->reserve(round_up(most_bytes + kLabelBytes, huge_page_bytes));
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

std::byte* WeightMemory::allocate(size_t bytes) {
  if (shared_) {
    const size_t begin = round_up(used_, large_alignment(bytes));
    if (bytes > shared_->size() || begin > shared_->size() - bytes) throw std::bad_alloc();
    used_ = begin + bytes;
    std::byte* const block = shared_->data() + begin;
    prefer_huge_pages(block, bytes);
    return block;
  }
  blocks_.emplace_back(allocate_large(bytes));
  return static_cast<std::byte*>(blocks_.back().get());
}

const std::byte* WeightMemory::make(size_t bytes, const std::function<void(std::byte*)>& fill) {
  std::byte* const out = allocate(bytes);
  if (!filled()) fill(out);
  return out;
}

}  // namespace sol
