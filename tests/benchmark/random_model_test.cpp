#include "benchmark/random_model.h"

#include <gmock/gmock.h>

#include <cmath>
#include <stop_token>

#include "sol/tokenizer.h"
#include "support.h"
#include "throws.h"

namespace sol::test {
namespace {

// A tied head counts once; norms count too.
int64_t parameters_of(const LlamaConfig& c) {
  const int64_t d = c.hidden_size, q = int64_t{c.num_heads} * c.head_dim,
                kv = int64_t{c.num_kv_heads} * c.head_dim;
  const int64_t layer = 2 * d * q + 2 * d * kv + 3 * d * c.intermediate_size + 2 * d;
  return c.num_layers * layer + d + (c.tie_word_embeddings ? 1 : 2) * c.vocab_size * d;
}

TEST(NamedShapes, HaveThePublishedNumbersOfParameters) {
  EXPECT_EQ(parameters_of(find_shape("llama-3.2-1b")), 1'235'814'400);
  EXPECT_EQ(parameters_of(find_shape("llama-3.2-3b")), 3'212'749'824);
  EXPECT_EQ(parameters_of(find_shape("llama-3.1-8b")), 8'030'261'248);
}

TEST(NamedShapes, AnUnknownOneIsAnErrorThatListsThem) {
  EXPECT_THAT([] { find_shape("llama-4"); }, throws({"llama-4", "llama-3.2-1b", "small-27m"}));
}

TEST(RandomModel, RunsAndHasAllItsParameters) {
  LlamaConfig config = find_shape("small-27m");
  config.num_layers = 2;
  const auto model = make_random_model(config, DType::bf16, {.precision = Precision::f32});
  EXPECT_EQ(static_cast<int64_t>(model->parameter_count()), parameters_of(config));
  const auto sequence = model->create({});
  const std::vector<int32_t> tokens{1, 2, 3};
  std::vector<float> logits(static_cast<size_t>(config.vocab_size));
  ExtendItem item{.sequence = sequence.get(), .tokens = tokens, .wanted = {}};
  item.wanted.push_back({2, {.logits = logits.data()}});
  model->extend({&item, 1}, {});
  double square = 0;
  for (const float x : logits) square += static_cast<double>(x) * x;
  EXPECT_TRUE(std::isfinite(square));
  // Unit variance through a head of variance 1 / d.
  EXPECT_NEAR(square / config.vocab_size, 1.0, 0.2);
}

TEST(RandomModel, OnlyFloatingPointTypesAreStored) {
  EXPECT_THAT([] { make_random_model(find_shape("small-27m"), DType::f16, {}); }, throws({"F16"}));
}

// Instead of being ended by the system.
TEST(RandomModel, ThatDoesNotFitIntoMemoryIsAnError) {
  LlamaConfig config = find_shape("llama-3.1-8b");
  config.num_layers = 1 << 20;
  EXPECT_THAT([&] { make_random_model(config, DType::bf16, {.weights = WeightFormat::int8}); },
              throws({"int8", "GB", "are free", "smaller shape"}));
}

// On disk it is the model that is made in memory, with a tokenizer.
TEST(RandomModel, CanBeWritten) {
  const test::TemporaryDirectory dir;
  LlamaConfig config = find_shape("small-27m");
  config.num_layers = 2;
  config.rope_scaling = Llama3RopeScaling{.factor = 8.0};
  const auto tokenizer = test::source_dir() / "models/default";
  const auto out = dir.path() / "model";
  write_random_model(config, DType::bf16, tokenizer, out);
  const auto written = load_model(out, {.precision = Precision::f32});
  const auto made = make_random_model(config, DType::bf16, {.precision = Precision::f32});
  EXPECT_EQ(written->parameter_count(), made->parameter_count());
  ASSERT_TRUE(written->config().rope_scaling);
  EXPECT_EQ(written->config().rope_scaling->factor, 8.0);
  EXPECT_EQ(Tokenizer::load(out)->vocab_size(), Tokenizer::load(tokenizer)->vocab_size());
  std::vector<float> a(512), b(512);
  written->embedding(1234, a);
  made->embedding(1234, b);
  EXPECT_EQ(a, b);

  EXPECT_THAT([&] { write_random_model(config, DType::bf16, tokenizer, out); }, throws({"model"}));
  config.vocab_size = 100;
  EXPECT_THAT([&] { write_random_model(config, DType::bf16, tokenizer, dir.path() / "other"); },
              throws({"100"}));
  EXPECT_FALSE(std::filesystem::exists(dir.path() / "other"));
}

TEST(RandomModel, LeavesNothingBehindWhenStopped) {
  const test::TemporaryDirectory dir;
  std::stop_source source;
  source.request_stop();
  EXPECT_THROW(write_random_model(find_shape("small-27m"), DType::bf16,
                                  test::source_dir() / "models/default", dir.path() / "model",
                                  source.get_token()),
               Cancelled);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

}  // namespace
}  // namespace sol::test
