#include "text/prepare_corpus.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "base/ordered_pipeline.h"
#include "base/stopwatch.h"
#include "base/threads.h"
#include "text/text_reader.h"

namespace sol {
namespace {

namespace fs = std::filesystem;

// Work for one thread at a time: large against what handing it over costs, small against a window.
constexpr size_t batch_bytes = size_t{256} << 10;

// Changes whenever the same corpus would give other ids.
constexpr int preparation_version = 1;

Json identity_of(const CorpusFiles& corpus, const CorpusOptions& options,
                 const Tokenizer& tokenizer) {
  return {{"preparation", preparation_version},
          {"tokenizer", tokenizer.fingerprint()},
          {"files", corpus.files.size()},
          {"file_bytes", corpus.bytes},
          {"corpus", corpus.identity},
          {"text_field", options.text_field},
          {"seed", options.seed},
          {"window_bytes", options.window_bytes},
          {"skip_bad_lines", options.skip_bad_lines}};
}

void require_identity(const Json& found, const Json& wanted, const fs::path& dir) {
  if (found == wanted) return;
  for (const auto& [field, value] : wanted.items()) {
    const Json other = found.contains(field) ? found[field] : Json(nullptr);
    if (other != value)
      fail(
          "{}: holds data prepared otherwise (\"{}\" is {}, now {}; \"corpus\" covers names, sizes "
          "and times of change); choose another directory or delete it",
          dir.string(), field, to_text(other), to_text(value));
  }
  fail("{}: holds data prepared by another version; choose another directory or delete it",
       dir.string());
}

// Some lines of a window, or, without lines, the window's end.
struct Batch {
  std::shared_ptr<const CorpusWindow> window;
  size_t begin = 0, end = 0;
};

struct EncodedBatch {
  std::vector<int32_t> ids;
  PreparedShard counts;
  bool ends_shard = false;
};

class Preparation {
 public:
  Preparation(const CorpusFiles& corpus, const fs::path& out, const CorpusOptions& options,
              const Tokenizer& tokenizer, const PrepareCallbacks& callbacks, std::stop_token stop,
              PreparedManifest& manifest)
      : out_(out),
        options_(options),
        tokenizer_(tokenizer),
        callbacks_(callbacks),
        stop_(std::move(stop)),
        manifest_(manifest),
        corpus_bytes_(corpus.bytes),
        reader_(corpus, options.seed, options.window_bytes,
                manifest.shards.empty() ? CorpusPosition{} : manifest.shards.back().end) {}

  void run() {
    OrderedPipeline<Batch, EncodedBatch> pipeline(std::max(1, thread_count()),
                                                  options_.window_bytes);
    pipeline.run([this](const auto& emit) { read(emit); },
                 [this](Batch&& batch) { return encode(std::move(batch)); },
                 [this](EncodedBatch&& batch) { write(std::move(batch)); });
    manifest_.complete = true;
    write_prepared_manifest(out_, manifest_);
  }

 private:
  using Emit = OrderedPipeline<Batch, EncodedBatch>::Emit;

  void read(const Emit& emit) {
    for (;;) {
      auto next = std::make_shared<CorpusWindow>();
      if (!reader_.next(*next, stop_)) return;
      const std::shared_ptr<const CorpusWindow> window = std::move(next);
      for (size_t begin = 0; begin < window->lines.size();) {
        size_t end = begin, bytes = 0;
        while (end < window->lines.size() && bytes < batch_bytes)
          bytes += window->lines[end++].size + sizeof(CorpusWindow::Line);
        emit({window, begin, end}, bytes);
        begin = end;
      }
      emit({window, 0, 0}, 0);
    }
  }

  EncodedBatch encode(Batch&& given) const {
    const Batch batch = std::move(given);  // so that its window goes as early as it can
    EncodedBatch out;
    out.counts.end = batch.window->end;
    out.ends_shard = batch.begin == batch.end;
    for (size_t i = batch.begin; i < batch.end; ++i) {
      if (stop_.stop_requested()) throw Cancelled();
      const CorpusWindow::Line& line = batch.window->lines[i];
      std::string text;
      try {
        text = text_of_json_line(batch.window->text(line), options_.text_field,
                                 fmt::format("{}, line {}", reader_.path(line.file), line.number));
      } catch (const Error& error) {
        if (!options_.skip_bad_lines) throw;
        if (out.counts.skipped++ == 0) out.counts.first_skipped = error.what();
        continue;
      }
      if (text.empty()) continue;
      const auto ids = tokenizer_.encode(text, {.add_special_tokens = false});
      out.ids.insert(out.ids.end(), ids.begin(), ids.end());
      ++out.counts.documents;
    }
    return out;
  }

