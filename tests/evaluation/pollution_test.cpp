#include "evaluation/pollution.h"

#include <gtest/gtest.h>

#include <set>

#include "evaluation/statistics.h"
#include "fake_model.h"
#include "policy/policies.h"
#include "sol/error.h"
#include "throws.h"

namespace sol {
namespace {

using test::fake_blocks;
using test::FakeModel;

struct PollutionTest : testing::Test {
  FakeModel model;
  PollutionOptions options;
  void SetUp() override {
    options.windows = 5;
    options.prefix = 12;
    options.corrupted = 3;
    options.tail = 6;
    options.kappa = {0.1f, 0.5f};
    options.rho = {0.4f};
    options.bits = {5, 16};
  }
  BlockDataset data(int blocks) const {
    ProtocolOptions protocol;
    protocol.context = options.prefix;
    protocol.horizon = options.corrupted + options.tail;
    return fake_blocks(blocks, protocol);
  }
};

TEST_F(PollutionTest, ComparesWithTheDenseRunOfTheSameWindows) {
  const BlockDataset blocks = data(9);
  const Pollution pollution = run_pollution(model, blocks, options);
  ASSERT_EQ(pollution.settings.size(), 5u);
  const PollutionSetting& first = pollution.settings[0];
  EXPECT_EQ(first.action, (Action{0.1f, 1.0f, 16}));
  EXPECT_EQ(pollution.settings[2].axis, Axis::rho);
  EXPECT_EQ(pollution.settings[3].action.bits, 5);

  // The same by hand: three steps under the action, then dense ones.
  std::vector<double> corrupted, peaks;
  std::vector<std::vector<double>> at(6);
  double direct = 0, tail = 0;
  for (const int64_t window : pollution.windows) {
    const auto ids = blocks.block(window);
    auto run = [&](const Action& action) {
      auto sequence = model.create({});
      ExtendItem item{sequence.get(), ids.first(12), {}};
      model.extend({&item, 1}, {});
      std::vector<float> log_probs;
      for (size_t t = 0; t < 9; ++t) {
        float log_prob = 0;
        DecodeItem step{sequence.get(), ids[12 + t], t < 3 ? action : Action{}, {}, nullptr};
        step.out.target = ids[13 + t];
        step.out.log_prob = &log_prob;
        model.decode({&step, 1});
        log_probs.push_back(log_prob);
      }
      return log_probs;
    };
    const auto dense = run(Action{}), burst = run(first.action);
    double peak = -1e9;
    for (size_t t = 0; t < 9; ++t) {
      const double change = static_cast<double>(dense[t]) - static_cast<double>(burst[t]);
      if (t < 3) {
        direct += change / 15;
      } else {
        tail += change / 30;
        at[t - 3].push_back(100 * std::expm1(change));
        peak = std::max(peak, at[t - 3].back());
      }
    }
    peaks.push_back(peak);
  }
  EXPECT_NEAR(first.direct, 100 * std::expm1(direct), 1e-9);
  EXPECT_NEAR(first.tail, 100 * std::expm1(tail), 1e-9);
  EXPECT_NEAR(first.peak_p90, quantile(peaks, 0.9), 1e-9);
  ASSERT_EQ(first.median.size(), 6u);
  for (size_t t = 0; t < 6; ++t) {
    EXPECT_NEAR(first.median[t], quantile(at[t], 0.5), 1e-9);
    EXPECT_NEAR(first.low[t], quantile(at[t], 0.1), 1e-9);
    EXPECT_NEAR(first.high[t], quantile(at[t], 0.9), 1e-9);
  }
}

TEST_F(PollutionTest, ADenseBurstPollutesNothing) {
  const Pollution pollution = run_pollution(model, data(9), options);
  const PollutionSetting& none = pollution.settings[4];
  EXPECT_TRUE(none.action.dense());
  EXPECT_EQ(none.direct, 0);
  EXPECT_EQ(none.tail, 0);
  EXPECT_EQ(none.peak_p90, 0);
}

TEST_F(PollutionTest, DrawsDistinctWindowsByTheSeed) {
  const BlockDataset blocks = data(40);
  const Pollution first = run_pollution(model, blocks, options);
  const std::set<int64_t> distinct(first.windows.begin(), first.windows.end());
  EXPECT_EQ(distinct.size(), 5u);
  EXPECT_EQ(run_pollution(model, blocks, options).windows, first.windows);
  options.seed = 1;
  EXPECT_NE(run_pollution(model, blocks, options).windows, first.windows);
}

TEST_F(PollutionTest, RefusesWhatCannotBeRun) {
  EXPECT_THROW(run_pollution(model, data(4), options), Error);  // fewer blocks than windows
  const BlockDataset blocks = data(9);
  options.tail = 7;
  EXPECT_THROW(run_pollution(model, blocks, options), Error);  // blocks of another length
  options.tail = 0;
  EXPECT_THROW(run_pollution(model, blocks, options), Error);
  options.tail = 6;
  options.prefix = options.sequence.sinks + options.sequence.window;
  EXPECT_THAT([&] { run_pollution(model, data(9), options); },
              test::throws({"its steps would be dense"}));
}

}  // namespace
}  // namespace sol
