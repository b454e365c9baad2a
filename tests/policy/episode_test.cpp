#include "sol/episode.h"

#include <limits>

#include "policy/cost_table.h"
#include "sol/frozen_model.h"
#include "support_policy.h"

namespace sol {
namespace {

using test::error_of;
using ::testing::HasSubstr;

// One training batch of the reference: every scalar of every step, from its recorded actions.
TEST(Episode, FeaturesAgreeWithTheReferencesTrainingBatch) {
  const TensorStore store = test::golden("train_step.safetensors");
  const auto scalars = store.get("rollout.scalars_seq").to_floats();  // [T, B K, 8]
  const auto actions = store.get("rollout.actions_seq").to_ints();    // [T, B K]
  const auto previous = store.get("rollout.prev_actions_seq").to_ints();
  const auto kappa = store.get("rollout.C_tok_target_BK").to_floats();
  const auto rho = store.get("rollout.C_pru_target_BK").to_floats();
  const auto eta = store.get("rollout.C_qratio_target_BK").to_floats();
  const auto mean_kappa = store.get("rollout.mean_keep_seq").to_floats();
  const auto mean_rho = store.get("rollout.mean_prune_seq").to_floats();
  const auto mean_eta = store.get("rollout.mean_qratio_seq").to_floats();
  const ActionSpace space = ActionSpace::from_notation(
      {0.1, 0.4, 0.7, 1.0}, {"s40", "s60", "s80", "s100"}, {"q5", "q7", "q10", "q16"});
  const size_t horizon = 16, sequences = 8, prefix = 40;
  ASSERT_EQ(scalars.size(), horizon * sequences * 8);

  for (size_t s = 0; s < sequences; ++s) {
    Episode episode(space, {kappa[s], rho[s], eta[s]}, {static_cast<int>(horizon), 4, 2});
    for (size_t t = 0; t < horizon; ++t) {
      const int keys = static_cast<int>(prefix + t) + 1;
      const Features features = episode.features(keys);
      for (size_t f = 0; f < 8; ++f)
        EXPECT_NEAR(features[f], scalars[(t * sequences + s) * 8 + f], 1e-7f)
            << "sequence " << s << ", step " << t << ", feature " << f;
      const int start = space.size();  // the reference's index of the start symbol
      EXPECT_EQ(episode.previous_action() < 0 ? start : episode.previous_action(),
                previous[t * sequences + s]);
      const int action = static_cast<int>(actions[t * sequences + s]);
      EXPECT_EQ(episode.record(action, keys), action);
    }
    EXPECT_TRUE(episode.finished());
    EXPECT_EQ(episode.effective_steps(), 16);
    EXPECT_NEAR(episode.realised().kappa, mean_kappa[s], 2e-7f);
    EXPECT_NEAR(episode.realised().rho, mean_rho[s], 2e-7f);
    EXPECT_NEAR(episode.realised().eta, mean_eta[s], 2e-7f);
  }
}

TEST(Episode, StepsOverShortPrefixesAreDenseAndDoNotCount) {
  const ActionSpace space = test::two_levels();
  Episode episode(space, {0.5f, 0.8f, 0.6f}, {4, 4, 2});
  EXPECT_FALSE(episode.effective(7));  // all seven are sinks, window or current
  EXPECT_TRUE(episode.effective(8));

  EXPECT_EQ(episode.features(7)[1], 0.0f);
  EXPECT_EQ(episode.record(0, 7), space.dense_index());
  EXPECT_EQ(episode.previous_action(), space.dense_index());
  EXPECT_EQ(episode.effective_steps(), 0);
  EXPECT_EQ(episode.realised(), (Budget{0.5f, 0.8f, 0.6f}));
  EXPECT_EQ(episode.features(8), (Features{0.5f, 1, 0.5f, 0.8f, 0.6f, 0, 0, 0}));

  EXPECT_EQ(episode.record(0, 8), 0);
  EXPECT_EQ(episode.effective_steps(), 1);
  EXPECT_EQ(episode.realised(), (Budget{0.1f, 0.6f, 5 / 16.0f}));
  EXPECT_EQ(episode.features(9),
            (Features{0.75f, 1, 0.5f, 0.8f, 0.6f, 0.1f - 0.5f, 0.6f - 0.8f, 5 / 16.0f - 0.6f}));
  EXPECT_EQ(episode.executed(), (std::vector<int>{space.dense_index(), 0}));
}

TEST(Episode, AnAxisThatIsOffHasItsLevelAsBudget) {
  const ActionSpace space({0.1f, 1.0f}, {0.7f}, {8});
  const Episode episode(space, {0.4f, 0.2f, 2.0f}, {});
  EXPECT_EQ(episode.budget(), (Budget{0.4f, 0.7f, 0.5f}));
}

TEST(Episode, RejectsWhatMakesNoSense) {
  const ActionSpace space = test::two_levels();
  EXPECT_THAT(error_of([&] { Episode(space, {1.2f, 1, 1}, {}); }), HasSubstr("kappa = 1.2"));
  EXPECT_THAT(error_of([&] { Episode(space, {1, -0.1f, 1}, {}); }), HasSubstr("rho"));
  EXPECT_THAT(error_of([&] { Episode(space, {1, 1, std::nanf("")}, {}); }), HasSubstr("eta"));
  EXPECT_THROW(Episode(space, {}, {0, 4, 2}), Error);
  for (const int count : {-1, most_forced_tokens + 1, std::numeric_limits<int>::max()}) {
    EXPECT_THAT(error_of([&] { Episode(space, {}, {16, count, 2}); }), HasSubstr("0..16777216"));
    EXPECT_THAT(error_of([&] { Episode(space, {}, {16, 4, count}); }), HasSubstr("0..16777216"));
  }
  EXPECT_FALSE(Episode(space, {}, {16, most_forced_tokens, most_forced_tokens}).effective(1000));

  Episode episode(space, {}, {1, 4, 2});
  EXPECT_THROW(episode.record(8, 100), Error);
  EXPECT_THROW(episode.record(8, 1), Error);
  EXPECT_EQ(episode.steps(), 0);
  episode.record(7, 100);
  EXPECT_THAT(error_of([&] { episode.record(7, 101); }), HasSubstr("1 steps"));
}

// Dense 10 ms at 100 keys and 20 at 300; half the context saves 2 and 6, half the channels 4.
TEST(Episode, CountsTimesWhereTheBudgetIsOne) {
  const CostTable costs(4, {0.5f}, {{100, 10, 4, {2}}, {300, 20, 4, {6}}}, {4});
  const ActionSpace space({0.5f, 1.0f}, {0.5f, 1.0f}, {16});
  Episode episode(space, time_budget(0.8f), {4, 4, 2, &costs});
  EXPECT_EQ(episode.budget(), (Budget{0.8f, 0.8f, 1.0f}));
  EXPECT_EQ(episode.features(7), (Features{0.25f, 0, 0.8f, 0.8f, 1, 0, 0, 0}));
  EXPECT_EQ(episode.record(0, 7), space.dense_index());  // too short to count
  EXPECT_EQ(episode.features(100), (Features{0.5f, 1, 0.8f, 0.8f, 1, 0, 0, 0}));
  EXPECT_EQ(episode.realised(), Budget{});  // nothing but dense steps so far
  EXPECT_FLOAT_EQ(episode.realised_time(), 0.8f);

  episode.record(space.index({0.5f, 1.0f, 16}), 100);  // 8 ms of 10
  EXPECT_NEAR(episode.features(200)[5], 0, 1e-7);
  episode.record(space.index({0.5f, 0.5f, 16}), 200);  // 15 - 4 - 4 ms of 15
  const Features features = episode.features(201);
  EXPECT_FLOAT_EQ(features[5], -0.2f);
  EXPECT_EQ(features[6], features[5]);
  EXPECT_EQ(features[7], 0);
  EXPECT_FLOAT_EQ(episode.realised_time(), 0.6f);
  EXPECT_EQ(episode.realised(), (Budget{0.5f, 0.75f, 1.0f}));
  EXPECT_EQ(episode.effective_steps(), 2);
}

// An axis that is off has its level as its budget, but a time stays what was asked for.
TEST(Episode, ATimeIsNoAverageOfAnAxis) {
  const CostTable costs(4, {0.5f}, {{100, 10, 4, {2}}}, {4});
  const ActionSpace space({1.0f}, {0.5f, 1.0f}, {16});
  const Episode episode(space, time_budget(0.7f), {4, 4, 2, &costs});
  EXPECT_FLOAT_EQ(episode.features(100)[2], 0.7f);
  EXPECT_FALSE(Episode(space, {}, {}).timed());
  EXPECT_THAT(error_of([&] {
                Episode(test::two_levels(), time_budget(0.7f), {4, 4, 2, &costs});
              }),
              HasSubstr("bits save no time"));
}

}  // namespace
}  // namespace sol
