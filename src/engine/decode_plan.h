// How the attention of a batch of decoded tokens is cut into tasks: sequences that hold the same
// cache blocks are worked together, so that a block is read once for all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sol {

struct Segment;

// Tokens [begin, end) in blocks that the members share; bit i is the task's i-th segment.
struct SharedStretch {
  int begin, end;
  uint64_t members;
  const std::byte* const* blocks;  // a member's table, by block number
};

// One part (kernels::kPartTokens positions) of some sequences, the same in every layer and head.
struct DecodeTask {
  int part;
  std::vector<int> segments;             // of the batch
  std::vector<SharedStretch> stretches;  // ascending by their begin
  int shared_end = 0;  // up to here they do not overlap; behind, different members' do
};

// The tasks of a batch, ascending by part. Every segment takes part in each of its parts once;
// segments whose blocks are the same where the part begins share a task, `most` at a time, those
// with the largest κ first.
std::vector<DecodeTask> plan_decode(std::span<const Segment> segments, int most);

}  // namespace sol
