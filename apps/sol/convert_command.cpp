// sol convert: a model directory that is used in place, with smaller weights if wanted; other
// programs' files as directories that this one reads.
#include <map>
#include <memory>

#include "base/fail.h"
#include "base/staged_directory.h"
#include "base/threads.h"
#include "benchmark/random_model.h"
#include "commands.h"
#include "common.h"
#include "engine/convert.h"
#include "engine/converted_weights.h"
#include "model/llama2c.h"
#include "model/safetensors.h"
#include "policy/import_checkpoint.h"
#include "policy/network.h"
#include "training/config.h"
#include "validators.h"

namespace sol::app {
namespace {

struct ConvertFlags {
  std::filesystem::path model, out;
  std::string weights;
  int threads = 0;
  std::string from = "sol";
  std::filesystem::path source, tokenizer, config;
};

void convert_from_llama2c(const ConvertFlags& flags) {
  if (flags.tokenizer.empty()) fail("--from llama2c needs the model's --tokenizer FILE");
  convert_llama2c(flags.source, flags.tokenizer, flags.out, interrupt_token());
  print("{}: a Hugging Face directory of {}\n", flags.out.string(), flags.source.string());
}

void convert_from_policy(const ConvertFlags& flags) {
  if (flags.config.empty())
    fail("--from sol-pt needs the --config that the policy was trained with (configs/*.yaml)");
  require_free_directory(flags.out);
  const TrainingConfig config = load_training_config(flags.config);
  // What the authors' policies cannot have: a controller without it would not be what is asked for.
  for (const auto& [set, name] : {std::pair{config.enforced, "budgets.enforced"},
                                  std::pair{config.time.has_value(), "budgets.time"},
                                  std::pair{config.policy.surprisal, "policy.surprisal"}})
    if (set)
      fail(
          "{}: {} is an option of this program, with which no policy of the paper's authors was "
          "trained; name the configuration of the one to convert",
          flags.config.string(), name);
  const std::filesystem::path dir = flags.model.empty() ? default_model_dir() : flags.model;
  const LlamaConfig model = load_config(dir);
  ImportSettings settings{config.space, {}, config.policy.heads, model.hidden_size};
  settings.controller.horizon = config.horizon;
  settings.controller.sequence = config.sequence;
  settings.controller.ranges = {config.kappa.range, config.rho.range, config.eta.range};
  settings.controller.model_fingerprint = fingerprint_of(model, TensorStore::open_directory(dir));
  const Controller controller = import_controller(read_torch_checkpoint(flags.source),
                                                  std::move(settings), flags.source.string());
  controller.save(flags.out);
  print("{}: a controller of {} parameters for {} actions, from {}\n", flags.out.string(),
        controller.network().parameter_count(), controller.space().size(), flags.source.string());
}

void convert_from_shape(const ConvertFlags& flags) {
  if (flags.tokenizer.empty()) fail("--from shape needs a --tokenizer: a model directory's");
  set_thread_count(flags.threads);
  const LlamaConfig& config = find_shape(flags.source.string());
  write_random_model(config, DType::bf16, flags.tokenizer, flags.out, interrupt_token());
  print("{}: random weights in the shape of {}, {:.2f} GB\n", flags.out.string(),
        flags.source.string(), static_cast<double>(stored_bytes(flags.out)) / 1e9);
}

void convert_model_weights(const ConvertFlags& flags) {
  static const std::map<std::string, kernels::WeightType> types{
      {"bf16", kernels::WeightType::bf16},
      {"int8", kernels::WeightType::int8},
      {"int4", kernels::WeightType::int4}};
  set_thread_count(flags.threads);
  const std::filesystem::path from = flags.model.empty() ? default_model_dir() : flags.model;
  ProgressLine line;
  convert_model(
      from, flags.out, types.at(flags.weights),
      [&](int64_t done, int64_t all) {
        line.update(fmt::format("converting {} of {} tensors", done, all));
      },
      interrupt_token());
  line.finish();
  const auto before = static_cast<double>(stored_bytes(from));
  const auto after = static_cast<double>(stored_bytes(flags.out));
  print("{}: {} weights, {:.1f} MB, {:.1f} % of {}\n", flags.out.string(), flags.weights,
        after / 1e6, 100 * after / before, from.string());
}

// Options that say something about one kind of source only must not pass unnoticed with another.
void reject_options(const ConvertFlags& flags) {
  if (flags.from == "sol") {
    if (!flags.source.empty()) fail("a model to convert is named with -m; --from says of others");
    if (flags.weights.empty()) fail("--weights is required");
  } else {
    if (flags.source.empty()) fail("--from {} needs the file to convert", flags.from);
    if (flags.threads != 0 && flags.from != "shape")
      fail("--threads goes with weights to be made only, and --from {} makes none", flags.from);
    if (!flags.weights.empty())
      fail("--from {} takes no --weights; convert its result again with them", flags.from);
  }
  const bool brings_tokenizer = flags.from == "llama2c" || flags.from == "shape";
  if (!brings_tokenizer && !flags.tokenizer.empty())
    fail("--tokenizer goes with --from llama2c and --from shape only");
  if (flags.from != "sol-pt" && !flags.config.empty())
    fail("--config goes with --from sol-pt only");
  if (brings_tokenizer && !flags.model.empty()) fail("--from {} takes no -m", flags.from);
}

void run_convert(const ConvertFlags& flags) {
  reject_options(flags);
  if (flags.from == "llama2c") return convert_from_llama2c(flags);
  if (flags.from == "sol-pt") return convert_from_policy(flags);
  if (flags.from == "shape") return convert_from_shape(flags);
  convert_model_weights(flags);
}

}  // namespace

void add_convert_command(CLI::App& app) {
  auto flags = std::make_shared<ConvertFlags>();
  CLI::App* command = app.add_subcommand(
      "convert",
      "Write a model directory that is used in place, or one from other programs' files");
  add_model_option(*command, flags->model);
  command
      ->add_option("--weights", flags->weights,
                   "bf16 (the same weights where they are bf16, others rounded), int8, int4")
      ->check(CLI::IsMember({"bf16", "int8", "int4"}));
  command
      ->add_option(
          "--from", flags->from,
          "sol (a model directory, -m), llama2c (a checkpoint of llama2.c's legacy format), "
          "sol-pt (a policy_*.pt of the paper's authors, becomes a controller), shape (random "
          "weights of a shape that `sol bench` knows: llama-3.2-1b, ...)")
      ->check(CLI::IsMember({"sol", "llama2c", "sol-pt", "shape"}))
      ->capture_default_str();
  command
      ->add_option("file", flags->source,
                   "What to convert, with --from llama2c or sol-pt; the shape's name")
      ->type_name("FILE");
  command
      ->add_option("--tokenizer", flags->tokenizer,
                   "Of llama2.c: its tokenizer.bin; of a shape: a model's directory")
      ->type_name("PATH");
  command
      ->add_option(
          "--config", flags->config,
          "Of a policy: the training configuration with its actions, horizon, pages, heads")
      ->type_name("YAML");
  command->add_option("-o,--out", flags->out, "Directory to write; must not exist or be empty")
      ->type_name("DIR")
      ->required();
  command->add_option("--threads", flags->threads, "Threads; 0 for as many as the process may use")
      ->check(in_range(0, 4096))
      ->capture_default_str();
  command->callback([flags] { run_convert(*flags); });
}

}  // namespace sol::app
