#include "engine/run_info.h"

#include "base/build_info.h"
#include "base/cpu.h"
#include "base/threads.h"

namespace sol {

std::string_view to_string(Precision precision) {
  switch (precision) {
    case Precision::automatic:
      return "auto";
    case Precision::f32:
      return "f32";
    case Precision::bf16:
      return "bf16";
  }
  return "";
}

RunInfo describe_run(const FrozenModel& model, const std::string& model_name, uint64_t seed,
                     const std::string& command) {
  RunInfo info;
  info.version = build_version();
  info.commit = build_commit();
  info.command = command;
  info.model = model_name;
  info.model_fingerprint = model.fingerprint();
  info.device = model.device();
  info.precision = to_string(model.precision());
  info.weights = std::string(weights_name(model));
  info.outside_paper = model.outside_paper();
  info.isa = std::string(to_string(current_isa()));
  info.cpu = cpu_description();
  info.threads = thread_count();
  info.seed = seed;
  return info;
}

Json to_json(const RunInfo& info) {
  return {{"version", info.version},
          {"commit", info.commit},
          {"command", info.command},
          {"model", info.model},
          {"model_fingerprint", info.model_fingerprint},
          {"device", info.device},
          {"precision", info.precision},
          {"weights", info.weights},
          {"outside_paper", info.outside_paper},
          {"isa", info.isa},
          {"cpu", info.cpu},
          {"threads", info.threads},
          {"seed", info.seed}};
}

}  // namespace sol