  void write(EncodedBatch&& batch) {
    if (stop_.stop_requested()) throw Cancelled();
    if (!writer_)
      writer_ = std::make_unique<BlockCacheWriter>(
          prepared_shard_path(out_, manifest_.shards.size()), manifest_.key());
    writer_->append(batch.ids);
    shard_.tokens += static_cast<int64_t>(batch.ids.size());
    shard_.documents += batch.counts.documents;
    if (shard_.skipped == 0) shard_.first_skipped = std::move(batch.counts.first_skipped);
    shard_.skipped += batch.counts.skipped;
    progress_.tokens += static_cast<int64_t>(batch.ids.size());
    progress_.documents += batch.counts.documents;
    if (batch.ends_shard) {
      // First the file, then the manifest that counts on it.
      writer_->commit();
      writer_.reset();
      shard_.end = batch.counts.end;
      manifest_.shards.push_back(std::exchange(shard_, {}));
      write_prepared_manifest(out_, manifest_);
    }
    report(batch.counts.end);
  }

  void report(const CorpusPosition& position) {
    if (!callbacks_.on_progress) return;
    progress_.seconds = since_start_.seconds();
    progress_.shards = static_cast<int64_t>(manifest_.shards.size());
    progress_.all_tokens = manifest_.tokens() + shard_.tokens;
    progress_.bytes_done = reader_.bytes_before(position);
    progress_.bytes_total = corpus_bytes_;
    callbacks_.on_progress(progress_);
  }

  const fs::path& out_;
  const CorpusOptions& options_;
  const Tokenizer& tokenizer_;
  const PrepareCallbacks& callbacks_;
  const std::stop_token stop_;
  PreparedManifest& manifest_;
  const uint64_t corpus_bytes_;
  CorpusReader reader_;  // next() is the reading thread's; path() and bytes_before() never change
  std::unique_ptr<BlockCacheWriter> writer_;
  PreparedShard shard_;  // that is being written
  PrepareProgress progress_;
  Stopwatch since_start_;
};

void check_options(const CorpusOptions& options) {
  if (options.window_bytes < (uint64_t{1} << 10))
    fail("a shuffle buffer of {} bytes is too small; it needs at least 1024", options.window_bytes);
}

// Throws for a shard that is missing, of other data or damaged.
void check_shards(const fs::path& out, const PreparedManifest& manifest, CacheCheck check,
                  const std::stop_token& stop) {
  for (size_t i = 0; i < manifest.shards.size(); ++i) {
    if (stop.stop_requested()) throw Cancelled();
    open_prepared_shard(out, manifest, i, check);
  }
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
  const Json identity = identity_of(find_corpus_files(corpus_dir), options, tokenizer);
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
  const Json identity = identity_of(corpus, options, tokenizer);
  ensure_writable_directory(out);
  const DirectoryLock lock(out, stop, [&] {
    note(fmt::format("{}: another process is preparing this data; waiting for it", out.string()));
  });
  PreparedManifest manifest{identity, corpus_dir.string(), false, {}};
  if (auto found = read_prepared_manifest(out)) {
    require_identity(found->identity, identity, out);
    manifest = *std::move(found);
    check_shards(out, manifest, verify ? CacheCheck::checksum : CacheCheck::layout, stop);
    if (manifest.complete) {
      require_tokens(manifest, corpus_dir);
      return manifest;
    }
    note(
        fmt::format("{}: going on after {} finished shards ({} tokens of {} documents); a shard "
                    "that was not finished is made again",
                    out.string(), manifest.shards.size(), manifest.tokens(), manifest.documents()));
  } else {
    // From here on the directory says whose it is.
    write_prepared_manifest(out, manifest);
  }
  Preparation(corpus, out, options, tokenizer, callbacks, stop, manifest).run();
  require_tokens(manifest, corpus_dir);
  return manifest;
}

}  // namespace sol
