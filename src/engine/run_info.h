// Where a result comes from; part of every result (docs/formats.md, "Results").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "sol/frozen_model.h"

namespace sol {

struct RunInfo {
  std::string version, commit;
  std::string command;  // as typed
  std::string model;    // its directory's name
  std::string model_fingerprint;
  std::string device;                        // native, cpu, cuda:N
  std::string precision, weights, isa, cpu;  // weights: f32, bf16, int8 or int4
  std::vector<std::string> outside_paper;    // options in effect that the paper does not have
  int threads = 0;
  uint64_t seed = 0;
};

// What this process and machine say about themselves.
RunInfo describe_run(const FrozenModel& model, const std::string& model_name, uint64_t seed,
                     const std::string& command);

Json to_json(const RunInfo& info);

}  // namespace sol
