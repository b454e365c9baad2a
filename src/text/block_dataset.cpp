#include "text/block_dataset.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <iterator>
#include <mutex>
#include <utility>

#include "base/fail.h"
#include "base/ordered_pipeline.h"
#include "base/threads.h"
#include "text/block_cache.h"
#include "text/prepared_data.h"

namespace sol {
namespace {

using OnIds = std::function<void(std::span<const int32_t>)>;

// Documents that one thread tokenises at a time, and how many may wait for one.
constexpr size_t batch_bytes = size_t{256} << 10, pending_bytes = size_t{16} << 20;

void tokenise(const std::vector<std::filesystem::path>& files, const TextOptions& options,
              const Tokenizer& tokenizer, const std::stop_token& stop, const OnIds& on_ids) {
  if (options.framed && (tokenizer.bos_token_id() < 0 || tokenizer.eos_token_id() < 0))
    fail("documents are to stand between begin and end token, but the tokenizer names {}",
         tokenizer.bos_token_id() < 0 ? "no begin token" : "no end token");
  using Documents = std::vector<std::string>;
  using Ids = std::vector<int32_t>;
  using Pipeline = OrderedPipeline<Documents, Ids>;
  Pipeline(std::max(1, thread_count()), pending_bytes)
      .run(
          [&](const Pipeline::Emit& emit) {
            Documents batch;
            size_t bytes = 0;
            const auto flush = [&] {
              if (!batch.empty()) emit(std::exchange(batch, {}), std::exchange(bytes, 0));
            };
            for (const std::filesystem::path& file : files)
              read_documents(file, options, [&](std::string&& text) {
                bytes += text.size();
                batch.push_back(std::move(text));
                if (bytes >= batch_bytes) flush();
              });
            flush();
          },
          [&](Documents&& documents) {
            Ids ids;
            for (const std::string& document : documents) {
              if (stop.stop_requested()) throw Cancelled();
              const Ids part = tokenizer.encode(document, {.add_special_tokens = false});
              if (options.framed) ids.push_back(tokenizer.bos_token_id());
              ids.insert(ids.end(), part.begin(), part.end());
              if (options.framed) ids.push_back(tokenizer.eos_token_id());
            }
            return ids;
          },
          [&](Ids&& ids) { on_ids(ids); });
}

void check_block_length(int block_length) {
  if (block_length <= 0) fail("a block needs at least one token, not {}", block_length);
}

void check_enough(int64_t ids, int block_length, const std::string& where) {
  if (ids < block_length)
    fail(
        "{}: {} token ids are not enough for one block of {} (context + horizon + 1); use more "
        "text or a shorter context",
        where, ids, block_length);
}

}  // namespace

// Once, whichever thread comes first; again where that has thrown.
struct BlockDataset::Unverified {
  std::once_flag once;
  CachedIds ids;
  int vocab_size = 0;
};

BlockDataset BlockDataset::open(const std::vector<std::filesystem::path>& files,
                                const TextOptions& options, const Tokenizer& tokenizer,
                                int block_length, const std::filesystem::path& cache_dir,
                                std::stop_token stop) {
  check_block_length(block_length);
  if (files.empty()) fail("no text files were named");
  BlockDataset dataset(block_length);
  if (cache_dir.empty()) {
    auto ids = std::make_shared<std::vector<int32_t>>();
    tokenise(files, options, tokenizer, stop, [&](std::span<const int32_t> part) {
      ids->insert(ids->end(), part.begin(), part.end());
    });
    const std::span<const int32_t> all = *ids;
    dataset.add(std::move(ids), all);
  } else {
    const std::string key = block_cache_key(files, options, tokenizer.fingerprint());
    const std::filesystem::path path = block_cache_path(cache_dir, files, key);
    auto cached = open_block_cache(path, key);
    if (!cached) {
      ensure_writable_directory(cache_dir);
      // Of several processes that need the same ids one makes them.
      const DirectoryLock lock(cache_dir, stop);
      cached = open_block_cache(path, key);
      if (!cached) {
        BlockCacheWriter writer(path, key);
        tokenise(files, options, tokenizer, stop,
                 [&](std::span<const int32_t> part) { writer.append(part); });
        writer.commit();
        cached = open_block_cache(path, key);
      }
      if (!cached) fail("{}: vanished right after it was written", path.string());
    }
    require_known_ids(*cached, tokenizer.vocab_size());
    dataset.add(std::move(cached->file), cached->ids);
  }
  const std::string where = files.front().string() +
                            (files.size() > 1 ? fmt::format(" and {} more", files.size() - 1) : "");
  check_enough(dataset.token_count(), block_length, where);
  return dataset;
}

BlockDataset BlockDataset::open_prepared(const std::filesystem::path& dir,
                                         const Tokenizer& tokenizer, int block_length) {
  check_block_length(block_length);
  const auto manifest = read_prepared_manifest(dir);
  if (!manifest) fail("{}: holds no prepared data (manifest.json is missing)", dir.string());
  const std::string where = dir.string();
  if (!manifest->complete)
    fail(
        "{}: this data is prepared only in part ({} shards of {}); prepare the rest with the same "
        "command",
        where, manifest->shards.size(), manifest->source);
  if (json_get<std::string>(manifest->identity, "tokenizer", where + "/manifest.json") !=
      tokenizer.fingerprint())
    fail("{}: this data was prepared with another model's tokenizer", where);
  BlockDataset dataset(block_length);
  for (size_t i = 0; i < manifest->shards.size(); ++i) {
    CachedIds shard = open_prepared_shard(dir, *manifest, i, CacheCheck::layout);
    dataset.add(shard.file, shard.ids);
    dataset.parts_.back().unverified = std::make_shared<Unverified>();
    dataset.parts_.back().unverified->ids = std::move(shard);
    dataset.parts_.back().unverified->vocab_size = tokenizer.vocab_size();
  }
  if (dataset.size() == 0)
    fail(
        "{}: none of its {} shards has the {} token ids of one block (context + horizon + 1); use "
        "more text or a shorter context",
        where, manifest->shards.size(), block_length);
  return dataset;
}

BlockDataset BlockDataset::from_ids(std::vector<int32_t> ids, int block_length) {
  check_block_length(block_length);
  check_enough(static_cast<int64_t>(ids.size()), block_length, "token ids");
  BlockDataset dataset(block_length);
  auto owner = std::make_shared<const std::vector<int32_t>>(std::move(ids));
  const std::span<const int32_t> all = *owner;
  dataset.add(std::move(owner), all);
  return dataset;
}

BlockDataset::BlockDataset(int block_length) : block_length_(block_length) {}

void BlockDataset::add(std::shared_ptr<const void> owner, std::span<const int32_t> ids) {
  const int64_t blocks = static_cast<int64_t>(ids.size()) / block_length_;
  parts_.push_back({std::move(owner), ids, blocks_});
  blocks_ += blocks;
}

std::span<const int32_t> BlockDataset::ids() const {
  if (parts_.size() != 1)
    fail("the text lies in {} shards and is needed in one piece", parts_.size());
  verify(parts_.front());
  return parts_.front().ids;
}

int64_t BlockDataset::token_count() const {
  int64_t count = 0;
  for (const Part& part : parts_) count += static_cast<int64_t>(part.ids.size());
  return count;
}

const BlockDataset::Part& BlockDataset::part_of(int64_t block) const {
  assert(block >= 0 && block < size());
  // The last part that begins at or before it; parts without a block begin where the next one does.
  const auto after = std::ranges::upper_bound(parts_, block, {}, &Part::first_block);
  return *std::prev(after);
}

std::span<const int32_t> BlockDataset::block_of(const Part& part, int64_t block) const {
  return part.ids.subspan(
      static_cast<size_t>(block - part.first_block) * static_cast<size_t>(block_length_),
      static_cast<size_t>(block_length_));
}

void BlockDataset::verify(const Part& part) {
  if (!part.unverified) return;
  const Unverified& unverified = *part.unverified;
  std::call_once(part.unverified->once, [&] {
    require_checksum(unverified.ids);
    require_known_ids(unverified.ids, unverified.vocab_size);
  });
}

std::span<const int32_t> BlockDataset::block(int64_t i) const {
  const Part& part = part_of(i);
  verify(part);
  return block_of(part, i);
}

std::span<const int32_t> BlockDataset::unverified_block(int64_t i) const {
  return block_of(part_of(i), i);
}

}  // namespace sol
