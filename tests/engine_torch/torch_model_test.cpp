// The LibTorch backend beside the CPU engine: the same selections, and a clear word where something
// is not offered.
#include <gmock/gmock.h>

#include "engine/cpu_engines.h"
#include "engine/steps.h"
#include "torch_engines.h"

namespace sol::test {
namespace {

class TorchDevices : public testing::TestWithParam<Engine> {
 protected:
  void SetUp() override { SOL_PREPARE_ENGINE(GetParam()); }
};

// Forks of two prefixes and lone sequences, of different lengths and rules, in one batch.
TEST_P(TorchDevices, SelectsWhatTheCpuEngineSelects) {
  const auto dir = golden_dir() / "tiny_untied_f32";
  for (const bool force_sinks : {true, false}) {
    std::vector<std::vector<float>> logits[2];
    std::vector<StepCost> costs[2];
    for (int which = 0; which < 2; ++which) {
      const Engine engine = which == 0 ? best_cpu_engine(true) : GetParam();
      const auto model = engine.load(dir);
      std::vector<std::unique_ptr<Sequence>> sequences;
      for (const int length : {150, 97, 33, 5}) {
        SequenceOptions options{.page_size = length == 33 ? 8 : 4, .force_sinks = force_sinks};
        if (length == 97) options.window = 9;
        auto sequence = model->create(options);
        extend(*model, *sequence, tokens(length, length));
        if (length > 50)
          for (auto& child : model->fork(*sequence, 3)) sequences.push_back(std::move(child));
        sequences.push_back(std::move(sequence));
      }
      for (int t = 0; t < 20; ++t) {
        std::vector<DecodeItem> items(sequences.size());
        const size_t first = logits[which].size();
        logits[which].resize(first + items.size(), std::vector<float>(320));
        costs[which].resize(first + items.size());
        for (size_t i = 0; i < items.size(); ++i) {
          // In turns, so that neighbours in the batch are no neighbours of a group.
          const size_t s = (i * 3 + static_cast<size_t>(t)) % items.size();
          const Action action{0.05f + 0.07f * static_cast<float>((s + t) % 14), s % 3 ? 0.5f : 1.0f,
                              16};
          items[i] = {sequences[s].get(),
                      static_cast<int32_t>((s * 31 + t * 7) % 320),
                      action,
                      {.logits = logits[which][first + i].data()},
                      &costs[which][first + i]};
        }
        model->decode(items);
      }
    }
    for (size_t i = 0; i < costs[0].size(); ++i) {
      // Counts of keys, over all heads and layers.
      EXPECT_EQ(costs[0][i].bytes, costs[1][i].bytes) << "step " << i;
      EXPECT_DOUBLE_EQ(costs[0][i].attended, costs[1][i].attended) << "step " << i;
      EXPECT_LT(max_difference(logits[0][i].data(), logits[1][i].data(), 320), 1e-4)
          << "step " << i;
    }
  }
}

TEST_P(TorchDevices, Bf16CacheAndWeightsStayNearTheCpuEngine) {
  const auto dir = golden_dir() / "tiny_tied_bf16";
  const auto torch = GetParam().load(dir, Precision::bf16);
  const auto native = load_model(dir, {Precision::f32, true});
  const auto a = torch->create({}), b = native->create({});
  extend(*torch, *a, tokens(100, 3));
  extend(*native, *b, tokens(100, 3));
  EXPECT_EQ(a->own_bytes(), torch->cache_use().bytes);
  EXPECT_EQ(2 * torch->cache_use().bytes, native->cache_use().bytes);
  for (int t = 0; t < 4; ++t) {
    const auto x = decode(*torch, *a, 5 + t), y = decode(*native, *b, 5 + t);
    EXPECT_LT(max_difference(x.data(), y.data(), x.size()), 0.6);
  }
}

TEST_P(TorchDevices, CountsItsCacheAndGivesItBack) {
  const auto model = GetParam().load(golden_dir() / "tiny_untied_f32");
  EXPECT_EQ(model->cache_use().bytes, 0u);
  auto sequence = model->create({});
  extend(*model, *sequence, tokens(70, 1));
  EXPECT_EQ(model->cache_use().blocks, 3u);
  auto children = model->fork(*sequence, 4);
  EXPECT_EQ(model->cache_use().blocks, 3u);
  for (auto& child : children) decode(*model, *child, 9);
  EXPECT_EQ(model->cache_use().blocks, 3u + 4);
  EXPECT_EQ(model->cache_use().bytes,
            sequence->own_bytes() + 2 * children[0]->own_bytes() + 4 * children[0]->own_bytes());
  children.clear();
  sequence.reset();
  EXPECT_EQ(model->cache_use().blocks, 0u);
}

TEST_P(TorchDevices, EmbeddingsAreTheFiles) {
  const auto dir = golden_dir() / "tiny_tied_bf16";
  const auto torch = GetParam().load(dir);
  const auto native = load_model(dir, {Precision::f32});
  std::vector<float> a(64), b(64);
  for (const int32_t token : {0, 17, 319}) {
    torch->embedding(token, a);
    native->embedding(token, b);
    EXPECT_EQ(a, b);
  }
  EXPECT_THAT(error_of([&] { torch->embedding(320, a); }), testing::HasSubstr("vocabulary"));
  EXPECT_THAT(error_of([&] { torch->embedding(7, std::span(a).first(63)); }),
              testing::HasSubstr("room for 63"));
  EXPECT_EQ(torch->fingerprint(), native->fingerprint());
  EXPECT_EQ(torch->parameter_count(), native->parameter_count());
}

INSTANTIATE_TEST_SUITE_P(Torch, TorchDevices,
                         testing::Values(torch_engine("cpu"), torch_engine("cuda")), engine_name);

TEST(TorchModel, WhatIsNotOfferedIsAnError) {
  const auto refused = [](const ModelOptions& options) {
    return error_of([&] { load_torch_model(golden_dir() / "tiny_untied_f32", "cpu", options); });
  };
  const auto names = [](const char* option) {
    return testing::AllOf(testing::HasSubstr(option), testing::HasSubstr("--device native"));
  };
  EXPECT_THAT(refused({.deterministic = true}), names("--deterministic"));
  EXPECT_THAT(refused({.weights = WeightFormat::int8}), names("--weights int8"));
  EXPECT_THAT(refused({.weights = WeightFormat::int4}), names("--weights int4"));
  EXPECT_THAT(refused({.prune_down = true}), names("--prune-down"));
  EXPECT_THAT(refused({.int8_activations = true}), names("--int8-activations"));
  EXPECT_THAT(refused({.channel_scores = ChannelScores::weight_norm}), names("wina"));
  EXPECT_THAT(refused({.page_scores = PageScores::moments}), names("moments"));
  EXPECT_EQ(refused({}), "");
}

TEST(TorchModel, DevicesThatAreNoneAreAnError) {
  for (const char* device : {"gpu", "cuda:", "cuda:-1", "cuda:x", "cpu:0", "native", ""})
    EXPECT_THAT(error_of([&] { torch_device_problem(device); }), testing::HasSubstr("cuda:N"))
        << device;
  EXPECT_EQ(torch_device_problem("cpu"), "");
  // No machine has as many.
  EXPECT_NE(torch_device_problem("cuda:100"), "");
  EXPECT_THAT(error_of([] { load_torch_model(golden_dir() / "tiny_untied_f32", "cuda:100"); }),
              testing::HasSubstr("device cuda:100: "));
}

}  // namespace
}  // namespace sol::test
