#include "training/memory_plan.h"

#include <gmock/gmock.h>

#include "base/random.h"
#include "engine_torch/torch_model.h"
#include "support.h"
#include "throws.h"

namespace sol::test {
namespace {

class MemoryPlanTest : public testing::Test {
 protected:
  MemoryPlanTest() {
    config_.space = ActionSpace({0.25f, 1.0f}, {0.5f, 1.0f}, {16});
    config_.context = 70;  // ends within a block of 32
    config_.horizon = 4;
    config_.schedules = 3;
    config_.batch = 2;
    config_.policy.d_model = 16;
  }
  uint64_t item(const std::string& begin, const TrainingConfig& config, int processes = 1,
                bool deterministic = false) const {
    for (const MemoryItem& item : plan_memory(*model_, config, processes, deterministic).items)
      if (item.what.starts_with(begin)) return item.bytes;
    ADD_FAILURE() << "no item " << begin;
    return 0;
  }
  std::unique_ptr<FrozenModel> model_ =
      load_model(test_data() / "golden" / "tiny_untied_f32", {.precision = Precision::f32});
  TrainingConfig config_;
};

TEST_F(MemoryPlanTest, TheCacheIsWhatRolloutsHold) {
  std::vector<std::unique_ptr<Sequence>> held;
  for (int i = 0; i < config_.batch; ++i) {
    std::vector<int32_t> tokens(static_cast<size_t>(config_.context), 7);
    auto prefix = model_->create(config_.sequence);
    ExtendItem dense{prefix.get(), tokens, {}};
    model_->extend({&dense, 1});
    for (auto& child : model_->fork(*prefix, config_.schedules)) {
      for (int t = 0; t < config_.horizon; ++t) {
        DecodeItem step{child.get(), 5, Action{}, {}, nullptr};
        model_->decode({&step, 1});
      }
      held.push_back(std::move(child));
    }
    held.push_back(std::move(prefix));
  }
  EXPECT_EQ(item("cache", config_), model_->cache_use().bytes);
}

TEST_F(MemoryPlanTest, ProcessesShareABatch) {
  config_.batch = 8;
  EXPECT_EQ(item("cache", config_, 2), item("cache", config_) / 2);
  EXPECT_EQ(item("cache", config_, 3), 3 * item("cache", config_) / 8);
  EXPECT_EQ(item("policy: AdamW", config_, 2), item("policy: AdamW", config_));
}

// Rows of several inputs are in a chunk together.
TEST_F(MemoryPlanTest, ADensePassIsOfAllInputs) {
  config_.batch = 1;
  const uint64_t row = item("dense pass", config_) / 70;
  config_.batch = 2;
  EXPECT_EQ(item("dense pass", config_), 140 * row);
  EXPECT_EQ(item("dense pass", config_, 2), 70 * row);
  config_.batch = 100;  // of 3 schedules
  EXPECT_EQ(item("dense pass", config_), 512 * row);
  config_.batch = 1000;
  EXPECT_EQ(item("dense pass", config_), 3000 * row);
}

// The network's gradients, those before, the sums of three, two or one level of halving, the lane
// at hand; what processes exchange is more.
TEST_F(MemoryPlanTest, GradientsOfLanesCount) {
  const uint64_t all = item("policy: parameters", config_) / 4;
  config_.batch = 8;
  EXPECT_EQ(item("policy: gradients", config_), 2 * all);
  EXPECT_EQ(item("policy: gradients", config_, 1, true), 6 * all);
  EXPECT_EQ(item("policy: gradients", config_, 2), 7 * all);
  EXPECT_EQ(item("policy: gradients", config_, 2, true), 7 * all);
  config_.batch = 3;  // two lanes
  EXPECT_EQ(item("policy: gradients", config_, 1, true), 4 * all);
  config_.batch = 1;
  EXPECT_EQ(item("policy: gradients", config_, 1, true), 2 * all);
}

// A smaller batch has fewer lanes.
TEST_F(MemoryPlanTest, AdviceKnowsOfLanes) {
  config_.batch = 8;
  config_.policy.d_model = 512;  // most of what is needed is the policy's
  const uint64_t one_lane = plan_memory(*model_, config_, 1).total();
  const auto machine = MachineMemory::alone(1, 0, one_lane, true);
  EXPECT_EQ(advice_to_fit(*model_, config_, MachineMemory::alone(1, 0, one_lane)), "");
  EXPECT_EQ(memory_needed(*model_, config_, machine),
            plan_memory(*model_, config_, 1, true).total());
  EXPECT_THAT(advice_to_fit(*model_, config_, machine), testing::HasSubstr("rollout.batch=1 ("));
}

TEST_F(MemoryPlanTest, AdviceFits) {
  config_.batch = 64;
  config_.context = 200;
  const uint64_t weights = 1 << 20;
  const uint64_t all = plan_memory(*model_, config_, 1).total() + weights;
  const auto machine = [&](uint64_t available) {
    return MachineMemory::alone(1, weights, available);
  };
  EXPECT_EQ(advice_to_fit(*model_, config_, machine(all)), "");
  EXPECT_NO_THROW(require_memory(*model_, config_, machine(all)));
  TrainingConfig smaller = config_;
  smaller.batch = 16;
  const uint64_t less = plan_memory(*model_, smaller, 1).total() + weights;
  EXPECT_THAT([&] { require_memory(*model_, config_, machine(less)); },
              throws({"training needs ", "cache", "are available", "--set rollout.batch=16 ("}));
  EXPECT_THAT([&] { require_memory(*model_, config_, machine(1000)); },
              throws({"0.0 MiB are available", "nothing makes it fit: with ", "rollout.batch=1",
                      "it would still take "}));
}

// What `sol train` would refuse is no advice.
TEST_F(MemoryPlanTest, AdviceIsAConfiguration) {
  config_.batch = 64;
  config_.context = 200;
  config_.schedules = 4;
  config_.advantage.spent_baseline = true;  // 12 differences between schedules at least: 4 inputs
  TrainingConfig smaller = config_;
  smaller.batch = 2;
  const auto machine = MachineMemory::alone(1, 0, plan_memory(*model_, smaller, 1).total());
  const std::string advice = advice_to_fit(*model_, config_, machine);
  EXPECT_THAT(advice, testing::Not(testing::HasSubstr("rollout.batch=2")));
  config_.advantage.spent_baseline = false;
  EXPECT_THAT(advice_to_fit(*model_, config_, machine), testing::HasSubstr("rollout.batch=2 ("));
}

// What is said of several processes is of all of them, and fits them.
TEST_F(MemoryPlanTest, AdviceIsForAsManyProcesses) {
  config_.batch = 64;
  config_.context = 200;
  const uint64_t weights = 1 << 20;
  TrainingConfig smaller = config_;
  smaller.batch = 16;
  const MachineMemory machine =
      MachineMemory::alone(2, weights, 2 * plan_memory(*model_, smaller, 2).total() + weights);
  EXPECT_EQ(memory_needed(*model_, smaller, machine), machine.available);
  EXPECT_GT(memory_needed(*model_, config_, machine), machine.available);
  const std::string advice = advice_to_fit(*model_, config_, machine);
  EXPECT_THAT(advice, testing::HasSubstr("--set rollout.batch=16 (" +
                                         format_bytes(machine.available) + ")"));
  EXPECT_EQ(advice_to_fit(*model_, smaller, machine), "");
  EXPECT_THAT(
      [&] { require_memory(*model_, config_, machine); },
      throws({"with 2 processes needs " + format_bytes(memory_needed(*model_, config_, machine)),
              advice}));
}

TEST_F(MemoryPlanTest, TwoSettingsWhereOneWillNotDo) {
  config_.batch = 64;
  config_.context = 200;
  TrainingConfig smaller = config_;
  smaller.batch = 2;
  // Less than either process alone or so few inputs for both would take.
  const auto machine =
      MachineMemory::alone(2, 0, plan_memory(*model_, smaller, 1).total() + (1 << 20));
  EXPECT_THAT(advice_to_fit(*model_, config_, machine),
              testing::HasSubstr("fits with --processes 1 --set rollout.batch="));
}

TEST_F(MemoryPlanTest, WhatIsInForceAlreadyIsNotOffered) {
  const auto advice = [&](const FrozenModel& model, uint64_t weights) {
    // Short of the weights by a tenth: nothing else would do.
    const uint64_t total = plan_memory(model, config_, 1).total();
    return advice_to_fit(model, config_,
                         MachineMemory::alone(1, weights, total + weights / 10 * 9));
  };
  const uint64_t f32_weights = 4 * model_->parameter_count() + (uint64_t{1} << 32);
  EXPECT_THAT(advice(*model_, f32_weights), testing::HasSubstr("--precision bf16"));
  EXPECT_THAT(advice(*model_, f32_weights), testing::HasSubstr("--weights int8"));
  const auto bf16 =
      load_model(test_data() / "golden" / "tiny_untied_f32", {.precision = Precision::bf16});
  EXPECT_THAT(advice(*bf16, f32_weights), testing::Not(testing::HasSubstr("bf16")));
  const auto int8 = load_model(test_data() / "golden" / "tiny_untied_f32",
                               {.precision = Precision::bf16, .weights = WeightFormat::int8});
  EXPECT_THAT(advice(*int8, f32_weights), testing::StartsWith("nothing makes it fit"));
}

// On a LibTorch device each process loads a model of its own.
TEST_F(MemoryPlanTest, ProcessesOnALibTorchDeviceHaveAModelEach) {
  const auto torch = load_torch_model(test_data() / "golden" / "tiny_untied_f32", "cpu", {});
  EXPECT_EQ(weight_copies(*model_, 4), 1);
  EXPECT_EQ(weight_copies(*torch, 4), 4);
  config_.batch = 4;
  const auto machine = MachineMemory::alone(4, uint64_t{1} << 30, 0);
  EXPECT_EQ(memory_needed(*torch, config_, machine),
            4 * (plan_memory(*torch, config_, 4).total() + (uint64_t{1} << 30)));
}

// A large vocabulary's logits are most of what a step takes there: 6 schedules, the logits and
// their logarithms, and 8192 widened rows of the head.
TEST_F(MemoryPlanTest, LogitsOfALibTorchDeviceCount) {
  const auto torch = load_torch_model(test_data() / "golden" / "tiny_untied_f32", "cpu", {});
  const auto bytes = [&](const FrozenModel& model) {
    for (const MemoryItem& item : plan_memory(model, config_, 1).items)
      if (item.what == "logits") return item.bytes;
    return uint64_t{0};
  };
  const auto vocabulary = static_cast<uint64_t>(torch->config().vocab_size);
  const auto hidden = static_cast<uint64_t>(torch->config().hidden_size);
  EXPECT_EQ(bytes(*torch), 4 * (2 * 6 * vocabulary + 8192 * hidden));
  EXPECT_EQ(bytes(*model_), 0u);
}

TEST_F(MemoryPlanTest, WeightsThatAreTooLargeAreNotLoaded) {
  const auto dir = test_data() / "golden" / "tiny_untied_f32";
  const uint64_t stored = std::filesystem::file_size(dir / "model.safetensors");
  EXPECT_NO_THROW(require_memory_of_weights(dir, {}, stored));
  EXPECT_THAT([&] { require_memory_of_weights(dir, {}, stored - 1); },
              throws({"tiny_untied_f32", "weights alone", format_bytes(stored), "--weights int8"}));
  EXPECT_NO_THROW(require_memory_of_weights(dir, {.weights = WeightFormat::int8}, stored - 1));
  EXPECT_THAT([&] { require_memory_of_weights(dir, {.weights = WeightFormat::int8}, 1); },
              throws({"a smaller model"}));
}

// Other files of the directory are not loaded; what is wrong with those that are is loading's to
// say.
TEST_F(MemoryPlanTest, OnlyWeightsThatAreLoadedCount) {
  const TemporaryDirectory dir;
  EXPECT_NO_THROW(require_memory_of_weights(dir.path(), {}, 0));
  const auto file = test_data() / "golden" / "tiny_untied_f32" / "model.safetensors";
  const uint64_t stored = std::filesystem::file_size(file);
  for (const char* name : {"model.safetensors", "consolidated.safetensors"})
    std::filesystem::copy(file, dir.path() / name);
  EXPECT_NO_THROW(require_memory_of_weights(dir.path(), {}, stored));
  EXPECT_THAT([&] { require_memory_of_weights(dir.path(), {}, stored - 1); },
              throws({"weights alone"}));
}

TEST_F(MemoryPlanTest, BytesAsPeopleReadThem) {
  EXPECT_EQ(format_bytes(3u << 19), "1.5 MiB");
  EXPECT_EQ(format_bytes(12u << 20), "12 MiB");
  EXPECT_EQ(format_bytes(uint64_t{5} << 29), "2.5 GiB");
}

}  // namespace
}  // namespace sol::test
