// Seconds and memory of one training batch on random weights: by default the shape that the
// reference implementation was measured with (27.3 M parameters, policy of 5.15 M; B = 8, K = 16, T
// = 16, context 1024, page 8, 1560 actions: 112 s and 5.3 GiB on two cores). Speed does not depend
// on the weights.
//
//   train_batch [--batches N] [--precision auto|f32|bf16] [--threads N] [--device native|cpu|cuda]
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "../apps/sol/openblas_environment.h"
#include "base/random.h"
#include "base/stopwatch.h"
#include "base/threads.h"
#include "benchmark/random_model.h"
#include "engine_torch/torch_model.h"
#include "policy/policies.h"
#include "sol/error.h"
#include "training/initialisation.h"
#include "training/rollout.h"
#include "training/update.h"

namespace {

using namespace sol;

TrainingConfig paper_full_configuration() {
  std::vector<double> keep;
  std::vector<std::string> prune, quant;
  for (int i = 1; i <= 10; ++i) keep.push_back(i / 10.0);
  for (int p = 40; p <= 100; p += 5) prune.push_back("s" + std::to_string(p));
  for (int q = 5; q <= 16; ++q) quant.push_back("q" + std::to_string(q));
  TrainingConfig config;
  config.space = ActionSpace::from_notation(keep, prune, quant);
  config.sequence.page_size = 8;
  config.kappa.range = {0.1, 1.0};
  config.rho.range = {0.4, 1.0};
  config.eta.range = {0.3125, 1.0};
  config.grad_accum = 4;  // one AdamW step a batch
  return config;
}

double peak_gib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / (1024.0 * 1024.0);
}

// Of all threads; tells a slow program from a busy machine.
double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::unique_ptr<FrozenModel> make_model(const LlamaConfig& shape, const ModelOptions& options,
                                        const std::string& device) {
  if (device == "native") return make_random_model(shape, DType::f32, options);
  return make_torch_model(shape, make_random_weights(shape, DType::f32), device, options);
}

void run(int batches, const std::string& precision, const std::string& device) {
  const LlamaConfig& llama = find_shape("small-27m");
  ModelOptions options;
  if (precision == "f32") options.precision = Precision::f32;
  if (precision == "bf16") options.precision = Precision::bf16;
  const auto model = make_model(llama, options, device);
  TrainingConfig config = paper_full_configuration();
  PolicyNetworkShape shape = config.policy;
  shape.hidden_size = llama.hidden_size;
  shape.actions = config.space.size();
  TorchNetwork network(shape, initial_parameters(shape, 1));
  AdamW optimiser(network, config.optimiser);
  UpdateCounters counters;
  std::printf(
      "frozen model %.1f M parameters, %s, %s; %d threads; peak memory before the first batch %.2f "
      "GiB\n",
      static_cast<double>(model->parameter_count()) / 1e6,
      std::string(to_string(model->precision())).c_str(), model->device().c_str(), thread_count(),
      peak_gib());
  std::printf("%8s %10s %10s %10s %10s %10s %10s %10s\n", "batch", "prefill", "model", "policy",
              "update", "seconds", "CPU s", "peak GiB");
  std::fflush(stdout);
  std::vector<double> totals;
  for (int batch = 0; batch < batches; ++batch) {
    std::vector<std::vector<int32_t>> ids(static_cast<size_t>(config.batch));
    std::vector<RolloutInput> inputs;
    for (size_t i = 0; i < ids.size(); ++i) {
      const uint64_t position = static_cast<uint64_t>(batch) * ids.size() + i;
      Random random({.seed = 1, .block = position});
      for (int t = 0; t < config.block_length(); ++t) {
        ids[i].push_back(
            static_cast<int32_t>(random.below(static_cast<uint32_t>(llama.vocab_size))));
      }
      inputs.push_back(
          {.ids = ids[i], .position = position, .budget = draw_budget(config, position)});
    }
    const Stopwatch stopwatch;
    const double cpu_start = cpu_seconds();
    const auto snapshot = std::make_shared<const PolicyNetwork>(shape, network.parameters());
    const auto policy =
        make_learned_policy(config.space, snapshot, config.loss.temperature, config.seed);
    RolloutTimes times;
    std::vector<Schedule> schedules = roll_out(*model, *policy, config, inputs, &times);
    const Stopwatch update_time;
    assign_advantages(schedules, config.schedules, config.advantage);
    assign_old_log_probs(network, schedules, config);
    update_policy(network, optimiser, schedules, config, batch, counters);
    totals.push_back(stopwatch.seconds());
    std::printf("%8d %10.2f %10.2f %10.2f %10.2f %10.2f %10.2f %10.2f\n", batch + 1, times.prefill,
                times.model, times.policy, update_time.seconds(), totals.back(),
                cpu_seconds() - cpu_start, peak_gib());
    std::fflush(stdout);
  }
  std::sort(totals.begin(), totals.end());
  std::printf("median %.2f s a batch, peak %.2f GiB\n", totals[totals.size() / 2], peak_gib());
  if (const uint64_t peak = model->device_peak_bytes(); peak > 0)
    std::printf("%s held at most %.2f GiB\n", model->device().c_str(),
                static_cast<double>(peak) / (1 << 30));
}

}  // namespace

int main(int argc, char** argv) {
  app::choose_openblas_kernels();
  CLI::App app{"Seconds and memory of one training batch"};
  int batches = 3, threads = 0;
  std::string precision = "auto", device = "native";
  app.add_option("--batches", batches)->check(CLI::PositiveNumber);
  app.add_option("--threads", threads)->check(CLI::NonNegativeNumber);
  app.add_option("--precision", precision)->check(CLI::IsMember({"auto", "f32", "bf16"}));
  app.add_option("--device", device, "native, or through LibTorch cpu, cuda or cuda:N");
  CLI11_PARSE(app, argc, argv);
  try {
    set_thread_count(threads);
    run(batches, precision, device);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train_batch: %s\n", error.what());
    return 1;
  }
  return 0;
}
