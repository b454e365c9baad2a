#include "corpus_progress.h"

namespace sol::app {

PrepareCallbacks CorpusProgress::callbacks() {
  return {.on_progress =
              [this](const PrepareProgress& p) {
                last_ = p;
                const double share = p.bytes_total > 0 ? static_cast<double>(p.bytes_done) /
                                                             static_cast<double>(p.bytes_total)
                                                       : 0.0;
                line_.update(fmt::format(
                    "tokenising: {:.1f} M tokens in {}, files {:.0f} % read, {:.0f} tokens/s",
                    static_cast<double>(p.all_tokens) * 1e-6, counted(p.shards, "shard"),
                    100 * share, static_cast<double>(p.tokens) / p.seconds));
              },
          .on_note =
              [this](const std::string& text) {
                line_.finish();
                note("{}", text);
              }};
}

void CorpusProgress::finish(const PreparedManifest& made) {
  line_.finish();
  if (worked())
    note("tokenised {}, {} in {} ({:.0f} tokens/s)", counted(last_.documents, "document"),
         counted(last_.tokens, "token"), format_duration(last_.seconds),
         static_cast<double>(last_.tokens) / last_.seconds);
  if (made.skipped() == 0) return;
  for (const PreparedShard& shard : made.shards)
    if (shard.skipped > 0) {
      note(
          "{} left out; the first: {}",
          made.skipped() == 1 ? "1 bad line was" : fmt::format("{} bad lines were", made.skipped()),
          shard.first_skipped);
      return;
    }
}

}  // namespace sol::app
