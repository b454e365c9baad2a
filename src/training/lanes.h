// How the inputs of a loader batch are shared among processes, and in which order what they
// contribute is summed.
//
// A batch is cut into lanes: runs of neighbouring inputs, which one process rolls out and computes
// the gradients of. The lanes' gradients are summed in an order that depends on the number of lanes
// alone. Under --deterministic there are as many lanes whatever the number of processes, so their
// sum has the same bits; else there are as many as processes, and every product is as large as can
// be.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sol {

struct Lanes {
  int count = 1;
  int first = 0, own = 1;  // this process has lanes [first, first + own)
  int batch = 1;           // inputs of a loader batch
  int group = 1;           // schedules of an input

  // One process, one lane: everything is its own.
  static Lanes single() { return {}; }
  // Throws Error when `batch` inputs cannot be shared by `processes`, or deterministic lanes not
  // evenly.
  static Lanes share(int batch, int group, bool deterministic, int rank, int processes);

  int of_input(int index) const {  // within its batch
    return static_cast<int>(int64_t{index} * count / batch);
  }
  // Of a schedule by its index in a collection of whole batches.
  int of_schedule(size_t index) const {
    return of_input(static_cast<int>(index / static_cast<size_t>(group)) % batch);
  }
  bool owns(int lane) const { return lane >= first && lane < first + own; }
  bool owns_schedule(size_t index) const { return owns(of_schedule(index)); }
  bool split() const { return count > 1; }
};

}  // namespace sol
