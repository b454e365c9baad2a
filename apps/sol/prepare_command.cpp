// sol prepare: a corpus as token ids, before training.
#include <limits>
#include <memory>
#include <new>

#include "base/fail.h"
#include "base/threads.h"
#include "commands.h"
#include "common.h"
#include "corpus_progress.h"
#include "text/prepare_corpus.h"
#include "validators.h"

namespace sol::app {
namespace {

struct PrepareFlags {
  std::filesystem::path model, data, out;
  CorpusOptions options;
  uint64_t buffer_mib = 0;
  int threads = 0;
};

void run_prepare(PrepareFlags& flags) {
  set_thread_count(flags.threads);
  flags.options.window_bytes = flags.buffer_mib << 20;
  const auto tokenizer = Tokenizer::load(flags.model.empty() ? default_model_dir() : flags.model);
  CorpusProgress progress;
  const std::stop_token stop = interrupt_token();
  PreparedManifest made;
  try {
    made = prepare_corpus(flags.data, flags.out, flags.options, *tokenizer, true,
                          progress.callbacks(), stop);
  } catch (const Cancelled&) {
    progress.stop();
    note("{}: finished shards stay; the same command goes on behind them", flags.out.string());
    throw;
  } catch (const std::bad_alloc&) {
    progress.stop();
    fail(
        "out of memory; lower --shuffle-buffer (it is {} MiB, and about three times as much is "
        "used) or --threads ({})",
        flags.buffer_mib, thread_count());
  }
  progress.finish(made);
  print("{}: {}, {} of {}{}\n", flags.out.string(),
        counted(static_cast<int64_t>(made.shards.size()), "shard"), counted(made.tokens(), "token"),
        counted(made.documents(), "document"),
        progress.worked() ? "" : "; it was complete already, and its checksums are right");
}

}  // namespace

void add_prepare_command(CLI::App& app) {
  auto flags = std::make_shared<PrepareFlags>();
  CLI::App* command = app.add_subcommand(
      "prepare", "Tokenise a corpus for training: a directory of JSON lines, into token ids");
  command
      ->add_option("data", flags->data,
                   "Directory that is searched for .jsonl, .jsonl.gz, .jsonl.zst, .json.gz, "
                   ".json.zst")
      ->required()
      ->type_name("DIR");
  command
      ->add_option("-o,--out", flags->out,
                   "Directory for the ids; a preparation that was interrupted goes on")
      ->required()
      ->type_name("DIR");
  add_model_option(*command, flags->model);
  command->add_option("--text-field", flags->options.text_field, "Field that holds the text")
      ->capture_default_str();
  command->add_option("--seed", flags->options.seed, "Seed of the documents' order")
      ->check(in_range(0, std::numeric_limits<uint64_t>::max()))
      ->capture_default_str();
  flags->buffer_mib = flags->options.window_bytes >> 20;
  command
      ->add_option("--shuffle-buffer", flags->buffer_mib,
                   "MiB of JSON lines that are shuffled together; about three times as much memory "
                   "is used")
      ->check(in_range(1, uint64_t{1} << 20))
      ->capture_default_str()
      ->type_name("MIB");
  command->add_flag("--skip-bad-lines", flags->options.skip_bad_lines,
                    "Leave out lines that are no JSON object with the text field, and count them");
  command
      ->add_option("--threads", flags->threads,
                   "Threads that tokenise; 0 for as many as the process may use")
      ->check(in_range(0, 4096))
      ->capture_default_str();
  command->callback([flags] { run_prepare(*flags); });
}

}  // namespace sol::app
