// Time of attention alone, all layers of one step, in the shape of Llama-3.2-1B: decoded tokens
// over a long cache, dense and with a share of the pages, and dense passes over a prompt. No
// weights are read, so that what remains of a whole step's time can be told from it.
//
//   attention_bench [--heads 32/8] [--dim 64] [--layers 16] [--threads N] [--precision bf16|f32]
//                   [--page 4] [--contexts 1024,4096,16384] [--repeats 7]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <vector>

#include "base/random.h"
#include "base/stopwatch.h"
#include "base/threads.h"
#include "engine/attention.h"
#include "engine/decode_attention.h"
#include "sol/error.h"

namespace {

using namespace sol;

struct Options {
  int heads = 32, kv_heads = 8, dim = 64, layers = 16, page = 4, repeats = 7;
  std::vector<int> contexts{1024, 4096, 16384};
  kernels::ElementType type = kernels::ElementType::bf16;
  kernels::MatmulMode mode = kernels::MatmulMode::library;
};

Activations noise(size_t n, uint64_t seed) {
  Random random({.seed = seed});
  Activations x(n);
  for (float& v : x) v = static_cast<float>(4 * random.uniform_double() - 2);
  return x;
}

double median_seconds(int repeats, const std::function<void()>& body) {
  std::vector<double> times;
  body();
  for (int i = 0; i < repeats; ++i) {
    const Stopwatch watch;
    body();
    times.push_back(watch.seconds());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

class Bench {
 public:
  explicit Bench(const Options& options) : o_(options) {
    config_.num_layers = o_.layers;
    config_.num_heads = o_.heads;
    config_.num_kv_heads = o_.kv_heads;
    config_.head_dim = o_.dim;
    sequence_options_.page_size = o_.page;
  }

  void run() {
    std::printf("%d/%d heads of %d, %d layers, %s cache, page %d, %d threads\n", o_.heads,
                o_.kv_heads, o_.dim, o_.layers,
                o_.type == kernels::ElementType::bf16 ? "bf16" : "f32", o_.page, thread_count());
    std::printf("%8s %10s %10s %10s %10s %10s %16s\n", "context", "kappa", "ms", "pages ms", "MB",
                "GB/s", "time, bytes");
    for (const int n : o_.contexts) decode(n);
    std::printf("%8s %10s %10s\n", "prompt", "ms", "GFLOP/s");
    for (const int n : o_.contexts)
      if (n <= 4096) prefill(n);
  }

 private:
  std::unique_ptr<CpuSequence> filled(int n) {
    const CacheLayout layout(config_, sequence_options_, o_.type);
    if (!pool_) pool_ = std::make_shared<BlockPool>(layout.block_bytes);
    auto sequence = std::make_unique<CpuSequence>(sequence_options_, layout, pool_);
    const int64_t width = int64_t{o_.kv_heads} * o_.dim;
    const auto values = noise(static_cast<size_t>(width) * 1031, 1);
    sequence->grow(n);
    for (int layer = 0; layer < o_.layers; ++layer) {
      parallel_for((n + 255) / 256, [&](int64_t i) {
        const int first = static_cast<int>(i) * 256, count = std::min(256, n - first);
        const float* from = values.data() + (first + layer * 37) % 700 * width;
        sequence->write(layer, first, count, from, from + 17 * width, width);
        sequence->update_pages(layer, first, count);
      });
    }
    return sequence;
  }

  void decode(int n) {
    const auto sequence = filled(n);
    Batch batch;
    batch.decode = true;
    batch.tokens = {0};
    batch.q = noise(static_cast<size_t>(o_.heads) * o_.dim, 2);
    batch.attended.resize(batch.q.size());
    double dense = 0, dense_bytes = 0;
    for (const float kappa : {1.0f, 0.5f, 0.2f, 0.1f}) {
      batch.segments = {{sequence.get(), 0, 1, n - 1, {kappa, 1.0f, 16}}};
      const auto step = [&] {
        prepare_decode(config_, batch);
        for (int layer = 0; layer < o_.layers; ++layer) attend(config_, layer, batch, o_.mode);
      };
      StepCost cost;
      batch.costs = {&cost};
      step();
      batch.costs = {nullptr};
      StageTimes stages;
      batch.clock.report_to(&stages);
      const double seconds = median_seconds(o_.repeats, [&] {
        step();
        batch.clock.stop();
      });
      batch.clock.report_to(nullptr);
      const double pages = stages.page_scoring / (o_.repeats + 1);
      const double bytes = static_cast<double>(cost.bytes);
      if (kappa == 1.0f) {
        dense = seconds;
        dense_bytes = bytes;
      }
      std::printf("%8d %10.2f %10.3f %10.3f %10.1f %10.2f %6.1f %% %5.1f %%\n", n, kappa,
                  seconds * 1e3, pages * 1e3, bytes / 1e6, bytes / seconds / 1e9,
                  100 * seconds / dense, 100 * bytes / dense_bytes);
      std::fflush(stdout);
    }
  }

  void prefill(int n) {
    constexpr int chunk = 512;
    const auto sequence = filled(n);
    const int64_t width = int64_t{o_.heads} * o_.dim;
    Batch batch;
    batch.q = noise(static_cast<size_t>(width) * chunk, 3);
    batch.attended.resize(batch.q.size());
    const double seconds = median_seconds(2, [&] {
      for (int first = 0; first < n; first += chunk) {
        const int rows = std::min(chunk, n - first);
        batch.segments = {{sequence.get(), 0, rows, first, {}}};
        batch.tokens.resize(static_cast<size_t>(rows));
        for (int layer = 0; layer < o_.layers; ++layer) attend(config_, layer, batch, o_.mode);
      }
    });
    const double flops = 4.0 * o_.dim * o_.heads * o_.layers * (0.5 * n * (n + 1.0));
    std::printf("%8d %10.1f %10.1f\n", n, seconds * 1e3, flops / seconds / 1e9);
    std::fflush(stdout);
  }

  Options o_;
  LlamaConfig config_;
  SequenceOptions sequence_options_;
  std::shared_ptr<BlockPool> pool_;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Milliseconds of attention, all layers of one step"};
  Options options;
  int threads = 0;
  std::string heads = "32/8", precision = "bf16";
  bool deterministic = false;
  app.add_option("--heads", heads, "query heads/key heads");
  app.add_option("--dim", options.dim)->check(CLI::PositiveNumber);
  app.add_option("--layers", options.layers)->check(CLI::PositiveNumber);
  app.add_option("--page", options.page)->check(CLI::PositiveNumber);
  app.add_option("--repeats", options.repeats)->check(CLI::PositiveNumber);
  app.add_option("--contexts", options.contexts)->delimiter(',');
  app.add_option("--threads", threads)->check(CLI::NonNegativeNumber);
  app.add_option("--precision", precision)->check(CLI::IsMember({"bf16", "f32"}));
  app.add_flag("--deterministic", deterministic);
  CLI11_PARSE(app, argc, argv);
  if (std::sscanf(heads.c_str(), "%d/%d", &options.heads, &options.kv_heads) != 2) {
    std::fprintf(stderr, "attention_bench: --heads wants two numbers, as in 32/8\n");
    return 2;
  }
  if (precision == "f32") options.type = kernels::ElementType::f32;
  if (deterministic) options.mode = kernels::MatmulMode::own;
  set_thread_count(threads);
  Bench(options).run();
  return 0;
}
