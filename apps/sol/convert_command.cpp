// sol convert: a model directory that is used in place, with smaller weights if wanted.
#include <map>
#include <memory>

#include "base/threads.h"
#include "commands.h"
#include "common.h"
#include "engine/convert.h"
#include "validators.h"

namespace sol::app {
namespace {

struct ConvertFlags {
  std::filesystem::path model, out;
  std::string weights;
  int threads = 0;
};

uint64_t size_of_weights(const std::filesystem::path& dir) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir))
    if (entry.path().extension() == ".safetensors") bytes += entry.file_size();
  return bytes;
}

void run_convert(const ConvertFlags& flags) {
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
  const auto before = static_cast<double>(size_of_weights(from));
  const auto after = static_cast<double>(size_of_weights(flags.out));
  print("{}: {} weights, {:.1f} MB, {:.1f} % of {}\n", flags.out.string(), flags.weights,
        after / 1e6, 100 * after / before, from.string());
}

}  // namespace

void add_convert_command(CLI::App& app) {
  auto flags = std::make_shared<ConvertFlags>();
  CLI::App* command = app.add_subcommand(
      "convert", "Write a model directory that is used in place, without work at loading");
  add_model_option(*command, flags->model);
  command
      ->add_option("--weights", flags->weights,
                   "bf16 (the same weights where they are bf16, others rounded), int8, int4")
      ->check(CLI::IsMember({"bf16", "int8", "int4"}))
      ->required();
  command->add_option("-o,--out", flags->out, "Directory to write; must not exist or be empty")
      ->type_name("DIR")
      ->required();
  command->add_option("--threads", flags->threads, "Threads; 0 for as many as the process may use")
      ->check(in_range(0, 4096))
      ->capture_default_str();
  command->callback([flags] { run_convert(*flags); });
}

}  // namespace sol::app
