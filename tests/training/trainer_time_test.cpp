// Training against a table of times.
#include "policy/cost_table.h"
#include "throws.h"
#include "trainer_fixture.h"

namespace sol::test {
namespace {

// A step takes 10 ms; the low level of κ saves 1 of them and that of ρ 5.
class TimedTrainerTest : public TrainerTest {
 protected:
  TimedTrainerTest() {
    config_.space = ActionSpace({0.25f, 1.0f}, {0.5f, 1.0f}, {16});
    config_.eta.range = {1.0, 1.0};
    config_.time = BudgetSource{{0.45, 0.45}, {}};
    costs_ = table(5);
  }
  static std::shared_ptr<const CostTable> table(double channels_save) {
    return std::make_shared<const CostTable>(4, std::vector<float>{0.25f, 0.5f},
                                             std::vector<CostTable::Length>{{24, 10, 4, {1, 0.5}}},
                                             std::vector<double>{channels_save, channels_save});
  }
};

TEST_F(TimedTrainerTest, LearnsToMeetItsTimes) {
  config_.updates = 80;
  config_.grad_accum = 2;
  config_.optimiser.learning_rate = 3e-3;
  train(out());
  const auto mean = [&](size_t begin, size_t end, const auto& of) {
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += of(seen_[i]);
    return sum / static_cast<double>(end - begin);
  };
  const size_t n = seen_.size();
  ASSERT_GE(n, 20u);
  const auto penalty = [](const CollectionMetrics& m) { return m.penalty; };
  const auto gap = [](const CollectionMetrics& m) { return *m.time_gap; };
  EXPECT_LT(mean(n - 5, n, penalty), 0.3 * mean(0, 5, penalty));
  EXPECT_LT(mean(n - 5, n, gap), 0.6 * mean(0, 5, gap));
  EXPECT_DOUBLE_EQ(*seen_.back().requested_time, static_cast<double>(0.45f));
  // What saves most is what is given up.
  EXPECT_LT(seen_.back().realised[1], 0.7);

  const Controller controller = Controller::load(out());
  ASSERT_TRUE(controller.settings().costs);
  EXPECT_EQ(controller.settings().costs->to_json(), costs_->to_json());
  EXPECT_EQ(controller.settings().time.low, 0.45);
  EXPECT_EQ(controller.settings().ranges.rho.low, 0.5);
}

TEST_F(TimedTrainerTest, TheTableBelongsToTheRun) {
  train(out("whole"));
  train(out("parts"), false, 2);
  costs_ = table(4);
  EXPECT_THAT(error(out("parts"), true), testing::HasSubstr("costs/channels_saved_ms"));
  costs_ = table(5);
  EXPECT_TRUE(train(out("parts"), true).finished);
  EXPECT_EQ(weights(out("parts")), weights(out("whole")));
}

TEST_F(TimedTrainerTest, TimesAndTablesGoTogether) {
  costs_ = nullptr;
  EXPECT_THAT(error(out()), testing::HasSubstr("--costs FILE"));
  costs_ = table(5);
  config_.time.reset();
  EXPECT_THAT(error(out()), testing::HasSubstr("budget is no time"));
  config_.time = BudgetSource{{0.5, 1.0}, {}};
  config_.horizon = 3;
  EXPECT_THAT(error(out()), testing::HasSubstr("episodes of 4 steps"));
  EXPECT_FALSE(fs::exists(out() / "controller.json"));
}

}  // namespace
}  // namespace sol::test
