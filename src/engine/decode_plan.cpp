#include "engine/decode_plan.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <numeric>

#include "engine/batch.h"

namespace sol {
namespace {

using kernels::kPartTokens;

// Cuts a task's part into stretches, block by block: members whose blocks are the same lie in one.
void add_stretches(std::span<const Segment> segments, DecodeTask& task) {
  const CacheLayout& layout = segments[task.segments[0]].sequence->layout();
  const int part_begin = task.part * kPartTokens, part_end = part_begin + kPartTokens;
  const uint64_t everybody = ~uint64_t{0} >> (64 - task.segments.size());
  for (int block = part_begin / layout.tokens; block * layout.tokens < part_end; ++block) {
    const int begin = std::max(part_begin, block * layout.tokens);
    uint64_t left = everybody;
    for (size_t i = 0; i < task.segments.size(); ++i) {
      if (!(left >> i & 1)) continue;
      const CpuSequence& first = *segments[task.segments[i]].sequence;
      const int end = std::min({part_end, (block + 1) * layout.tokens, first.length()});
      left &= ~(uint64_t{1} << i);
      if (begin >= end) continue;
      uint64_t members = uint64_t{1} << i;
      for (size_t k = i + 1; k < task.segments.size(); ++k) {
        const CpuSequence& other = *segments[task.segments[k]].sequence;
        if (other.length() >= end && other.blocks()[block] == first.blocks()[block])
          members |= uint64_t{1} << k;
      }
      // A block that is not full has one owner: it was made its own when the sequence grew.
      assert(std::has_single_bit(members) || end % layout.tokens == 0 || end == part_end);
      left &= ~members;
      auto& all = task.stretches;
      const auto same = std::find_if(all.begin(), all.end(), [&](const SharedStretch& s) {
        return s.members == members && s.end == begin;
      });
      if (same != all.end())
        same->end = end;
      else
        all.push_back({begin, end, members, first.blocks()});
    }
  }
}

// Where the members' ways part: a sequence that once has blocks of its own never shares again, so
// the first stretch that overlaps an earlier one begins where that one does.
int shared_end(const DecodeTask& task) {
  int end = 0;
  for (const SharedStretch& stretch : task.stretches) {
    if (stretch.begin < end) return stretch.begin;
    end = stretch.end;
  }
  return end;
}

}  // namespace

std::vector<DecodeTask> plan_decode(std::span<const Segment> segments, int most) {
  std::vector<DecodeTask> tasks;
  int longest = 0;
  for (const Segment& s : segments) longest = std::max(longest, s.sequence->length());
  // By share of kept tokens: rows that keep similarly many are worked in groups.
  std::vector<int> order(segments.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return segments[a].action.kappa > segments[b].action.kappa;
  });
  struct Entry {
    const std::byte* block;  // that holds the part's first token
    int segment;
  };
  std::vector<Entry> entries;
  for (int part = 0; part * kPartTokens < longest; ++part) {
    entries.clear();
    for (const int i : order) {
      const CpuSequence& sequence = *segments[i].sequence;
      if (part * kPartTokens >= sequence.length()) continue;
      entries.push_back({sequence.blocks()[part * kPartTokens / sequence.layout().tokens], i});
    }
    // By first appearance, so that the plan does not depend on addresses.
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].segment < 0) continue;
      DecodeTask* task = nullptr;
      for (size_t k = i; k < entries.size(); ++k) {
        if (entries[k].segment < 0 || entries[k].block != entries[i].block) continue;
        if (!task || static_cast<int>(task->segments.size()) == most) {
          task = &tasks.emplace_back();
          task->part = part;
        }
        task->segments.push_back(entries[k].segment);
        if (k != i) entries[k].segment = -1;
      }
    }
  }
  for (DecodeTask& task : tasks) {
    add_stretches(segments, task);
    task.shared_end = shared_end(task);
  }
  return tasks;
}

}  // namespace sol
