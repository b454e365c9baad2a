// Sequences of the CPU engine: what every engine has to show, and what only this one offers.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "base/threads.h"
#include "cpu_engines.h"
#include "engine/cpu_weights.h"
#include "sequence_cases.h"

namespace sol::test {
namespace {

std::unique_ptr<FrozenModel> tiny(bool deterministic = true) {
  return load_model(golden_dir() / "tiny_untied_f32", {Precision::f32, deterministic});
}

INSTANTIATE_TEST_SUITE_P(BestIsa, EverySequence,
                         testing::Values(best_cpu_engine(true), best_cpu_engine(false)),
                         engine_name);

TEST(Sequence, DeterministicResultsDependNeitherOnBatchNorOnThreads) {
  auto model = tiny();
  const int before = thread_count();
  std::vector<std::vector<float>> expected;
  for (int threads : {1, 2, 3}) {
    set_thread_count(threads);
    for (int batch : {1, 2, 5, 16}) {
      std::vector<std::unique_ptr<Sequence>> sequences;
      std::vector<ExtendItem> items;
      std::vector<std::vector<int32_t>> prefixes;
      for (int i = 0; i < batch; ++i) prefixes.push_back(tokens(20 + 7 * i, i));
      for (int i = 0; i < batch; ++i) {
        sequences.push_back(model->create({}));
        items.push_back({sequences.back().get(), prefixes[i], {}});
      }
      model->extend(items);
      for (int t = 0; t < 4; ++t) {
        std::vector<std::vector<float>> logits(static_cast<size_t>(batch), std::vector<float>(320));
        std::vector<DecodeItem> steps;
        for (int i = 0; i < batch; ++i) {
          const Action action{0.1f + 0.05f * static_cast<float>((i + t) % 10), i % 3 ? 0.5f : 1.0f,
                              4 + i % 13};
          steps.push_back({sequences[i].get(),
                           (i * 7 + t) % 320,
                           action,
                           {.logits = logits[i].data()},
                           nullptr});
        }
        model->decode(steps);
        for (int i = 0; i < batch; ++i) {
          const size_t key = static_cast<size_t>(i) * 4 + static_cast<size_t>(t);
          if (expected.size() <= key) expected.resize(key + 1);
          if (expected[key].empty()) expected[key] = logits[i];
          EXPECT_EQ(expected[key], logits[i])
              << threads << " threads, batch " << batch << ", sequence " << i;
        }
      }
    }
  }
  set_thread_count(before);
}

// Outside the paper: half of the down projection's 128 inputs as well, alone as in a batch.
TEST(CpuModel, AnEmbeddingNeedsRoom) {
  const auto model = tiny();
  std::vector<float> out(static_cast<size_t>(model->config().hidden_size));
  EXPECT_NO_THROW(model->embedding(7, out));
  EXPECT_THAT(error_of([&] { model->embedding(7, std::span(out).first(out.size() - 1)); }),
              testing::HasSubstr("room for"));
  EXPECT_THAT(error_of([&] { model->embedding(320, out); }), testing::HasSubstr("vocabulary"));
}

TEST(Sequence, PruneDownDropsInputsOfTheDownProjection) {
  ModelOptions options{.precision = Precision::f32, .deterministic = true};
  const auto plain = load_model(golden_dir() / "tiny_untied_f32", options);
  options.prune_down = true;
  const auto model = load_model(golden_dir() / "tiny_untied_f32", options);
  auto sequence = model->create({});
  extend(*model, *sequence, tokens(40, 8));
  const auto forks = model->fork(*sequence, 4);
  const Action half{1.0f, 0.5f, 16};
  StepCost dense, pruned;
  const auto dense_logits = decode(*model, *forks[0], 3, {}, &dense);
  const auto pruned_logits = decode(*model, *forks[1], 3, half, &pruned);
  EXPECT_EQ(dense.bytes - pruned.bytes, 3u * (32 * 2 * 128 + 64 * 64) * 4);
  EXPECT_NE(dense_logits, pruned_logits);

  auto same = plain->create({});
  extend(*plain, *same, tokens(40, 8));
  const auto plain_logits = decode(*plain, *same, 3, {});
  EXPECT_LT(max_difference(plain_logits.data(), dense_logits.data(), dense_logits.size()), 1e-4);

  std::vector<std::vector<float>> logits(2, std::vector<float>(320));
  std::vector<DecodeItem> items(2);
  for (size_t i = 0; i < 2; ++i) {
    items[i].sequence = forks[2 + i].get();
    items[i].token = 3;
    items[i].action = half;
    items[i].out.logits = logits[i].data();
  }
  model->decode(items);
  EXPECT_EQ(logits[0], pruned_logits);
  EXPECT_EQ(logits[1], pruned_logits);
}

// Outside the paper: channels by |x| times the norm of their weights.
TEST(Sequence, ChannelsCanBeRankedWithTheNormsOfTheirWeights) {
  ModelOptions options{.precision = Precision::f32, .deterministic = true};
  const auto plain = load_model(golden_dir() / "tiny_untied_f32", options);
  EXPECT_TRUE(plain->outside_paper().empty());
  options.channel_scores = ChannelScores::weight_norm;
  options.prune_down = true;
  const auto both = load_model(golden_dir() / "tiny_untied_f32", options);
  EXPECT_THAT(both->outside_paper(), testing::ElementsAre("prune-down", "channel-scores wina"));
  options.prune_down = false;
  const auto model = load_model(golden_dir() / "tiny_untied_f32", options);
  EXPECT_THAT(model->outside_paper(), testing::ElementsAre("channel-scores wina"));

  // The norms are those of the file's columns: of gate and up together.
  LlamaConfig config = load_config(golden_dir() / "tiny_untied_f32");
  const CpuWeights weights(config, TensorStore::open_directory(golden_dir() / "tiny_untied_f32"),
                           Precision::f32, {.channel_scores = ChannelScores::weight_norm});
  const TensorStore store = TensorStore::open_directory(golden_dir() / "tiny_untied_f32");
  for (const int channel : {0, 17, 63}) {
    double squares = 0;
    for (const char* name : {"gate_proj", "up_proj"}) {
      const auto values =
          store.tensors().at(fmt::format("model.layers.1.mlp.{}.weight", name)).to_floats();
      for (size_t out = 0; out < values.size() / 64; ++out)
        squares +=
            std::pow(static_cast<double>(values[out * 64 + static_cast<size_t>(channel)]), 2);
    }
    EXPECT_NEAR(weights.layers[1].gate_up_norms[static_cast<size_t>(channel)], std::sqrt(squares),
                1e-6);
  }

  const Action half{1.0f, 0.5f, 16};
  const auto run = [&](FrozenModel& one, const Action& action, StepCost* cost = nullptr) {
    auto sequence = one.create({});
    extend(one, *sequence, tokens(40, 8));
    return decode(one, *sequence, 3, action, cost);
  };
  StepCost cost, plain_cost;
  const auto logits = run(*model, half, &cost), plain_logits = run(*plain, half, &plain_cost);
  EXPECT_NE(logits, plain_logits);              // other channels
  EXPECT_EQ(cost.bytes, plain_cost.bytes);      // as many
  EXPECT_EQ(run(*model, {}), run(*plain, {}));  // none dropped: the same
  EXPECT_NE(run(*both, half), logits);

  // Alone as in a batch.
  auto sequence = model->create({});
  extend(*model, *sequence, tokens(40, 8));
  const auto forks = model->fork(*sequence, 6);
  std::vector<std::vector<float>> batch(6, std::vector<float>(320));
  std::vector<DecodeItem> items(6);
  for (size_t i = 0; i < 6; ++i) {
    items[i].sequence = forks[i].get();
    items[i].token = 3;
    items[i].action = half;
    items[i].out.logits = batch[i].data();
  }
  model->decode(items);
  for (const auto& one : batch) EXPECT_EQ(one, logits);
}

// Outside the paper: summaries follow the keys through forks and truncation as extrema do.
TEST(Sequence, PagesCanBeRankedByTheirMoments) {
  ModelOptions options{.precision = Precision::f32, .deterministic = true};
  const auto plain = load_model(golden_dir() / "tiny_untied_f32", options);
  options.page_scores = PageScores::moments;
  const auto model = load_model(golden_dir() / "tiny_untied_f32", options);
  EXPECT_THAT(model->outside_paper(), testing::ElementsAre("page-scores moments"));

  const Action sparse{0.1f, 1.0f, 16};
  const auto fresh = [&](FrozenModel& one, const Action& action) {
    auto sequence = one.create({});
    extend(one, *sequence, tokens(100, 8));
    return decode(one, *sequence, 3, action);
  };
  const auto logits = fresh(*model, sparse);
  EXPECT_NE(logits, fresh(*plain, sparse));
  EXPECT_EQ(fresh(*model, {}), fresh(*plain, {}));

  auto strayed = model->create({});
  extend(*model, *strayed, tokens(100, 8));
  extend(*model, *strayed, tokens(9, 5));
  model->truncate(*strayed, 98);
  auto child = std::move(model->fork(*strayed, 1)[0]);
  const auto all = tokens(100, 8);
  ExtendItem rest{child.get(), std::span(all).last(2), {}};
  model->extend({&rest, 1});
  EXPECT_EQ(decode(*model, *child, 3, sparse), logits);
}

// Outside the paper: sums are exact, so alone, in a batch and in dense passes products give the
// same bits in every mode, whatever ρ drops.
TEST(Sequence, Int8ActivationsAreTheSameAloneAndInABatch) {
  const std::vector<Action> actions{{}, {1.0f, 0.5f, 16}, {0.5f, 0.25f, 8}, {1.0f, 0.5f, 16}, {}};
  for (const bool deterministic : {false, true}) {
    for (const bool prune_down : {false, true}) {
      ModelOptions options{.precision = Precision::f32, .weights = WeightFormat::int8};
      options.deterministic = deterministic;
      options.prune_down = prune_down;
      const auto plain = load_model(golden_dir() / "tiny_untied_f32", options);
      options.int8_activations = true;
      const auto model = load_model(golden_dir() / "tiny_untied_f32", options);
      EXPECT_THAT(model->outside_paper(), testing::Contains("int8-activations"));
      const auto sequence = model->create({}), same = plain->create({});
      extend(*model, *sequence, tokens(40, 8));
      extend(*plain, *same, tokens(40, 8));
      const auto alone = model->fork(*sequence, static_cast<int>(actions.size()));
      const auto plain_logits = decode(*plain, *same, 3, {});
      std::vector<std::vector<float>> single;
      for (size_t i = 0; i < actions.size(); ++i)
        single.push_back(decode(*model, *alone[i], 3, actions[i]));
      const double difference =
          max_difference(single[0].data(), plain_logits.data(), plain_logits.size());
      EXPECT_GT(difference, 0);
      const auto [low, high] = std::ranges::minmax(plain_logits);
      EXPECT_LT(difference, 0.05 * (high - low));

      for (const size_t count : {size_t{3}, actions.size()}) {
        const auto together = model->fork(*sequence, static_cast<int>(count));
        std::vector<std::vector<float>> logits(count, std::vector<float>(320));
        std::vector<DecodeItem> items(count);
        for (size_t i = 0; i < count; ++i) {
          items[i].sequence = together[i].get();
          items[i].token = 3;
          items[i].action = actions[i];
          items[i].out.logits = logits[i].data();
        }
        model->decode(items);
        for (size_t i = 0; i < count; ++i) EXPECT_EQ(logits[i], single[i]) << i << " of " << count;
      }

      // A dense pass' attention sums in another order than decoding's.
      const auto prefilled = model->fork(*sequence, 1);
      std::vector<float> logits(320);
      const int32_t token = 3;
      ExtendItem item{prefilled[0].get(), {&token, 1}, {{0, {.logits = logits.data()}}}};
      model->extend({&item, 1});
      EXPECT_LT(max_difference(logits.data(), single[0].data(), logits.size()),
                0.02 * (high - low));
    }
  }
}

TEST(Sequence, Int8ActivationsNeedInt8Weights) {
  for (const WeightFormat weights : {WeightFormat::automatic, WeightFormat::int4}) {
    const ModelOptions options{.weights = weights, .int8_activations = true};
    EXPECT_THAT([&] { load_model(golden_dir() / "tiny_untied_f32", options); },
                testing::ThrowsMessage<Error>(testing::HasSubstr("--weights int8")));
  }
}

}  // namespace
}  // namespace sol::test
