#include "text/prepare_corpus.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "base/ordered_pipeline.h"
#include "base/stopwatch.h"
#include "base/threads.h"
#include "text/preparation.h"
#include "text/text_reader.h"

namespace sol {
namespace {

namespace fs = std::filesystem;

// Work for one thread at a time: large against what handing it over costs, small against a window.
constexpr size_t batch_bytes = size_t{256} << 10;

// Some lines of a window, or, without lines, the window's end.
struct Batch {
  std::shared_ptr<const CorpusWindow> window;
  size_t begin = 0, end = 0;
};

struct BadLine {
  CorpusPosition at;
  std::string why;
};

// The earlier one in the corpus: windows are shuffled, and people look for the first.
void keep_first(std::optional<BadLine>& first, BadLine&& other) {
  const auto place = [](const BadLine& line) { return std::pair(line.at.file, line.at.line); };
  if (!first || place(other) < place(*first)) first = std::move(other);
}

struct EncodedBatch {
  std::vector<int32_t> ids;
  PreparedShard counts;
  std::optional<BadLine> bad;  // the first
  bool ends_shard = false;
};

// Makes shards from number `first` on, `count` of them at most.
class Preparation {
 public:
  Preparation(const CorpusFiles& corpus, const fs::path& out, const CorpusOptions& options,
              const Tokenizer& tokenizer, const PrepareCallbacks& callbacks, std::stop_token stop,
              PreparedManifest& manifest, size_t first, size_t count)
      : next_(first),
        count_(count),
        out_(out),
        options_(options),
        tokenizer_(tokenizer),
        callbacks_(callbacks),
        stop_(std::move(stop)),
        manifest_(manifest),
        corpus_bytes_(corpus.bytes),
        reader_(corpus, options.seed, options.window_bytes,
                first == 0 ? CorpusPosition{} : manifest.shards[first - 1].end) {}

  void run() {
    OrderedPipeline<Batch, EncodedBatch> pipeline(std::max(1, thread_count()),
                                                  options_.window_bytes);
    pipeline.run([this](const auto& emit) { read(emit); },
                 [this](Batch&& batch) { return encode(std::move(batch)); },
                 [this](EncodedBatch&& batch) { write(std::move(batch)); });
  }

 private:
  using Emit = OrderedPipeline<Batch, EncodedBatch>::Emit;

  void read(const Emit& emit) {
    for (size_t shard = 0; shard < count_; ++shard) {
      auto next = std::make_shared<CorpusWindow>();
      if (!reader_.next(*next, stop_)) return;
      const std::shared_ptr<const CorpusWindow> window = std::move(next);
      for (size_t begin = 0; begin < window->lines.size();) {
        size_t end = begin, bytes = 0;
        while (end < window->lines.size() && bytes < batch_bytes)
          bytes += window->lines[end++].text.size() + sizeof(CorpusWindow::Line);
        emit({window, begin, end}, bytes);
        begin = end;
      }
      emit({window, 0, 0}, 0);
    }
  }

  EncodedBatch encode(Batch&& given) {
    const Batch batch = std::move(given);  // so that its window goes as early as it can
    EncodedBatch out;
    out.counts.end = batch.window->end;
    out.ends_shard = batch.begin == batch.end;
    for (size_t i = batch.begin; i < batch.end; ++i) {
      if (stop_.stop_requested()) throw Cancelled();
      const CorpusWindow::Line& line = batch.window->lines[i];
      std::string text;
      try {
        text =
            text_of_json_line(line.text, line.number, options_.text_field, reader_.path(line.file));
      } catch (const Error& error) {
        ++out.counts.skipped;
        keep_first(out.bad, {{line.file, line.number}, error.what()});
        if (!options_.skip_bad_lines) failing_ = batch.window.get();
        continue;
      }
      // Of a window that fails only its first bad line is still wanted.
      if (text.empty() || failing_ == batch.window.get()) continue;
      const auto ids = tokenizer_.encode(text, {.add_special_tokens = false});
      out.ids.insert(out.ids.end(), ids.begin(), ids.end());
      ++out.counts.documents;
    }
    return out;
  }

  void write(EncodedBatch&& batch) {
    if (stop_.stop_requested()) throw Cancelled();
    const fs::path path = prepared_shard_path(out_, next_);
    if (!writer_) writer_ = std::make_unique<BlockCacheWriter>(path, manifest_.key());
    writer_->append(batch.ids);
    shard_.tokens += static_cast<int64_t>(batch.ids.size());
    shard_.documents += batch.counts.documents;
    if (batch.bad) keep_first(bad_, *std::move(batch.bad));
    shard_.skipped += batch.counts.skipped;
    progress_.tokens += static_cast<int64_t>(batch.ids.size());
    progress_.documents += batch.counts.documents;
    if (batch.ends_shard) end_shard(path, batch.counts.end);
    report(batch.counts.end);
  }

  void end_shard(const fs::path& path, const CorpusPosition& end) {
    if (bad_ && !options_.skip_bad_lines)
      fail("{}; `sol prepare --skip-bad-lines` leaves such lines out and counts them", bad_->why);
    if (bad_) shard_.first_skipped = std::exchange(bad_, std::nullopt)->why;
    shard_.end = end;
    const bool again = next_ < manifest_.shards.size();
    if (again && !same_content(shard_, manifest_.shards[next_]))
      fail(
          "{}: made again it differs from what manifest.json says; prepare the data anew in "
          "another directory",
          path.string());
    // First the file, then the manifest that counts on it.
    writer_->commit();
    writer_.reset();
    if (!again) {
      manifest_.shards.push_back(shard_);
      write_prepared_manifest(out_, manifest_);
    }
    shard_ = {};
    ++next_;
  }

