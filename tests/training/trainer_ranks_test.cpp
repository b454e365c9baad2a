// Training by several processes.
#include <functional>

#include "base/threads.h"
#include "ranks.h"
#include "trainer_fixture.h"

namespace sol::test {
namespace {

// Several ranks as threads of this test, each with a model of its own.
class RanksTest : public TrainerTest {
 protected:
  RanksTest() {
    config_.batch = 4;
    config_.target_steps = 120;  // two loader batches of 64 steps
  }
  ~RanksTest() override { set_thread_count(threads_); }

  const int threads_ = thread_count();  // ranks set it for the process

  // Trains with `size` ranks; returns what each threw. The callbacks are those of the leader.
  std::vector<std::string> train_ranks(int size, const fs::path& out, bool resume = false,
                                       int stop_after = 0, int stopping_rank = 0) {
    return run_ranks(size, [&, this](ConnectedGroup& group) {
      set_thread_count(1);
      const auto model = load_model(
          test_data() / "golden" / "tiny_untied_f32",
          {.precision = Precision::f32, .deterministic = deterministic_ || exact_model_});
      std::stop_source stop;
      int collections = 0;
      const TrainingCallbacks callbacks{
          .on_collection =
              [&](const CollectionMetrics& m) {
                if (group.leads()) seen_.push_back(m);
                if (++collections == stop_after && group.rank() == stopping_rank)
                  stop.request_stop();
              },
          .on_batch = {},
          .on_note = {}};
      TrainerOptions options;
      // Only the leader may touch the directory.
      options.out = group.leads() ? out : directory_.path() / "nothing" / "here";
      options.resume = resume;
      options.deterministic = deterministic_;
      options.group = &group;
      const TrainingConfig config = config_of_rank_ ? config_of_rank_(group.rank()) : config_;
      train_controller(*model, data_, config, options, callbacks, stop.get_token());
    });
  }

  std::function<TrainingConfig(int)> config_of_rank_;
  bool exact_model_ = false;  // the ranks' models are deterministic, whatever the run is
};

TEST_F(RanksTest, DeterministicRunsDoNotDependOnTheNumberOfRanks) {
  deterministic_ = true;
  config_.policy.d_model = 64;
  model_ = load_model(test_data() / "golden" / "tiny_untied_f32",
                      {.precision = Precision::f32, .deterministic = true});
  train(out("one"));
  ASSERT_EQ(seen_.size(), 2u);
  const Json last = to_json(seen_.back());
  for (const int ranks : {2, 4}) {
    const fs::path dir = out(ranks == 2 ? "two" : "four");
    EXPECT_THAT(train_ranks(ranks, dir), testing::Each(testing::IsEmpty()));
    EXPECT_EQ(weights(dir), weights(out("one"))) << ranks;
    for (const char* field : {"reward", "loss", "entropy", "clip_fraction", "gradient_norm",
                              "position", "steps", "penalty", "advantage_deviation"})
      EXPECT_EQ(to_json(seen_.back()).at(field), last.at(field)) << field;
  }
}

TEST_F(RanksTest, PricesAreTheSameOnAllRanks) {
  deterministic_ = true;
  config_.enforced = config_.policy.surprisal = true;
  config_.price_rate = 0.1;
  model_ = load_model(test_data() / "golden" / "tiny_untied_f32",
                      {.precision = Precision::f32, .deterministic = true});
  train(out("one"));
  const auto prices = seen_.back().prices;
  ASSERT_TRUE(prices);
  EXPECT_THAT(train_ranks(2, out("two")), testing::Each(testing::IsEmpty()));
  EXPECT_EQ(seen_.back().prices, prices);
  EXPECT_EQ(weights(out("two")), weights(out("one")));
  EXPECT_THAT(train_ranks(2, out("parts"), false, 1), testing::Each(testing::IsEmpty()));
  EXPECT_THAT(train_ranks(2, out("parts"), true), testing::Each(testing::IsEmpty()));
  EXPECT_EQ(weights(out("parts")), weights(out("one")));
}

TEST_F(RanksTest, OtherRunsDifferByRounding) {
  // Three ranks cannot share the lanes of a deterministic run evenly, so that their gradients are
  // summed otherwise. The model's own products must not depend on the batch's size here: a rounding
  // there makes a schedule sample another action once in a while, and then all that follows
  // differs.
  exact_model_ = true;
  model_ = load_model(test_data() / "golden" / "tiny_untied_f32",
                      {.precision = Precision::f32, .deterministic = true});
  config_.updates = 1;
  train(out("one"));
  EXPECT_THAT(train_ranks(3, out("three")), testing::Each(testing::IsEmpty()));
  ASSERT_EQ(seen_.size(), 2u);
  EXPECT_EQ(seen_[1].steps, seen_[0].steps);
  EXPECT_NEAR(seen_[1].reward, seen_[0].reward, 1e-6);
  EXPECT_NEAR(seen_[1].entropy, seen_[0].entropy, 1e-5);
  EXPECT_NEAR(seen_[1].gradient_norm, seen_[0].gradient_norm, 1e-4 * seen_[0].gradient_norm);
}

TEST_F(RanksTest, ARunGoesOnWithAnotherNumberOfRanks) {
  deterministic_ = true;
  model_ = load_model(test_data() / "golden" / "tiny_untied_f32",
                      {.precision = Precision::f32, .deterministic = true});
  config_.grad_accum = 7;  // gradients lie in the checkpoint
  train(out("whole"));
  // The one that is told to stop need not be the leader.
  EXPECT_THAT(train_ranks(2, out("parts"), false, 1, 1), testing::Each(testing::IsEmpty()));
  EXPECT_FALSE(fs::exists(out("parts") / "controller.json"));
  EXPECT_THAT(train_ranks(4, out("parts"), true, 1), testing::Each(testing::IsEmpty()));
  EXPECT_TRUE(train(out("parts"), true).finished);
  EXPECT_EQ(weights(out("parts")), weights(out("whole")));
}

TEST_F(RanksTest, AllMustTrainTheSame) {
  config_of_rank_ = [this](int rank) {
    TrainingConfig config = config_;
    if (rank == 1) config.optimiser.learning_rate = 3e-4;
    return config;
  };
  const auto errors = train_ranks(2, out());
  EXPECT_THAT(errors, testing::Each(testing::HasSubstr("learning_rate is 0.0003 here")));
}

TEST_F(RanksTest, TheLeadersFailureEndsAll) {
  train(out());
  const auto errors = train_ranks(2, out());  // holds a run already
  EXPECT_THAT(errors[0], testing::HasSubstr("--overwrite"));
  EXPECT_THAT(errors[1],
              testing::AllOf(testing::HasSubstr("rank 0"), testing::HasSubstr("--overwrite")));
}

}  // namespace
}  // namespace sol::test
