// The file that keeps token ids between runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file_io.h"
#include "base/mapped_file.h"
#include "text/text_reader.h"

namespace sol {

// 32 hexadecimal digits over everything the ids depend on: the files' absolute paths, sizes and
// times of change, the options, the tokenizer's fingerprint and this format's version.
std::string block_cache_key(const std::vector<std::filesystem::path>& files,
                            const TextOptions& options, const std::string& tokenizer_fingerprint);

// Where the ids for `key` lie: cache_dir / "<name of the first file>-<start of the key>.ids".
std::filesystem::path block_cache_path(const std::filesystem::path& cache_dir,
                                       const std::vector<std::filesystem::path>& files,
                                       const std::string& key);

// Writes ids as they come; nothing is there under the final name until commit().
class BlockCacheWriter {
 public:
  BlockCacheWriter(const std::filesystem::path& path, const std::string& key);
  ~BlockCacheWriter();
  BlockCacheWriter(const BlockCacheWriter&) = delete;
  BlockCacheWriter& operator=(const BlockCacheWriter&) = delete;
  void append(std::span<const int32_t> ids);
  void commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct CachedIds {
  std::shared_ptr<const MappedFile> file;
  std::span<const int32_t> ids;
  std::filesystem::path path;
  uint64_t checksum = 0;  // that the ids should have
  std::string remedy;     // what to do where they are damaged
};

// How closely a file of ids is looked at: its checksum needs all of it to be read, which for a
// corpus takes minutes; its layout (marks, key, count against size) does not.
enum class CacheCheck { layout, checksum };

// Maps the ids at `path`. Nothing when the file is absent or made for another key: build it then.
// Throws Error, with the `remedy`, for a file that is truncated or damaged: that is never repaired
// silently, since whatever damaged it may have damaged more.
std::optional<CachedIds> open_block_cache(
    const std::filesystem::path& path, const std::string& key,
    CacheCheck check = CacheCheck::checksum,
    const std::string& remedy = "delete it to have it made again");

// Reads all ids. Throws Error where they have another checksum than when they were written.
void require_checksum(const CachedIds& cached);

// Reads all ids. Throws Error, naming the file and the position, for one that is not in
// [0, vocab_size), and for thousands of ids that are all 0.
void require_known_ids(const CachedIds& cached, int vocab_size);

}  // namespace sol
