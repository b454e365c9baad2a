// Loss on text that is not trained on.
#pragma once

#include <filesystem>
#include <stop_token>
#include <vector>

#include "base/json.h"
#include "engine.h"
#include "sol/tokenizer.h"

namespace sol::pretrain {

class Validation {
 public:
  // `windows` windows of each length, spread evenly over each file (all of it where it has fewer).
  Validation(const std::vector<std::filesystem::path>& files, const Tokenizer& tokenizer,
             const std::filesystem::path& cache, std::vector<int> lengths, int windows,
             std::stop_token stop);

  // One object per file and length: "file", "window", "targets", "nats_per_token" over all
  // positions, "second_half" over the later half of each window, "bits_per_byte" (of the targets'
  // text).
  Json measure(Engine& engine) const;
  bool empty() const { return sets_.empty(); }

 private:
  struct Set {
    std::string file;
    int window;
    std::vector<int32_t> ids;  // windows of window + 1, one after the other
    int64_t bytes;
  };
  std::vector<Set> sets_;
};

}  // namespace sol::pretrain
