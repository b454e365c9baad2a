// A tiny model and runs of a few updates, for tests of the trainer.
#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "base/file_io.h"
#include "base/random.h"
#include "sol/controller.h"
#include "sol/error.h"
#include "support.h"
#include "training/trainer.h"

namespace sol::test {

namespace fs = std::filesystem;

inline BlockDataset random_blocks(int64_t blocks, int length, uint64_t seed = 1) {
  Random random({.seed = seed, .stream = RandomStream::test});
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < blocks * length; ++i)
    ids.push_back(static_cast<int32_t>(random.below(320)));
  return BlockDataset::from_ids(std::move(ids), length);
}

// A tiny model and runs of a few updates with accumulation across collections.
class TrainerTest : public testing::Test {
 protected:
  TrainerTest() {
    config_.name = "tiny";
    config_.space = ActionSpace({0.25f, 1.0f}, {0.5f, 1.0f}, {3, 16});
    config_.kappa.range = {0.25, 1.0};
    config_.rho.range = {0.5, 1.0};
    config_.eta.range = {0.1875, 1.0};
    config_.context = 24;
    config_.horizon = 4;
    config_.schedules = 4;
    config_.batch = 2;
    config_.policy.d_model = 16;
    config_.policy.max_length = 8;
    config_.minibatch = 12;     // three schedules
    config_.target_steps = 40;  // two loader batches: 16 schedules, minibatches of 3,3,3,3,3,1
    config_.grad_accum = 4;
    config_.updates = 5;
    config_.checkpoint_updates = 1000;
  }

  // Runs until finished or, when `stop_after` > 0, until that many collections are done.
  TrainingOutcome train(const fs::path& out, bool resume = false, int stop_after = 0) {
    std::stop_source stop;
    int collections = 0;
    const TrainingCallbacks callbacks{
        .on_collection =
            [&](const CollectionMetrics& m) {
              seen_.push_back(m);
              if (++collections == stop_after) stop.request_stop();
            },
        .on_batch = {},
        .on_note = [&](const std::string& text) { notes_.push_back(text); }};
    TrainerOptions options;
    options.out = out;
    options.initial = initial_;
    options.resume = resume;
    options.overwrite = overwrite_;
    options.deterministic = deterministic_;
    options.costs = costs_;
    return train_controller(*model_, data_, config_, options, callbacks, stop.get_token());
  }

  std::string error(const fs::path& out, bool resume = false) {
    try {
      train(out, resume);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }

  fs::path out(const char* name = "out") const { return directory_.path() / name; }
  static std::string weights(const fs::path& dir) {
    return read_file(dir / read_json(dir / "controller.json")["weights"].get<std::string>());
  }

  TemporaryDirectory directory_;
  std::unique_ptr<FrozenModel> model_ =
      load_model(test_data() / "golden" / "tiny_untied_f32", {.precision = Precision::f32});
  TrainingConfig config_;
  BlockDataset data_ = random_blocks(9, 29);
  bool overwrite_ = false, deterministic_ = false;
  fs::path initial_;
  std::shared_ptr<const CostTable> costs_;
  std::vector<CollectionMetrics> seen_;
  std::vector<std::string> notes_;
};

}  // namespace sol::test