  static bool same_content(const PreparedShard& a, const PreparedShard& b) {
    return a.tokens == b.tokens && a.documents == b.documents && a.skipped == b.skipped &&
           a.end == b.end;
  }

  void report(const CorpusPosition& position) {
    if (!callbacks_.on_progress) return;
    progress_.seconds = since_start_.seconds();
    progress_.shards = static_cast<int64_t>(manifest_.shards.size());
    progress_.all_tokens =
        manifest_.tokens() + (next_ < manifest_.shards.size() ? 0 : shard_.tokens);
    progress_.bytes_done = reader_.bytes_before(position);
    progress_.bytes_total = corpus_bytes_;
    callbacks_.on_progress(progress_);
  }

  size_t next_;  // the shard that is being written
  const size_t count_;
  const fs::path& out_;
  const CorpusOptions& options_;
  const Tokenizer& tokenizer_;
  const PrepareCallbacks& callbacks_;
  const std::stop_token stop_;
  PreparedManifest& manifest_;
  const uint64_t corpus_bytes_;
  CorpusReader reader_;  // next() is the reading thread's; path() and bytes_before() never change
  std::unique_ptr<BlockCacheWriter> writer_;
  PreparedShard shard_;                                // that is being written
  std::optional<BadLine> bad_;                         // its first
  std::atomic<const CorpusWindow*> failing_{nullptr};  // that has a bad line, which ends it
  PrepareProgress progress_;
  Stopwatch since_start_;
};

void check_options(const CorpusOptions& options) {
  if (options.window_bytes < (uint64_t{1} << 10))
    fail("a shuffle buffer of {} bytes is too small; it needs at least 1024", options.window_bytes);
}

// Those that are missing. Throws for one that is of other data or damaged.
std::vector<size_t> check_shards(const fs::path& out, const PreparedManifest& manifest,
                                 CacheCheck check, const std::stop_token& stop) {
  std::vector<size_t> missing;
  for (size_t i = 0; i < manifest.shards.size(); ++i) {
    if (stop.stop_requested()) throw Cancelled();
    if (path_exists(prepared_shard_path(out, i)))
      open_prepared_shard(out, manifest, i, check);
    else
      missing.push_back(i);
  }
  return missing;
}

void require_tokens(const PreparedManifest& manifest, const fs::path& corpus_dir) {
  if (manifest.tokens() > 0) return;
  const std::string reason =
      manifest.skipped() > 0
          ? fmt::format("; all of its {} lines were skipped, the first because: {}",
                        manifest.skipped(), manifest.shards.front().first_skipped)
          : std::string();
  fail("{}: holds no text{}", corpus_dir.string(), reason);
}

}  // namespace

fs::path prepared_cache_path(const fs::path& cache_dir, const fs::path& corpus_dir,
                             const CorpusOptions& options, const Tokenizer& tokenizer) {
  const fs::path path = fs::absolute(corpus_dir).lexically_normal();
  const std::string name = (path.has_filename() ? path : path.parent_path()).filename().string();
  const Json identity = preparation_identity(find_corpus_files(corpus_dir), options, tokenizer);
  return cache_dir / fmt::format("{}-{}", name, hash_128(to_text(identity)).substr(0, 16));
}

PreparedManifest prepare_corpus(const fs::path& corpus_dir, const fs::path& out,
                                const CorpusOptions& options, const Tokenizer& tokenizer,
                                bool verify, const PrepareCallbacks& callbacks,
                                std::stop_token stop) {
  check_options(options);
  const auto note = [&](const std::string& text) {
    if (callbacks.on_note) callbacks.on_note(text);
  };
  const CorpusFiles corpus = find_corpus_files(corpus_dir);
  const Json identity = preparation_identity(corpus, options, tokenizer);
  require_directory_for_shards(out);
  ensure_writable_directory(out);
  const DirectoryLock lock(out, stop, [&] {
    note(fmt::format("{}: another process is preparing this data; waiting for it", out.string()));
  });
  PreparedManifest manifest{identity, corpus_dir.string(), false, {}};
  auto found = read_prepared_manifest(out);
  // Nothing depends yet on how it was begun.
  if (found && found->shards.empty() && !found->complete && found->identity != identity)
    found.reset();
  const bool resumed = found.has_value();
  if (!resumed) write_prepared_manifest(out, manifest);  // now the directory says whose it is
  const auto make = [&](size_t first, size_t count) {
    Preparation(corpus, out, options, tokenizer, callbacks, stop, manifest, first, count).run();
  };
  if (resumed) {
    require_same_preparation(found->identity, identity, out);
    manifest = *std::move(found);
    const auto check = verify ? CacheCheck::checksum : CacheCheck::layout;
    for (const size_t shard : check_shards(out, manifest, check, stop)) {
      note(fmt::format("{}: is missing and is made again",
                       prepared_shard_path(out, shard).string()));
      make(shard, 1);
    }
  }
  if (!manifest.complete) {
    if (resumed)
      note(fmt::format(
          "{}: going on after {} finished {} ({} tokens of {} documents); a shard "
          "that was not finished is made again",
          out.string(), manifest.shards.size(), manifest.shards.size() == 1 ? "shard" : "shards",
          manifest.tokens(), manifest.documents()));
    make(manifest.shards.size(), std::numeric_limits<size_t>::max());
    manifest.complete = true;
    write_prepared_manifest(out, manifest);
  }
  require_tokens(manifest, corpus_dir);
  return manifest;
}

}  // namespace sol
