// The training loop.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine.h"

namespace sol::pretrain {

struct TrainerOptions {
  std::filesystem::path model;  // config.json, tokenizer.json; with `init` also weights
  bool init = false;
  std::filesystem::path out;
  std::vector<std::filesystem::path> data, valid;
  std::filesystem::path cache;  // of token ids
  bool resume = false;          // from OUT's checkpoint
  std::filesystem::path from;   // or from another run's, which stays as it is

  int window = 512;
  int64_t step_tokens = 16384;
  OptimizerSettings optimizer;  // its learning_rate is the highest
  int64_t warmup_tokens = 1'000'000;
  int64_t decay_tokens = 0;  // > 0: the rate falls to final_rate over so many tokens from here
  double final_rate = 0.0;   // as a share of the highest
  uint64_t seed = 1;

  int64_t tokens = 0;  // ends after so many in all; 0: no limit
  double minutes = 0;  // ends after so many of this run; 0: no limit
  double checkpoint_minutes = 5;
  int log_steps = 20;
  int64_t valid_tokens = 0;        // between validations; 0: at the end only
  int valid_windows = 40;          // of each validation file
  std::vector<int> valid_lengths;  // empty: the window

  std::string device = "cpu", precision = "bf16";
  int micro_batch = 8;  // windows held at a time by LibTorch
  bool save_f32 = false;
};

// Trains until a limit is reached or `stop` is requested, with a checkpoint and OUT's model written
// either way; `on_note` gets lines for people. Returns whether the run is complete: its limit of
// tokens was reached. Throws Error for anything wrong with files, options or the device.
bool pretrain(const TrainerOptions& options, const std::function<void(const std::string&)>& on_note,
              std::stop_token stop);

}  // namespace sol::pretrain
