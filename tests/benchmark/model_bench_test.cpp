#include "benchmark/model_bench.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "benchmark/bench_report.h"
#include "benchmark/random_model.h"
#include "throws.h"

namespace sol::test {
namespace {

LlamaConfig tiny() {
  LlamaConfig config = find_shape("small-27m");
  config.num_layers = 2;
  config.vocab_size = 512;
  return config;
}

std::vector<std::unique_ptr<CpuModel>> one_model() {
  std::vector<std::unique_ptr<CpuModel>> models;
  models.push_back(make_random_model(tiny(), DType::f32, {.precision = Precision::f32}));
  return models;
}

BenchOptions quick() {
  BenchOptions options;
  options.threads = {1};
  options.prefills = {8};
  options.contexts = {0, 64};
  options.tokens = 1;
  options.repeats = 2;
  return options;
}

std::vector<BenchRow> measured(const BenchOptions& options) {
  return measure_model(one_model(), options, [](std::span<const BenchRow>) {});
}

TEST(ModelBench, OneRowPerCaseInTheOrderAskedFor) {
  BenchOptions options = quick();
  options.actions = {{.kappa = 0.5f, .rho = 0.5f, .bits = 8}};
  options.batches = {1, 2};
  const std::vector<BenchRow> rows = measured(options);
  ASSERT_EQ(rows.size(), 1u + 2 * 2 * 2);
  EXPECT_EQ(rows[0].kind, BenchKind::prefill);
  EXPECT_EQ(rows[0].tokens, 8);
  EXPECT_EQ(rows[1].context, 0);
  EXPECT_TRUE(rows[1].action.dense());
  EXPECT_EQ(rows[2].action.bits, 8);
  EXPECT_EQ(rows[3].batch, 2);
  EXPECT_EQ(rows.back().context, 64);
  for (const BenchRow& row : rows) {
    EXPECT_EQ(row.seconds.size(), 2u);
    EXPECT_GT(row.median(), 0);
    EXPECT_GT(row.stages.mlp, 0);
    EXPECT_GT(row.stages.head, 0);
  }
}

TEST(ModelBench, CountsTheBytesOfADecodeStep) {
  BenchOptions options = quick();
  options.prefills = {};
  options.actions = {{.kappa = 1.0f, .rho = 0.5f, .bits = 16}};
  const std::vector<BenchRow> rows = measured(options);
  ASSERT_EQ(rows.size(), 4u);
  const LlamaConfig c = tiny();
  const double d = c.hidden_size, mlp = c.intermediate_size;
  const double attention = 2 * d * d + 2 * d * 256, head = 512 * d;
  const double weights = 4 * (2 * (attention + 3 * d * mlp) + head);
  const double dropped = 4 * 2 * (d / 2) * 2 * mlp;
  const double cached = 4 * 2 * 2 * 4 * 64;  // of one token: layers, keys and values, heads
  EXPECT_DOUBLE_EQ(rows[0].bytes, weights + cached);  // the token's own keys and values
  EXPECT_DOUBLE_EQ(rows[1].bytes, weights + cached - dropped);
  EXPECT_DOUBLE_EQ(rows[2].bytes, weights + 65 * cached);
  EXPECT_DOUBLE_EQ(rows[3].dense_bytes, rows[2].bytes);
  EXPECT_DOUBLE_EQ(rows[0].time_to_dense, 1.0);
}

TEST(ModelBench, ABatchReadsItsWeightsOnce) {
  BenchOptions options = quick();
  options.prefills = {};
  options.contexts = {0};
  options.batches = {1, 3, 5};
  options.actions = {{.kappa = 1.0f, .rho = 0.5f, .bits = 16}};
  const std::vector<BenchRow> rows = measured(options);
  ASSERT_EQ(rows.size(), 6u);
  const double cached = 4 * 2 * 2 * 4 * 64;
  EXPECT_DOUBLE_EQ(rows[2].bytes, rows[0].bytes + 2 * cached);
  // Three keep more channels together than one, fewer than all; five read everything.
  EXPECT_LT(rows[3].bytes, rows[2].bytes);
  EXPECT_GT(rows[3].bytes, rows[1].bytes + 2 * cached);
  EXPECT_DOUBLE_EQ(rows[4].bytes, rows[0].bytes + 4 * cached);
  EXPECT_DOUBLE_EQ(rows[5].bytes, rows[4].bytes);
}

TEST(ModelBench, CeilingsAreMeasuredBetweenTheRepetitions) {
  BenchOptions options = quick();
  MemoryReader reader(1, 1 << 20);
  options.reader = &reader;
  for (const BenchRow& row : measured(options)) {
    ASSERT_EQ(row.ceilings.size(), row.seconds.size());
    EXPECT_GT(row.share_of_ceiling(), 0);
  }
}

TEST(ModelBench, ThePolicysTimeIsPartOfTheStep) {
  BenchOptions options = quick();
  options.prefills = {};
  options.contexts = {0};
  const auto policy = make_random_policy(tiny().hidden_size);
  EXPECT_NEAR(static_cast<double>(policy->parameter_count()), 5.15e6, 0.05e6);
  options.policy = policy.get();
  const BenchRow row = measured(options).at(0);
  EXPECT_GT(row.policy, 0);
  EXPECT_LT(row.policy, *std::max_element(row.seconds.begin(), row.seconds.end()));
}

TEST(ModelBench, AContextBeyondTheModelIsAnError) {
  BenchOptions options = quick();
  options.contexts = {1 << 20};
  EXPECT_THAT([&] { measured(options); }, throws({"1048576", "positions"}));
}

TEST(BenchRow, MedianSpreadAndRate) {
  BenchRow row;
  row.batch = 4;
  row.seconds = {0.5, 0.2, 0.4};
  EXPECT_DOUBLE_EQ(row.median(), 0.4);
  EXPECT_DOUBLE_EQ(row.spread(), 0.75);
  EXPECT_DOUBLE_EQ(row.tokens_per_second(), 10.0);
}

TEST(BenchRow, ShareOfTheCeilingIsTheMedianOverRepetitions) {
  BenchRow row;
  row.bytes = 1e9;
  row.seconds = {0.1, 0.1, 0.2};
  EXPECT_EQ(row.share_of_ceiling(), 0);
  row.ceilings = {20e9, 40e9, 50e9};
  EXPECT_DOUBLE_EQ(row.share_of_ceiling(), 0.25);
  row.kind = BenchKind::prefill;
  row.operations = 2e9;
  EXPECT_DOUBLE_EQ(row.share_of_ceiling(), 0.5);
}

TEST(BenchReport, EveryCsvLineHasTheHeadersColumns) {
  BenchRow row;
  row.seconds = {0.1};
  row.bytes = row.dense_bytes = 1;
  const std::string csv = bench_csv(std::vector<BenchRow>{row, row});
  std::vector<long> commas;
  for (size_t at = 0; at < csv.size();) {
    const size_t end = csv.find('\n', at);
    commas.push_back(
        std::count(csv.begin() + static_cast<long>(at), csv.begin() + static_cast<long>(end), ','));
    at = end + 1;
  }
  ASSERT_EQ(commas.size(), 3u);
  EXPECT_THAT(commas, testing::Each(commas[0]));
}

TEST(CopiesToExceedCache, LargeModelsNeedOne) {
  EXPECT_EQ(copies_to_exceed_cache(uint64_t{1} << 40), 1);
  if (last_level_cache_bytes() > 0) {
    EXPECT_GE(copies_to_exceed_cache(last_level_cache_bytes()), 2);
  }
}

}  // namespace
}  // namespace sol::test
