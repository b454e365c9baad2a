#include "training/memory_plan.h"

#include "base/random.h"
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
  uint64_t item(const std::string& begin, const TrainingConfig& config, int processes = 1) const {
    for (const MemoryItem& item : plan_memory(*model_, config, processes).items)
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

TEST_F(MemoryPlanTest, AdviceFits) {
  config_.batch = 64;
  config_.context = 200;
  const uint64_t all = plan_memory(*model_, config_, 1).total();
  EXPECT_EQ(advice_to_fit(*model_, config_, 1, all), "");
  EXPECT_NO_THROW(require_memory(*model_, config_, 1, all));
  TrainingConfig smaller = config_;
  smaller.batch = 16;
  const uint64_t less = plan_memory(*model_, smaller, 1).total();
  EXPECT_THAT([&] { require_memory(*model_, config_, 1, less); },
              throws({"training needs ", "cache", "are available", "--set rollout.batch=16 ("}));
  EXPECT_THAT([&] { require_memory(*model_, config_, 1, 1000); },
              throws({"0.0 MiB are available", "--weights int8"}));
}

TEST_F(MemoryPlanTest, BytesAsPeopleReadThem) {
  EXPECT_EQ(format_bytes(3u << 19), "1.5 MiB");
  EXPECT_EQ(format_bytes(12u << 20), "12 MiB");
  EXPECT_EQ(format_bytes(uint64_t{5} << 29), "2.5 GiB");
}

}  // namespace
}  // namespace sol::test
