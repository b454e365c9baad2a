// What compressed weights cost: perplexity, and the divergence of the predictions from those of the
// original weights in float32, over all positions of the first blocks of a text.
//
//   weight_quality [-m DIR] --data FILE [--format wikitext|documents] [--blocks N] [--length N]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/threads.h"
#include "sol/error.h"
#include "sol/frozen_model.h"
#include "sol/tokenizer.h"
#include "text/block_dataset.h"

namespace {

using namespace sol;  // NOLINT

using Logits = std::vector<float>;  // [position][vocabulary]

Logits logits_of(FrozenModel& model, std::span<const int32_t> ids) {
  const auto vocab = static_cast<size_t>(model.config().vocab_size);
  Logits logits(ids.size() * vocab);
  auto sequence = model.create({});
  ExtendItem item{sequence.get(), ids, {}};
  for (size_t i = 0; i < ids.size(); ++i)
    item.wanted.push_back({i, {.logits = &logits[i * vocab]}});
  model.extend({&item, 1});
  return logits;
}

double log_sum_exp(const float* x, size_t n) {
  double largest = x[0], sum = 0;
  for (size_t i = 1; i < n; ++i) largest = std::max<double>(largest, x[i]);
  for (size_t i = 0; i < n; ++i) sum += std::exp(x[i] - largest);
  return largest + std::log(sum);
}

struct Quality {
  double nll = 0, divergence = 0;  // nats, mean over positions
  double same_top = 0;             // share of positions with the same most likely token
};

Quality compare(FrozenModel& model, const std::vector<Logits>& exact, const BlockDataset& data) {
  const auto vocab = static_cast<size_t>(model.config().vocab_size);
  std::vector<Quality> positions;
  for (size_t b = 0; b < exact.size(); ++b) {
    const auto ids = data.block(static_cast<int64_t>(b));
    const size_t rows = ids.size() - 1;
    const Logits logits = logits_of(model, ids.first(rows));
    const size_t first = positions.size();
    positions.resize(first + rows);
    parallel_for(static_cast<int64_t>(rows), [&](int64_t row) {
      const size_t i = static_cast<size_t>(row);
      const float *p = &exact[b][i * vocab], *q = &logits[i * vocab];
      const double sum_p = log_sum_exp(p, vocab), sum_q = log_sum_exp(q, vocab);
      Quality& at = positions[first + i];
      at.nll = sum_q - q[ids[i + 1]];
      for (size_t v = 0; v < vocab; ++v)
        at.divergence += std::exp(p[v] - sum_p) * ((p[v] - sum_p) - (q[v] - sum_q));
      at.same_top = std::max_element(p, p + vocab) - p == std::max_element(q, q + vocab) - q;
    });
  }
  Quality mean;
  for (const Quality& at : positions) {
    mean.nll += at.nll / static_cast<double>(positions.size());
    mean.divergence += at.divergence / static_cast<double>(positions.size());
    mean.same_top += at.same_top / static_cast<double>(positions.size());
  }
  return mean;
}

void run(const std::filesystem::path& dir, const std::filesystem::path& text,
         const std::string& format, int64_t blocks, int length) {
  TextOptions options;
  if (format == "wikitext") options.format = TextOptions::Format::wikitext;
  const auto tokenizer = Tokenizer::load(dir);
  const BlockDataset data = BlockDataset::open({text}, options, *tokenizer, length + 1, {});
  blocks = std::min(blocks, data.size());

  auto original = load_model(dir, {.precision = Precision::f32});
  std::vector<Logits> exact;
  for (int64_t b = 0; b < blocks; ++b)
    exact.push_back(logits_of(*original, data.block(b).first(static_cast<size_t>(length))));
  std::printf("%lld blocks of %d tokens of %s\n", static_cast<long long>(blocks), length,
              text.filename().c_str());
  std::printf("%-8s %-6s %-12s %12s %12s %10s %14s\n", "weights", "x", "", "perplexity",
              "KL (nats)", "same top", "bytes a token");
  const auto measure = [&](const ModelOptions& how) {
    auto model = load_model(dir, how);
    const Quality quality = compare(*model, exact, data);
    auto sequence = model->create({});
    StepCost cost;
    float entropy = 0;
    DecodeItem step{sequence.get(), 0, {}, {.entropy = &entropy}, &cost};
    model->decode({&step, 1});
    std::printf("%-8s %-6s %-12s %12.4f %12.3e %9.2f%% %14llu\n",
                std::string(weights_name(*model)).c_str(),
                std::string(to_string(how.precision)).c_str(),
                how.int8_activations ? "in 8 bits" : "", std::exp(quality.nll), quality.divergence,
                100 * quality.same_top, static_cast<unsigned long long>(cost.bytes));
    std::fflush(stdout);
  };
  for (const WeightFormat weights :
       {WeightFormat::automatic, WeightFormat::int8, WeightFormat::int4}) {
    for (const Precision precision : {Precision::f32, Precision::bf16})
      measure({.precision = precision, .weights = weights});
  }
  measure({.precision = Precision::f32, .weights = WeightFormat::int8, .int8_activations = true});
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Perplexity and divergence of compressed weights"};
  std::filesystem::path model = std::filesystem::path(SOL_SOURCE_DIR) / "models/default", text;
  std::string format = "documents";
  int64_t blocks = 32;
  int length = 1040;
  app.add_option("-m,--model", model);
  app.add_option("--data", text)->required();
  app.add_option("--format", format)->check(CLI::IsMember({"documents", "wikitext"}));
  app.add_option("--blocks", blocks)->check(CLI::PositiveNumber);
  app.add_option("--length", length)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    run(model, text, format, blocks, length);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "weight_quality: %s\n", error.what());
    return 1;
  }
  return 0;
}
