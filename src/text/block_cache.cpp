#include "text/block_cache.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "base/fail.h"
#include "base/hash.h"
#include "text/file_stamp.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace sol {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::array<char, 8> start_mark{'S', 'O', 'L', 'I', 'D', 'S', '0', '1'};
constexpr std::array<char, 8> end_mark{'S', 'O', 'L', 'I', 'D', 'E', 'N', 'D'};

// The file: Head, the ids as 32-bit integers, Tail. The tail is known only when all ids are
// written.
struct Head {
  std::array<char, 8> mark;
  std::array<char, 32> key;
  std::array<char, 24> reserved;
};
struct Tail {
  uint64_t count;
  uint64_t checksum;  // XXH3-64 of the ids' bytes
  std::array<char, 8> mark;
};
static_assert(sizeof(Head) == 64 && sizeof(Tail) == 24);

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

[[noreturn]] void fail_damaged(const std::filesystem::path& path, const char* what,
                               const std::string& remedy) {
  fail("{}: this file of token ids is damaged ({}); {}", path.string(), what, remedy);
}

}  // namespace

std::string block_cache_key(const std::vector<std::filesystem::path>& files,
                            const TextOptions& options, const std::string& tokenizer_fingerprint) {
  std::string text = fmt::format(
      "{} {} {} {}{}\n", std::string(start_mark.begin(), start_mark.end()), tokenizer_fingerprint,
      static_cast<int>(options.format), options.framed ? "framed " : "", options.text_field);
  for (const std::filesystem::path& file : files) {
    const FileStamp stamp = stamp_of(file);
    const std::string path = std::filesystem::absolute(file).lexically_normal().string();
    // Lengths keep two lists of names apart that would read the same joined.
    text += fmt::format("{} {} {} {}\n", path.size(), path, stamp.bytes, stamp.time);
  }
  return hash_128(text);
}

std::filesystem::path block_cache_path(const std::filesystem::path& cache_dir,
                                       const std::vector<std::filesystem::path>& files,
                                       const std::string& key) {
  const std::string name = files.empty() ? "text" : files.front().filename().string();
  return cache_dir / fmt::format("{}-{}.ids", name, key.substr(0, 16));
}

struct BlockCacheWriter::State {
  explicit State(const std::filesystem::path& path) : file(path) { XXH3_64bits_reset(&hash); }
  AtomicFile file;
  XXH3_state_t hash;
  uint64_t count = 0;
};

BlockCacheWriter::BlockCacheWriter(const std::filesystem::path& path, const std::string& key)
    : state_(std::make_unique<State>(path)) {
  Head head{start_mark, {}, {}};
  if (key.size() != head.key.size()) fail("{}: a cache key has 32 digits", path.string());
  std::memcpy(head.key.data(), key.data(), key.size());
  state_->file.write(bytes_of(head));
}

BlockCacheWriter::~BlockCacheWriter() = default;

void BlockCacheWriter::append(std::span<const int32_t> ids) {
  const auto bytes = std::as_bytes(ids);
  state_->file.write(bytes);
  XXH3_64bits_update(&state_->hash, bytes.data(), bytes.size());
  state_->count += ids.size();
}

void BlockCacheWriter::commit() {
  const Tail tail{state_->count, XXH3_64bits_digest(&state_->hash), end_mark};
  state_->file.write(bytes_of(tail));
  state_->file.commit();
}

std::optional<CachedIds> open_block_cache(const std::filesystem::path& path, const std::string& key,
                                          CacheCheck check, const std::string& remedy) {
  if (!path_exists(path)) return std::nullopt;
  auto file = std::make_shared<const MappedFile>(path);
  const std::span<const std::byte> bytes = file->bytes();
  if (bytes.size() < sizeof(Head) + sizeof(Tail)) fail_damaged(path, "too short", remedy);
  Head head;
  std::memcpy(&head, bytes.data(), sizeof(head));
  if (head.mark != start_mark) fail_damaged(path, "it does not begin like one", remedy);
  if (std::string_view(head.key.data(), head.key.size()) != key) return std::nullopt;
  Tail tail;
  std::memcpy(&tail, bytes.data() + bytes.size() - sizeof(tail), sizeof(tail));
  const std::span<const std::byte> content =
      bytes.subspan(sizeof(Head), bytes.size() - sizeof(Head) - sizeof(Tail));
  if (tail.mark != end_mark || content.size() % sizeof(int32_t) != 0 ||
      tail.count != content.size() / sizeof(int32_t))
    fail_damaged(path, "truncated", remedy);
  const auto* ids = reinterpret_cast<const int32_t*>(content.data());
  CachedIds cached{
      std::move(file), {ids, static_cast<size_t>(tail.count)}, path, tail.checksum, remedy};
  if (check == CacheCheck::checksum) require_checksum(cached);
  return cached;
}

void require_checksum(const CachedIds& cached) {
  const auto bytes = std::as_bytes(cached.ids);
  if (XXH3_64bits(bytes.data(), bytes.size()) != cached.checksum)
    fail_damaged(cached.path, "its checksum is wrong", cached.remedy);
}

void require_known_ids(const CachedIds& cached, int vocab_size) {
  const std::span<const int32_t> ids = cached.ids;
  const auto unknown = std::ranges::find_if(ids, [&](int32_t id) {
    return static_cast<uint32_t>(id) >= static_cast<uint32_t>(vocab_size);
  });
  if (unknown != ids.end())
    fail("{}: token {} at position {} is outside the tokenizer's vocabulary of {}; {}",
         cached.path.string(), *unknown, unknown - ids.begin(), vocab_size, cached.remedy);
  // Where a disk has lost what was written there are zeros, and no text is that long.
  constexpr size_t long_enough = 4096;
  if (ids.size() >= long_enough && std::ranges::all_of(ids, [](int32_t id) { return id == 0; }))
    fail("{}: all of its {} ids are 0, which no text gives; {}", cached.path.string(), ids.size(),
         cached.remedy);
}

}  // namespace sol
