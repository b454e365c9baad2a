#include "training/trainer.h"

#include <gmock/gmock.h>

#include <fstream>

#include "base/file_io.h"
#include "base/random.h"
#include "base/threads.h"
#include "file_size_limit.h"
#include "golden_schedules.h"
#include "sol/controller.h"
#include "sol/error.h"
#include "trainer_fixture.h"

namespace sol::test {
namespace {

TEST_F(TrainerTest, WritesAControllerAndALog) {
  const TrainingOutcome outcome = train(out());
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(outcome.updates, 5);
  const Controller controller = Controller::load(out());
  EXPECT_EQ(controller.space(), config_.space);
  EXPECT_EQ(controller.settings().horizon, 4);
  EXPECT_EQ(controller.settings().model_fingerprint, model_->fingerprint());
  EXPECT_DOUBLE_EQ(controller.settings().ranges.eta.low, 0.1875);
  const Json training = parse_json(controller.settings().training_json, "training");
  EXPECT_EQ(training.at("updates"), 5);
  EXPECT_EQ(training.at("config").at("rollout").at("context"), 24);
  for (const char* field : {"commit", "isa", "threads", "seconds", "precision"}) {
    EXPECT_TRUE(training.contains(field) || training.at("run").contains(field)) << field;
  }

  // 6 minibatches a collection, 4 an update: 5 updates end within the fourth collection.
  std::ifstream log(out() / "train.jsonl");
  std::string line;
  int lines = 0;
  while (std::getline(log, line)) {
    const Json entry = parse_json(line, "train.jsonl");
    EXPECT_EQ(entry.at("collection"), ++lines);
    EXPECT_EQ(entry.at("steps"), 64);
    EXPECT_EQ(entry.at("position"), 4 * lines);
    EXPECT_LT(entry.at("reward").get<double>(), 0.0);
    EXPECT_NEAR(entry.at("perplexity").get<double>(),
                std::exp(-entry.at("log_likelihood").get<double>()), 1e-6);
    EXPECT_GT(entry.at("entropy").get<double>(), 0.5);
    EXPECT_LE(entry.at("network_disagreement").get<double>(), 1e-4);
  }
  EXPECT_EQ(lines, 4);
  // Nine blocks are fewer than sixteen inputs.
  EXPECT_THAT(notes_, testing::Contains(testing::HasSubstr("all 9 blocks have been read")));
}

TEST_F(TrainerTest, LearnsToMeetItsBudgets) {
  // The cheapest budgets: the policy must give up choosing the dense levels half of the time.
  config_.kappa.range = {0.25, 0.25};
  config_.rho.range = {0.5, 0.5};
  config_.eta.range = {0.1875, 0.1875};
  config_.updates = 80;
  config_.grad_accum = 2;
  config_.optimiser.learning_rate = 3e-3;
  train(out());
  const auto mean_penalty = [&](size_t begin, size_t end) {
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += seen_[i].penalty;
    return sum / static_cast<double>(end - begin);
  };
  ASSERT_GE(seen_.size(), 20u);
  EXPECT_LT(mean_penalty(seen_.size() - 5, seen_.size()), 0.3 * mean_penalty(0, 5));
  for (size_t axis = 0; axis < 3; ++axis)
    EXPECT_LT(seen_.back().realised[axis], seen_.front().realised[axis]);
}

TEST_F(TrainerTest, AResumedRunGivesTheSameControllerBitForBit) {
  train(out("whole"));
  EXPECT_FALSE(train(out("parts"), false, 1).finished);
  EXPECT_FALSE(fs::exists(out("parts") / "controller.json"));
  EXPECT_TRUE(fs::exists(out("parts") / "checkpoint" / "controller" / "controller.json"));
  EXPECT_FALSE(train(out("parts"), true, 2).finished);
  EXPECT_TRUE(train(out("parts"), true).finished);
  EXPECT_EQ(weights(out("parts")), weights(out("whole")));

  // The log has each collection once, with the same figures.
  std::ifstream a(out("parts") / "train.jsonl"), b(out("whole") / "train.jsonl");
  std::string x, y;
  int lines = 0;
  while (std::getline(b, y)) {
    ASSERT_TRUE(std::getline(a, x));
    EXPECT_EQ(parse_json(x, "a").at("reward"), parse_json(y, "b").at("reward"));
    EXPECT_EQ(parse_json(x, "a").at("gradient_norm"), parse_json(y, "b").at("gradient_norm"));
    ++lines;
  }
  EXPECT_FALSE(std::getline(a, x));
  EXPECT_EQ(lines, 4);
}

TEST_F(TrainerTest, AFinishedRunCanBeProlonged) {
  config_.updates = 3;  // ends with a collection's last minibatch
  config_.grad_accum = 2;
  train(out("parts"));
  config_.updates = 6;
  EXPECT_TRUE(train(out("parts"), true).finished);
  train(out("whole"));
  EXPECT_EQ(weights(out("parts")), weights(out("whole")));
}

TEST_F(TrainerTest, ARunIsNotShortened) {
  train(out());  // 5 updates
  config_.updates = 3;
  EXPECT_THAT(error(out(), true),
              testing::HasSubstr("has 5 updates already, and optimisation.updates is 3"));
}

TEST_F(TrainerTest, ResumingAFinishedRunLeavesItsControllerAlone) {
  const TrainingOutcome first = train(out());
  Controller with_frontier = Controller::load(out());
  with_frontier.set_frontier({{0.5, {0.5f, 0.5f, 0.5f}, 20.0}});
  with_frontier.save(out());
  const std::string before = read_file(out() / "controller.json");
  const TrainingOutcome again = train(out(), true);
  EXPECT_TRUE(again.finished);
  EXPECT_EQ(read_file(out() / "controller.json"), before);
  EXPECT_EQ(to_json(again.last), to_json(first.last));
  EXPECT_THAT(notes_, testing::Contains(testing::HasSubstr("nothing is left to do")));
  write_file_atomically(out() / "controller.json", "{");
  EXPECT_THAT(error(out(), true), testing::HasSubstr("saved again from the checkpoint, delete"));
  EXPECT_EQ(read_file(out() / "controller.json"), "{");
  // A controller that got lost is made again, with the metrics of the run.
  fs::remove(out() / "controller.json");
  train(out(), true);
  const Json training =
      parse_json(Controller::load(out()).settings().training_json, "controller.json");
  EXPECT_EQ(training.at("last_collection"), to_json(first.last));
}

TEST_F(TrainerTest, MetricsAreOverAllBatchesOfACollection) {
  config_.grad_accum = 1000;  // the policy stays as it is
  train(out("two batches"), false, 1);
  config_.target_steps = 32;
  train(out("one batch each"), false, 2);
  ASSERT_EQ(seen_.size(), 3u);
  EXPECT_NE(seen_[1].advantage_deviation, seen_[2].advantage_deviation);
  EXPECT_DOUBLE_EQ(seen_[0].advantage_deviation,
                   (seen_[1].advantage_deviation + seen_[2].advantage_deviation) / 2);
}

TEST_F(TrainerTest, ALogThatLostItsEndLosesNoRun) {
  train(out("whole"));
  const auto collections = [&] {
    std::vector<int64_t> numbers;
    std::ifstream log(out() / "train.jsonl");
    for (std::string line; std::getline(log, line);)
      numbers.push_back(parse_json(line, "train.jsonl").at("collection").get<int64_t>());
    return numbers;
  };
  const auto damaged = [&](const std::function<void(const fs::path&)>& damage) {
    fs::remove_all(out());
    train(out(), false, 2);
    damage(out() / "train.jsonl");
    notes_.clear();
    EXPECT_FALSE(train(out(), true, 1).finished);
    const auto lost = notes_;
    const std::vector<int64_t> between = collections();
    // A second resumption finds the gap as it is.
    EXPECT_TRUE(train(out(), true).finished);
    EXPECT_EQ(weights(out()), weights(out("whole")));
    return std::pair(lost, between);
  };
  using Numbers = std::vector<int64_t>;
  const auto cut = damaged([](const fs::path& path) {
    const std::string log = read_file(path);
    write_file_atomically(path, log.substr(0, log.find('\n') + 5));
  });
  EXPECT_THAT(cut.first, testing::Contains(testing::HasSubstr("lines of collections 2;")));
  EXPECT_EQ(cut.second, (Numbers{1, 3}));
  EXPECT_EQ(collections(), (Numbers{1, 3, 4}));
  const auto gone = damaged([](const fs::path& path) { fs::remove(path); });
  EXPECT_THAT(gone.first, testing::Contains(testing::HasSubstr("lines of collections 1 to 2;")));
  EXPECT_EQ(gone.second, (Numbers{3}));
  const auto whole = damaged([](const fs::path&) {});
  EXPECT_THAT(whole.first, testing::Not(testing::Contains(testing::HasSubstr("lacks the lines"))));
  EXPECT_EQ(whole.second, (Numbers{1, 2, 3}));
}

TEST_F(TrainerTest, OtherFilesInTheDirectoryAreNotReplacedUnasked) {
  ensure_writable_directory(out());
  for (const char* name : {"train.jsonl", "run.json"}) {
    const std::string mine = "{\"collection\":1}\n";
    write_file_atomically(out() / name, mine);
    EXPECT_THAT(error(out()),
                testing::AllOf(testing::HasSubstr(name), testing::HasSubstr("--overwrite")));
    EXPECT_EQ(read_file(out() / name), mine);
    fs::remove(out() / name);
  }
  // Other programs' event files stay even then.
  write_file_atomically(out() / "events.out.tfevents.1.host", "mine");
  overwrite_ = true;
  train(out());
  EXPECT_EQ(read_file(out() / "events.out.tfevents.1.host"), "mine");
}

TEST_F(TrainerTest, ARunThatFailedBeforeItsFirstCollectionIsReplaced) {
  ensure_writable_directory(out());
  write_file_atomically(out() / "train.jsonl", "");
  write_file_atomically(out() / "run.json", "mine");
  EXPECT_THAT(error(out()), testing::HasSubstr("not the record of a training run"));
  write_file_atomically(out() / "run.json", "{\n \"config\": {}\n}\n");
  EXPECT_TRUE(train(out()).finished);
}

TEST_F(TrainerTest, WhatFallsUntilTheLastUpdateCannotBeProlonged) {
  config_.optimiser.final_learning_rate = 1e-6;
  train(out());
  ++config_.updates;
  EXPECT_THAT(error(out(), true), testing::AllOf(testing::HasSubstr("final_learning_rate"),
                                                 testing::HasSubstr("cannot be prolonged")));
}

TEST_F(TrainerTest, ADecayingLearningRateSurvivesResumption) {
  config_.optimiser.final_learning_rate = 1e-6;
  train(out("whole"));
  train(out("parts"), false, 2);
  EXPECT_TRUE(train(out("parts"), true).finished);
  EXPECT_EQ(weights(out("parts")), weights(out("whole")));
  config_.updates = 9;  // would have decayed differently from the start
  EXPECT_THAT(error(out("parts"), true), testing::HasSubstr("updates"));
}

TEST_F(TrainerTest, AFallingWeightOfTheEntropySurvivesResumption) {
  config_.loss.entropy = 0.5;
  config_.final_entropy = 0.0;
  train(out("whole"));
  ASSERT_EQ(seen_.size(), 4u);
  // Six minibatches a collection, four an update: the last ones see 1, 2, 4 and 4 steps of 5.
  const double expected[] = {0.4, 0.3, 0.1, 0.1};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(seen_[i].entropy_weight, expected[i], 1e-12) << i;
  train(out("parts"), false, 2);
  EXPECT_TRUE(train(out("parts"), true).finished);
  EXPECT_EQ(weights(out("parts")), weights(out("whole")));
  EXPECT_NEAR(seen_.back().entropy_weight, 0.1, 1e-12);
  config_.final_entropy.reset();
  train(out("constant"));
  EXPECT_NE(weights(out("constant")), weights(out("whole")));
  EXPECT_EQ(seen_.back().entropy_weight, 0.5);
  config_.final_entropy = 0.0;
  config_.updates = 9;  // would have fallen differently from the start
  EXPECT_THAT(error(out("parts"), true), testing::HasSubstr("updates"));
}

TEST_F(TrainerTest, WhiteningOverGroupsSurvivesResumption) {
  train(out("batch"));
  config_.advantage.whiten_over = AdvantageOptions::WhitenOver::group;
  train(out("whole"));
  EXPECT_NE(weights(out("whole")), weights(out("batch")));
  train(out("parts"), false, 2);
  EXPECT_TRUE(train(out("parts"), true).finished);
  EXPECT_EQ(weights(out("parts")), weights(out("whole")));
  config_.advantage.whiten_over = AdvantageOptions::WhitenOver::batch;
  EXPECT_THAT(error(out("parts"), true),
              testing::AllOf(testing::HasSubstr("another run"), testing::HasSubstr("whiten_over"),
                             testing::HasSubstr("group")));
}

TEST_F(TrainerTest, PricesAndTheSurprisalSurviveResumption) {
  config_.enforced = true;
  train(out("without"));
  EXPECT_FALSE(seen_.back().prices);
  config_.price_rate = 0.1;
  train(out("priced"));
  EXPECT_NE(weights(out("priced")), weights(out("without")));
  config_.policy.surprisal = true;
  seen_.clear();
  train(out("whole"));
  EXPECT_NE(weights(out("whole")), weights(out("priced")));
  EXPECT_TRUE(Controller::load(out("whole")).network().shape().surprisal);
  ASSERT_TRUE(seen_.back().prices);
  EXPECT_NE(*seen_.back().prices, *seen_.front().prices);
  EXPECT_EQ(metrics_from_json(to_json(seen_.back()), "").prices, seen_.back().prices);
  train(out("parts"), false, 2);
  EXPECT_TRUE(train(out("parts"), true).finished);
  EXPECT_EQ(weights(out("parts")), weights(out("whole")));
  EXPECT_EQ(read_json(out("parts") / "controller.json")["training"]["last_collection"]["prices"],
            read_json(out("whole") / "controller.json")["training"]["last_collection"]["prices"]);
  config_.price_rate = 0.2;
  EXPECT_THAT(error(out("parts"), true),
              testing::AllOf(testing::HasSubstr("another run"), testing::HasSubstr("price_rate")));
}

TEST_F(TrainerTest, ACurriculumWidensTheBudgetsAndSurvivesResumption) {
  config_.curriculum = {.share = 0.8, .width = 0.25};
  train(out("whole"));
  // A collection reads 4 inputs and makes 6 minibatches, an update takes 4 of these: 8/3 inputs an
  // update, and 0.8 of 5 updates are 32/3 inputs. Seen at the inputs 3, 7, 11 and 15.
  ASSERT_EQ(seen_.size(), 4u);
  const double expected[] = {0.25 + 0.75 * 9 / 32, 0.25 + 0.75 * 21 / 32, 1, 1};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(seen_[i].budget_range_share, expected[i], 1e-12) << i;
    EXPECT_GE(seen_[i].requested[0], 1 - expected[i] * 0.75) << i;
  }
  train(out("parts"), false, 1);
  EXPECT_TRUE(train(out("parts"), true).finished);
  EXPECT_EQ(weights(out("parts")), weights(out("whole")));
  config_.updates = 9;  // would have widened differently from the start
  EXPECT_THAT(error(out("parts"), true), testing::HasSubstr("updates"));
  config_.updates = 5;
  config_.curriculum.share = 0;
  train(out("off"));
  EXPECT_NE(weights(out("off")), weights(out("whole")));
  EXPECT_EQ(seen_.back().budget_range_share, 1.0);
}

TEST_F(TrainerTest, DistillationSurvivesResumption) {
  train(out("without"));
  EXPECT_EQ(seen_.back().distil_share, 0.0);
  EXPECT_EQ(seen_.back().distil_loss, 0.0);
  config_.loss.distil = 0.5;
  config_.distil_tolerance = 0.3;  // four steps can meet few budgets more closely
  seen_.clear();
  train(out("whole"));
  EXPECT_NE(weights(out("whole")), weights(out("without")));
  double distilled = 0, loss = 0;
  for (const CollectionMetrics& m : seen_) {
    EXPECT_GE(m.distil_share, 0.0);
    EXPECT_LE(m.distil_share, 1.0);
    distilled += m.distil_share;
    loss += m.distil_loss;
  }
  EXPECT_GT(distilled, 1.0);
  EXPECT_GT(loss, distilled);  // about the entropy of eight actions, ln 8, for each that has one
  train(out("parts"), false, 2);
  EXPECT_TRUE(train(out("parts"), true).finished);
  EXPECT_EQ(weights(out("parts")), weights(out("whole")));
  config_.loss.distil = 0;
  EXPECT_THAT(error(out("parts"), true),
              testing::AllOf(testing::HasSubstr("another run"), testing::HasSubstr("distil")));
}

TEST_F(TrainerTest, StartsFromAControllerOfTheSameShape) {
  train(out("first"));
  initial_ = out("first");
  train(out("second"));
  initial_.clear();
  train(out("fresh"));
  EXPECT_EQ(weights(out("fresh")), weights(out("first")));
  EXPECT_NE(weights(out("second")), weights(out("first")));
  initial_ = out("first");
  EXPECT_THAT(notes_, testing::Not(testing::Contains(testing::HasSubstr("was trained with"))));
  model_ = load_model(test_data() / "golden" / "tiny_untied_f32",
                      {.precision = Precision::f32, .prune_down = true});
  train(out("other"));
  EXPECT_THAT(notes_, testing::Contains(out("first").string() +
                                        ": this controller was trained with no option outside the "
                                        "paper, and is used with --prune-down"));
  config_.policy.d_model = 32;
  EXPECT_THAT(error(out("third")), testing::HasSubstr("same shape"));
  initial_ = out("nothing");
  EXPECT_THAT(error(out("third")), testing::HasSubstr("nothing"));
}

// Which may be gone by then, or on another machine.
TEST_F(TrainerTest, AResumedRunNeedsNoControllerToStartFrom) {
  train(out("first"));
  initial_ = out("first");
  train(out("whole"));
  EXPECT_FALSE(train(out("parts"), false, 1).finished);
  initial_ = out("gone");
  EXPECT_TRUE(train(out("parts"), true).finished);
  EXPECT_THAT(notes_, testing::Contains(testing::HasSubstr("gone is not read")));
  EXPECT_EQ(weights(out("parts")), weights(out("whole")));
}

// What is wrong with it must show before an earlier run is given up.
TEST_F(TrainerTest, AnEarlierRunOutlivesAControllerThatDoesNotFit) {
  train(out());
  initial_ = out("nothing");
  overwrite_ = true;
  EXPECT_THAT(error(out()), testing::HasSubstr("nothing"));
  EXPECT_TRUE(fs::exists(out() / "checkpoint" / "state.safetensors"));
}

TEST_F(TrainerTest, ADeterministicRunDoesNotDependOnTheThreads) {
  model_ = load_model(test_data() / "golden" / "tiny_untied_f32",
                      {.precision = Precision::f32, .deterministic = true});
  deterministic_ = true;
  config_.policy.d_model = 128;  // wide enough for LibTorch to share sums among threads
  const int before = thread_count();
  set_thread_count(1);
  train(out("one"));
  set_thread_count(3);
  train(out("three"));
  EXPECT_EQ(thread_count(), 3);
  set_thread_count(before);
  EXPECT_EQ(weights(out("three")), weights(out("one")));
}

TEST_F(TrainerTest, AnotherSeedGivesAnotherController) {
  train(out("a"));
  config_.seed = 99;
  train(out("b"));
  EXPECT_NE(weights(out("a")), weights(out("b")));
}

TEST_F(TrainerTest, ResumingNeedsTheSameRun) {
  train(out(), false, 1);
  config_.optimiser.learning_rate = 2e-4;
  EXPECT_THAT(error(out(), true),
              testing::AllOf(testing::HasSubstr("another run"), testing::HasSubstr("learning_rate"),
                             testing::HasSubstr("0.0002")));
  config_.optimiser.learning_rate = 1e-4;
  deterministic_ = true;
  EXPECT_THAT(error(out(), true), testing::HasSubstr("deterministic was absent and is now true"));
  deterministic_ = false;
  data_ = random_blocks(9, 29, 2);
  EXPECT_THAT(error(out(), true), testing::HasSubstr("data"));
  data_ = random_blocks(9, 29);
  model_ = load_model(test_data() / "golden" / "tiny_tied_f32", {.precision = Precision::f32});
  EXPECT_THAT(error(out(), true), testing::HasSubstr("model_fingerprint"));
}

TEST_F(TrainerTest, DoesNotOverwriteARunUnasked) {
  train(out(), false, 1);
  EXPECT_THAT(error(out()),
              testing::AllOf(testing::HasSubstr("--resume"), testing::HasSubstr("--overwrite")));
  overwrite_ = true;
  EXPECT_TRUE(train(out()).finished);
  const std::string fresh = weights(out());
  train(out("other"));
  EXPECT_EQ(fresh, weights(out("other")));
}

TEST_F(TrainerTest, RefusesWhatDoesNotFit) {
  config_.context = 25;
  EXPECT_THAT(error(out()), testing::HasSubstr("blocks of 29 ids"));
  config_.context = model_->config().max_position_embeddings;
  data_ = random_blocks(2, config_.block_length());
  EXPECT_THAT(error(out()), testing::HasSubstr("positions"));
}

TEST_F(TrainerTest, AnUnwritableDirectoryIsAnErrorBeforeWorkBegins) {
  write_file_atomically(directory_.path() / "file", "x");
  EXPECT_THAT(error(directory_.path() / "file" / "out"), testing::HasSubstr("file"));
  EXPECT_TRUE(seen_.empty());
}

TEST_F(TrainerTest, ADivergingRunSaysSoAndKeepsAFiniteCheckpoint) {
  // Ten times as large at every step: whole for a collection of six, not for many.
  config_.optimiser.learning_rate = config_.optimiser.weight_decay = 3.3;
  config_.grad_accum = config_.checkpoint_updates = 1;
  config_.updates = 100;
  EXPECT_THAT(error(out()), testing::ContainsRegex("learning.rate|diverged"));
  const fs::path path = out() / "checkpoint" / "state.safetensors";
  ASSERT_TRUE(fs::exists(path));
  const TensorStore store = TensorStore::open_file(path);
  for (const auto& [name, tensor] : store.tensors())
    EXPECT_EQ(tensor.first_not_finite(), std::nullopt) << name;
}

// Killed between its last checkpoint and its controller, over a run of the same length.
TEST_F(TrainerTest, AnEarlierRunsControllerIsNotTakenForTheResumedOnes) {
  train(out("earlier"));
  config_.seed += 1;
  train(out());
  const auto expected = weights(out());
  Controller::load(out("earlier")).save(out());
  ASSERT_NE(weights(out()), expected);
  EXPECT_TRUE(train(out(), true).finished);
  EXPECT_EQ(weights(out()), expected);
}

TEST_F(TrainerTest, ResumingWithoutACheckpointKeepsWhatIsNoRecordOfARun) {
  ensure_writable_directory(out());
  write_file_atomically(out() / "run.json", "[1, 2]");
  EXPECT_THAT(error(out(), true), testing::HasSubstr("run.json"));
  EXPECT_EQ(read_file(out() / "run.json"), "[1, 2]");
}

TEST_F(TrainerTest, OnlyOneRunAtATimeWritesToADirectory) {
  ensure_writable_directory(out());
  const DirectoryLock other(out());
  EXPECT_THAT(error(out()), testing::HasSubstr("another process"));
}

TEST_F(TrainerTest, AControllerWithoutACheckpointIsNotResumed) {
  train(out());
  const std::string before = read_file(out() / "controller.json");
  fs::remove_all(out() / "checkpoint");
  EXPECT_THAT(error(out(), true), testing::HasSubstr("no checkpoint to resume from"));
  EXPECT_EQ(read_file(out() / "controller.json"), before);
}

TEST_F(TrainerTest, AModelsDirectoryIsNotTrainedInto) {
  ensure_writable_directory(out());
  write_file_atomically(out() / "config.json", "{}");
  overwrite_ = true;
  EXPECT_THAT(error(out()), testing::HasSubstr("holds a model"));
}

TEST_F(TrainerTest, AFullDiskLeavesTheOldCheckpoint) {
  train(out("whole"));
  train(out(), false, 1);
  const fs::path path = out() / "checkpoint" / "state.safetensors";
  const std::string before = read_file(path);
  config_.checkpoint_updates = 1;
  std::string message;
  {
    const FileSizeLimit limit(20000);
    message = error(out(), true);
  }
  EXPECT_THAT(message, testing::HasSubstr("state.safetensors"));
  EXPECT_EQ(read_file(path), before);
  int files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(out() / "checkpoint")) ++files;
  EXPECT_EQ(files, 2);  // the state and the controller's folder: no half-written file
  // Once there is room again, the run goes on and ends as if nothing had happened.
  EXPECT_TRUE(train(out(), true).finished);
  EXPECT_EQ(weights(out()), weights(out("whole")));
}

TEST_F(TrainerTest, ATimeLimitEndsTheRunWithAController) {
  config_.updates = 1000000;
  TrainerOptions options;
  options.out = out();
  options.minutes = 1e-9;  // over before the first collection, which is made all the same
  const TrainingOutcome outcome = train_controller(*model_, data_, config_, options);
  EXPECT_TRUE(outcome.finished);
  EXPECT_GT(outcome.updates, 0);
  EXPECT_EQ(outcome.last.collection, 1);
  EXPECT_NO_THROW(Controller::load(out()));
}

}  // namespace
}  // namespace sol::test
