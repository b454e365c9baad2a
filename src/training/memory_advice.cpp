// What to lower where a run does not fit.
#include <algorithm>
#include <functional>

#include "base/fail.h"
#include "training/memory_plan.h"

namespace sol {
namespace {

// What a run could be instead.
struct Alternative {
  TrainingConfig config;
  int processes = 1, all_processes = 1;
  bool deterministic = false;
  Precision precision = Precision::automatic;
  uint64_t weights = 0;
  std::string flags{};

  void add_flag(const std::string& flag) { flags += (flags.empty() ? "" : " ") + flag; }
};

uint64_t needed(const FrozenModel& model, const Alternative& a) {
  return static_cast<uint64_t>(a.processes) *
             plan_memory(model, a.config, a.all_processes, a.deterministic, a.precision).total() +
         static_cast<uint64_t>(weight_copies(model, a.processes)) * a.weights;
}

using Fits = std::function<bool(const Alternative&)>;
// Lowers one thing as little as makes it fit, or, where nothing does, as far as it goes.
using Lower = std::function<void(Alternative&, const Fits&)>;

template <typename Number>
void halve(Alternative& a, const Fits& fits, Number& value, Number least, const char* flag) {
  const Number before = value;
  while (value > least && (value == before || !fits(a))) {
    const Number larger = value;
    value = std::max<Number>(least, value / 2);
    if (a.config.is_valid()) continue;
    value = larger;  // what `sol train` would refuse is no advice
    break;
  }
  if (value < before) a.add_flag(fmt::format("{}{}", flag, value));
}

std::vector<Lower> ways_to_lower(const FrozenModel& model) {
  std::vector<Lower> ways{
      [](Alternative& a, const Fits& fits) {
        if (a.all_processes != a.processes) return;  // the other machines' are not ours to change
        const int before = a.processes;
        while (a.processes > 1 && (a.processes == before || !fits(a)))
          a.all_processes = a.processes = a.processes / 2;
        if (a.processes < before) a.add_flag(fmt::format("--processes {}", a.processes));
      },
      [](Alternative& a, const Fits& fits) {
        halve(a, fits, a.config.batch, a.all_processes, "--set rollout.batch=");
      },
      [](Alternative& a, const Fits& fits) {
        halve(a, fits, a.config.context, std::min(a.config.context, 64), "--set rollout.context=");
      },
      [](Alternative& a, const Fits& fits) {
        halve(a, fits, a.config.target_steps, decltype(a.config.target_steps){1},
              "--set optimisation.target_steps=");
      },
      [](Alternative& a, const Fits& fits) {
        halve(a, fits, a.config.minibatch, std::min(a.config.minibatch, a.config.horizon),
              "--set optimisation.minibatch=");
      }};
  const uint64_t parameters = model.parameter_count();
  if (model.device() == native_device && model.weight_format() == WeightFormat::automatic) {
    // Codes, their scales and float32 norms.
    ways.push_back([parameters](Alternative& a, const Fits&) {
      a.weights = std::min(a.weights, parameters + parameters / 16);
      a.add_flag("--weights int8");
    });
  }
  if (model.precision() == Precision::f32) {
    ways.push_back([parameters](Alternative& a, const Fits&) {
      a.precision = Precision::bf16;
      a.weights = std::min(a.weights, 2 * parameters);
      a.add_flag("--precision bf16");
    });
  }
  return ways;
}

}  // namespace

std::string advice_to_fit(const FrozenModel& model, const TrainingConfig& config,
                          const MachineMemory& machine) {
  const Alternative as_it_is{config,
                             machine.processes,
                             machine.all_processes,
                             machine.deterministic,
                             model.precision(),
                             machine.weights};
  const Fits fits = [&](const Alternative& a) { return needed(model, a) <= machine.available; };
  if (fits(as_it_is)) return "";
  const std::vector<Lower> ways = ways_to_lower(model);
  std::vector<std::string> found;
  const auto offer = [&](const Alternative& a) {
    if (fits(a)) found.push_back(fmt::format("{} ({})", a.flags, format_bytes(needed(model, a))));
  };
  for (const Lower& lower : ways) {
    Alternative a = as_it_is;
    lower(a, fits);
    offer(a);
  }
  for (size_t first = 0; first < ways.size() && found.empty(); ++first)
    for (size_t second = first + 1; second < ways.size(); ++second) {
      Alternative a = as_it_is;
      ways[first](a, fits);
      ways[second](a, fits);
      offer(a);
    }
  if (found.empty()) {
    Alternative least = as_it_is;
    for (const Lower& lower : ways) lower(least, fits);
    const uint64_t need = needed(model, least);
    if (need > machine.available)
      return fmt::format("nothing makes it fit: with {} it would still take {}", least.flags,
                         format_bytes(need));
    found.push_back(fmt::format("{} ({})", least.flags, format_bytes(need)));
  }
  std::string text = "fits with ";
  for (size_t i = 0; i < found.size(); ++i) text += (i > 0 ? ", or " : "") + found[i];
  return text;
}

}  // namespace sol
