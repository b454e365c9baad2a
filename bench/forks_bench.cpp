// Time of a training batch's decode steps: K children of each of B prefixes, every child under its
// own action, as rollouts run them. By default the shape that the reference implementation was
// measured with.
//
//   forks_bench [--inputs 8] [--children 16] [--context 1024] [--page 8] [--steps 16]
//               [--precision auto|f32|bf16] [--deterministic] [--threads N] [--dense]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/random.h"
#include "base/stopwatch.h"
#include "base/threads.h"
#include "benchmark/random_model.h"
#include "sol/error.h"
#include "sol/frozen_model.h"

namespace {

using namespace sol;

struct Options {
  int inputs = 8, children = 16, context = 1024, page = 8, steps = 16;
  bool deterministic = false, dense = false;
  std::string precision = "auto";
};

void run(const Options& o) {
  LlamaConfig shape = find_shape("small-27m");
  shape.max_position_embeddings = std::max(shape.max_position_embeddings, o.context + o.steps);
  ModelOptions model_options;
  if (o.precision == "f32") model_options.precision = Precision::f32;
  if (o.precision == "bf16") model_options.precision = Precision::bf16;
  model_options.deterministic = o.deterministic;
  const std::unique_ptr<CpuModel> model = make_random_model(shape, DType::bf16, model_options);
  Random random({.seed = 1});
  const auto token = [&] {
    return static_cast<int32_t>(random.below(static_cast<uint32_t>(shape.vocab_size)));
  };

  std::vector<std::unique_ptr<Sequence>> children;
  const Stopwatch prefill_watch;
  for (int i = 0; i < o.inputs; ++i) {
    std::vector<int32_t> prefix(static_cast<size_t>(o.context));
    for (int32_t& t : prefix) t = token();
    const auto parent = model->create({.page_size = o.page});
    ExtendItem item{parent.get(), prefix, {}};
    model->extend({&item, 1}, {});
    for (auto& child : model->fork(*parent, o.children)) children.push_back(std::move(child));
  }
  const double prefill = prefill_watch.seconds();

  const float kappas[] = {0.2f, 0.3f, 0.5f, 0.7f, 1.0f};
  std::vector<float> log_prob(children.size());
  std::vector<double> times;
  StageTimes stages;
  model->measure_stages(&stages);
  for (int step = 0; step < o.steps; ++step) {
    std::vector<DecodeItem> items;
    int32_t next = 0, target = 0;  // children of one input are fed the same text
    for (size_t c = 0; c < children.size(); ++c) {
      if (c % static_cast<size_t>(o.children) == 0) {
        next = token();
        target = token();
      }
      const float kappa = o.dense ? 1.0f : kappas[random.below(5)];
      items.push_back({children[c].get(),
                       next,
                       {kappa, 1.0f, 16},
                       {.target = target, .log_prob = &log_prob[c]},
                       nullptr});
    }
    const Stopwatch watch;
    model->decode(items);
    times.push_back(watch.seconds());
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  std::printf("%s, %d threads: prefill %.2f s, decode %.1f ms a step (median), %.0f tokens/s\n",
              model->precision() == Precision::bf16 ? "bf16" : "f32", thread_count(), prefill,
              median * 1e3, static_cast<double>(children.size()) / median);
  const double to_ms = 1e3 / o.steps;
  std::printf("means: pages %.1f ms, attention %.1f, projections %.1f, mlp %.1f, head %.1f\n",
              stages.page_scoring * to_ms, stages.attention * to_ms, stages.projections * to_ms,
              stages.mlp * to_ms, stages.head * to_ms);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Milliseconds of one decode step of many forks"};
  Options o;
  int threads = 0;
  app.add_option("--inputs", o.inputs)->check(CLI::PositiveNumber);
  app.add_option("--children", o.children)->check(CLI::PositiveNumber);
  app.add_option("--context", o.context)->check(CLI::PositiveNumber);
  app.add_option("--page", o.page)->check(CLI::PositiveNumber);
  app.add_option("--steps", o.steps)->check(CLI::PositiveNumber);
  app.add_option("--threads", threads)->check(CLI::NonNegativeNumber);
  app.add_option("--precision", o.precision)->check(CLI::IsMember({"auto", "f32", "bf16"}));
  app.add_flag("--deterministic", o.deterministic);
  app.add_flag("--dense", o.dense, "kappa 1 for every child");
  CLI11_PARSE(app, argc, argv);
  try {
    set_thread_count(threads);
    run(o);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "forks_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
