// Processes that train one controller together. All calls are collective: every rank makes the same
// calls in the same order and waits for the others.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "training/rank_environment.h"

namespace sol {

class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Every rank's bytes, in the order of ranks. They may differ in length.
  virtual std::vector<std::string> all_gather(std::string_view mine) = 0;

  // Replaces `values`, equally many on every rank, by their sum over the ranks, the same bits on
  // all of them. The order of summation is fixed by the number of ranks: the first half's sum plus
  // the second half's, and so on within the halves.
  virtual void sum(std::span<float> values) = 0;

  // Copies rank 0's values or text to every rank.
  virtual void broadcast(std::span<float> values) = 0;
  virtual void broadcast(std::string& text) = 0;

  // Requested when another rank has failed or is gone; the next call throws what happened.
  virtual std::stop_token failure() const = 0;

  bool leads() const { return rank() == 0; }
  // Whether `mine` holds on any rank.
  bool any(bool mine);
};

// The order of every sum over ranks and over lanes (training/lanes.h): the first half of the parts,
// then the rest, each summed likewise. Within halves of a power of two it does not matter for the
// result how many of the parts one rank had.
template <typename Part, typename Add>
auto sum_by_halves(int first, int count, const Part& part, const Add& add) {
  if (count == 1) return part(first);
  auto left = sum_by_halves(first, count / 2, part, add);
  add(left, sum_by_halves(first + count / 2, count - count / 2, part, add));
  return left;
}

// A group of one, whose calls return at once.
std::unique_ptr<ProcessGroup> alone();

struct GroupOptions {
  double connect_seconds = 300;  // for all processes to appear
  double silence_seconds = 30;   // after so long without a sign of life a rank counts as gone
};

// Meets the other processes at the environment's address and port, over TCP, by LibTorch's c10d
// with Gloo; rank 0 or its launcher listens. The network interface is the one that
// GLOO_SOCKET_IFNAME names, else loopback where the address is this machine's, else the one of the
// machine's name. From then on each process gives a sign of life every second
// (training/liveness.h): when one reports a failure, is found gone by a call that waits for it, or
// has been silent for `silence_seconds`, failure() is requested on every other one within about a
// second, and calls throw Error saying which and why. Throws Error when the others do not appear in
// time or the port is taken.
class ConnectedGroup : public ProcessGroup {
 public:
  // Tells the others why this process ends, so that they can say so; waits until they know or, at
  // most, two seconds.
  virtual void report_failure(const std::string& why) noexcept = 0;
};
std::unique_ptr<ConnectedGroup> connect_processes(const RankEnvironment& environment,
                                                  const GroupOptions& options = {});

}  // namespace sol
