// sol bench: what the machine can do, and how near a model comes to it.
#include <algorithm>
#include <memory>

#include "base/build_info.h"
#include "base/cpu.h"
#include "base/fail.h"
#include "base/file_io.h"
#include "base/threads.h"
#include "benchmark/bench_report.h"
#include "benchmark/random_model.h"
#include "commands.h"
#include "common.h"
#include "validators.h"

namespace sol::app {
namespace {

struct BenchFlags {
  ModelFlags model;
  std::string shape;
  std::vector<int> threads;
  BenchOptions options;
  std::vector<std::string> actions;
  SequenceFlags sequence;
  bool policy = false, ceilings_only = false, cached = false;
  std::filesystem::path csv, json;
  CLI::Option *prefill_option = nullptr, *context_option = nullptr;
};

// `own_memory`: the file's tensors are copied, since copies of a model that map one file would
// share its pages.
std::unique_ptr<CpuModel> load(const BenchFlags& flags, bool own_memory) {
  const ModelOptions options = model_options(flags.model);
  if (!flags.shape.empty()) {
    const DType stored = options.precision == Precision::f32 ? DType::f32 : DType::bf16;
    return make_random_model(find_shape(flags.shape), stored, options);
  }
  const std::filesystem::path dir = flags.model.model_dir();
  TensorStore store = TensorStore::open_directory(dir);
  if (own_memory) store = store.copy();
  return std::make_unique<CpuModel>(load_config(dir), std::move(store), options);
}

std::vector<std::unique_ptr<CpuModel>> load_copies(const BenchFlags& flags) {
  std::vector<std::unique_ptr<CpuModel>> copies;
  copies.push_back(load(flags, false));
  const CpuModel& model = *copies[0];
  const uint64_t bytes = model.layer_weight_bytes(1.0f) + model.head_weight_bytes();
  const int count = flags.cached ? 1 : copies_to_exceed_cache(bytes);
  note(
      "{}: {:.1f} M parameters, {} products, {} weights of {:.1f} MB{}",
      flags.shape.empty() ? flags.model.model_dir().string() : flags.shape,
      static_cast<double>(model.parameter_count()) / 1e6, model.product_type(), weights_name(model),
      static_cast<double>(bytes) / 1e6,
      count > 1 ? fmt::format("; {} copies take turns, so that they come from memory", count) : "");
  while (static_cast<int>(copies.size()) < count) copies.push_back(load(flags, true));
  return copies;
}

void write_results(const BenchFlags& flags, std::span<const BenchRow> rows,
                   const Ceilings& ceilings, const RunInfo& info) {
  if (!flags.csv.empty()) {
    write_file_atomically(flags.csv, bench_csv(rows));
  }
  if (flags.json.empty()) return;
  write_file_atomically(flags.json, to_text(bench_json(rows, ceilings, info), 2) + "\n");
}

// Lengths that are measured unless asked for otherwise are left out where they do not fit the
// model; those asked for are an error.
void fit_lengths(BenchFlags& flags, BenchOptions& options) {
  const int positions = flags.shape.empty()
                            ? load_config(flags.model.model_dir()).max_position_embeddings
                            : find_shape(flags.shape).max_position_embeddings;
  if (!flags.prefill_option->count())
    std::erase_if(options.prefills, [&](int tokens) { return tokens > positions; });
  if (!flags.context_option->count())
    std::erase_if(options.contexts, [&](int tokens) { return tokens + 1 > positions; });
  check_lengths(options, positions);
}

// The same for every way of naming a file, which may not be there yet.
std::filesystem::path place_of(const std::filesystem::path& file) {
  std::error_code unknown;
  return std::filesystem::weakly_canonical(std::filesystem::absolute(file), unknown);
}

void run_bench(BenchFlags& flags) {
  // Before anything is measured.
  if (!flags.shape.empty()) find_shape(flags.shape);
  if (!flags.csv.empty() && !flags.json.empty() && place_of(flags.csv) == place_of(flags.json))
    fail("--csv and --json name the same file, {}", flags.csv.string());
  std::vector<std::filesystem::path> inputs;
  if (flags.shape.empty()) inputs.push_back(flags.model.model_dir());
  if (!flags.csv.empty()) ensure_writable_output(flags.csv, bench_csv_kind(), inputs);
  if (!flags.json.empty()) ensure_writable_output(flags.json, bench_json_kind(), inputs);
  BenchOptions options = flags.options;
  for (const std::string& text : flags.actions) options.actions.push_back(parse_action(text));
  options.sequence = flags.sequence.get();
  fit_lengths(flags, options);
  set_thread_count(flags.model.threads);
  const int most = thread_count();
  options.threads = flags.threads.empty() ? std::vector<int>{most} : flags.threads;
  std::sort(options.threads.begin(), options.threads.end());

  print("sol {} ({}), {}, {}\n", build_version(), build_commit(), to_string(current_isa()),
        cpu_description());
  // Loaded first: what is wrong with the model or its options is said before anything is measured.
  std::vector<std::unique_ptr<CpuModel>> copies;
  if (!flags.ceilings_only) copies = load_copies(flags);
  const int max_threads = std::max(most, options.threads.back());
  MemoryReader reader(max_threads);
  std::vector<int> counts = options.threads;
  counts.push_back(max_threads);
  const Ceilings ceilings = measure_ceilings(reader, counts);
  print("{}", ceilings_text(ceilings));
  if (flags.ceilings_only) return;

  std::unique_ptr<PolicyNetwork> policy;
  if (flags.policy) policy = make_random_policy(copies[0]->config().hidden_size);
  options.policy = policy.get();
  if (!flags.cached) options.reader = &reader;
  print("{}", bench_header());
  const std::string name = flags.shape.empty() ? file_name(flags.model.model_dir()) : flags.shape;
  const RunInfo info = describe_run(*copies[0], name, 0, command_line());
  // Rows are kept as they are done, so that an interruption loses those alone that are measured
  // together with the unfinished one: the actions of one context and batch.
  measure_model(copies, options, [&](std::span<const BenchRow> rows) {
    print("{}", bench_line(rows.back()));
    write_results(flags, rows, ceilings, info);
  });
}

}  // namespace

void add_bench_command(CLI::App& app) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* command = app.add_subcommand(
      "bench", "The machine's limits, and how near a model's prefill and decoding come to them");
  add_model_flags(*command, flags->model);
  command->remove_option(command->get_option("--device"));  // it measures the kernels themselves
  std::string names;
  for (const NamedShape& shape : named_shapes()) {
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", shape.name, shape.description);
  }
  command->add_option("--shape", flags->shape, "Random weights of this shape instead: " + names)
      ->type_name("NAME")
      ->excludes("--model");
  const auto list = [&](const char* name, std::vector<int>& values, const char* what,
                        const CLI::Validator& check) {
    return command->add_option(name, values, what)
        ->delimiter(',')
        ->check(check)
        ->type_name("LIST")
        ->capture_default_str();
  };
  const CLI::Validator positive = in_range(1, 1 << 20);
  list("--with-threads", flags->threads, "Numbers of threads to measure (default: --threads)",
       in_range(1, 4096));
  flags->prefill_option = list("--prefill", flags->options.prefills, "Prompt lengths", positive);
  flags->context_option = list("--context", flags->options.contexts,
                               "Tokens in the cache before the decoded ones", in_range(0, 1 << 20));
  list("--batch", flags->options.batches, "Sequences decoded together", in_range(1, 1024));
  command
      ->add_option("--action", flags->actions,
                   "Actions to measure beside dense, such as k100-s050-q16; repeatable")
      ->delimiter(',')
      ->type_name("LIST");
  add_sequence_flags(*command, flags->sequence);
  command->add_option("--tokens", flags->options.tokens, "Decode steps per repetition")
      ->check(positive)
      ->capture_default_str();
  command->add_option("--repeats", flags->options.repeats, "Repetitions; medians are shown")
      ->check(in_range(1, 1000))
      ->capture_default_str();
  command->add_flag("--policy", flags->policy,
                    "Run a policy network of the paper's size before every decode step");
  command->add_flag("--cached", flags->cached,
                    "Let a small model's weights stay in the processor's cache");
  command
      ->add_option("--csv", flags->csv, "Write the rows to this file, or over an older such file")
      ->type_name("FILE");
  command->add_option("--json", flags->json, "Write rows, ceilings and machine to this file")
      ->type_name("FILE");
  command->add_flag("--ceilings-only", flags->ceilings_only, "Measure the machine alone")
      ->excludes("--csv")
      ->excludes("--json");
  command->callback([flags] { run_bench(*flags); });
}

}  // namespace sol::app
