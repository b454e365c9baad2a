#include "training/lanes.h"

#include <algorithm>
#include <bit>

#include "base/fail.h"

namespace sol {
namespace {

// More would make products smaller for nothing: few runs have more processes than that, and those
// have larger batches than a deterministic run is for.
constexpr int most_deterministic_lanes = 8;

}  // namespace

Lanes Lanes::share(int batch, int group, bool deterministic, int rank, int processes) {
  if (batch < processes)
    fail(
        "rollout.batch = {} inputs cannot be shared by {} processes: set rollout.batch to {} or "
        "more, or start fewer processes",
        batch, processes, processes);
  Lanes out{.batch = batch, .group = group};
  out.count = deterministic ? static_cast<int>(std::bit_floor(
                                  static_cast<unsigned>(std::min(batch, most_deterministic_lanes))))
                            : processes;
  if (out.count % processes != 0)
    fail(
        "--deterministic with rollout.batch = {} sums in {} lanes, which {} processes cannot share "
        "evenly: start {}, or leave --deterministic out",
        batch, out.count, processes,
        out.count == 1 ? std::string("one") : fmt::format("a power of two up to {}", out.count));
  out.own = out.count / processes;
  out.first = rank * out.own;
  return out;
}

}  // namespace sol
