#include "text/block_dataset.h"

#include <cassert>
#include <functional>
#include <utility>

#include "base/fail.h"
#include "base/threads.h"
#include "text/block_cache.h"

namespace sol {
namespace {

using OnIds = std::function<void(std::span<const int32_t>)>;

// Tokenises documents on all threads, in batches, and hands their ids out in the documents' order.
class ParallelTokenizer {
 public:
  ParallelTokenizer(const Tokenizer& tokenizer, bool framed, const std::stop_token& stop,
                    const OnIds& on_ids)
      : tokenizer_(tokenizer), framed_(framed), stop_(stop), on_ids_(on_ids) {}

  void add(std::string&& document) {
    pending_bytes_ += document.size();
    documents_.push_back(std::move(document));
    if (pending_bytes_ >= batch_bytes) flush();
  }

  void flush() {
    std::vector<std::vector<int32_t>> ids(documents_.size());
    parallel_for(static_cast<int64_t>(documents_.size()), [&](int64_t i) {
      if (stop_.stop_requested()) throw Cancelled();
      const auto n = static_cast<size_t>(i);
      ids[n] = tokenizer_.encode(documents_[n], {.add_special_tokens = false});
      if (!framed_) return;
      ids[n].insert(ids[n].begin(), tokenizer_.bos_token_id());
      ids[n].push_back(tokenizer_.eos_token_id());
    });
    for (const std::vector<int32_t>& part : ids) on_ids_(part);
    documents_.clear();
    pending_bytes_ = 0;
  }

 private:
  static constexpr size_t batch_bytes = size_t{4} << 20;
  const Tokenizer& tokenizer_;
  const bool framed_;
  const std::stop_token& stop_;
  const OnIds& on_ids_;
  std::vector<std::string> documents_;
  size_t pending_bytes_ = 0;
};

void tokenise(const std::vector<std::filesystem::path>& files, const TextOptions& options,
              const Tokenizer& tokenizer, const std::stop_token& stop, const OnIds& on_ids) {
  if (options.framed && (tokenizer.bos_token_id() < 0 || tokenizer.eos_token_id() < 0))
    fail("documents are to stand between begin and end token, but the tokenizer names {}",
         tokenizer.bos_token_id() < 0 ? "no begin token" : "no end token");
  ParallelTokenizer worker(tokenizer, options.framed, stop, on_ids);
  for (const std::filesystem::path& file : files)
    read_documents(file, options, [&](std::string&& text) { worker.add(std::move(text)); });
  worker.flush();
}

void check_block_length(int block_length) {
  if (block_length <= 0) fail("a block needs at least one token, not {}", block_length);
}

void check_enough(size_t ids, int block_length, const std::string& where) {
  if (ids < static_cast<size_t>(block_length))
    fail(
        "{}: {} token ids are not enough for one block of {} (context + horizon + 1); use more "
        "text or a shorter context",
        where, ids, block_length);
}

}  // namespace

BlockDataset BlockDataset::open(const std::vector<std::filesystem::path>& files,
                                const TextOptions& options, const Tokenizer& tokenizer,
                                int block_length, const std::filesystem::path& cache_dir,
                                std::stop_token stop) {
  check_block_length(block_length);
  if (files.empty()) fail("no text files were named");
  BlockDataset dataset;
  dataset.block_length_ = block_length;
  if (cache_dir.empty()) {
    auto ids = std::make_shared<std::vector<int32_t>>();
    tokenise(files, options, tokenizer, stop, [&](std::span<const int32_t> part) {
      ids->insert(ids->end(), part.begin(), part.end());
    });
    dataset.ids_ = *ids;
    dataset.owned_ = std::move(ids);
  } else {
    const std::string key = block_cache_key(files, options, tokenizer.fingerprint());
    const std::filesystem::path path = block_cache_path(cache_dir, files, key);
    auto cached = open_block_cache(path, key);
    if (!cached) {
      ensure_writable_directory(cache_dir);
      BlockCacheWriter writer(path, key);
      tokenise(files, options, tokenizer, stop,
               [&](std::span<const int32_t> part) { writer.append(part); });
      writer.commit();
      cached = open_block_cache(path, key);
      if (!cached) fail("{}: vanished right after it was written", path.string());
    }
    dataset.mapped_ = std::move(cached->file);
    dataset.ids_ = cached->ids;
  }
  const std::string where = files.front().string() +
                            (files.size() > 1 ? fmt::format(" and {} more", files.size() - 1) : "");
  check_enough(dataset.ids_.size(), block_length, where);
  return dataset;
}

BlockDataset BlockDataset::from_ids(std::vector<int32_t> ids, int block_length) {
  check_block_length(block_length);
  check_enough(ids.size(), block_length, "token ids");
  BlockDataset dataset;
  dataset.block_length_ = block_length;
  dataset.owned_ = std::make_shared<const std::vector<int32_t>>(std::move(ids));
  dataset.ids_ = *dataset.owned_;
  return dataset;
}

int64_t BlockDataset::size() const {
  return static_cast<int64_t>(ids_.size()) / block_length_;
}

std::span<const int32_t> BlockDataset::block(int64_t i) const {
  assert(i >= 0 && i < size());
  return ids_.subspan(static_cast<size_t>(i) * static_cast<size_t>(block_length_),
                      static_cast<size_t>(block_length_));
}

}  // namespace sol
