#include "kernels/select.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace sol::kernels {
namespace {

// Selection runs on every layer and head of every step: its memory is kept by its thread.
int32_t* scratch(int n) {
  thread_local std::vector<int32_t> memory;
  const size_t size = static_cast<size_t>(mark_largest_scratch(n));
  if (memory.size() < size) memory.resize(size);
  return memory.data();
}

int sinks_end(const PageRule& rule, int n) {
  return rule.force_sinks ? std::min(rule.sinks, n) : 0;
}
int window_begin(const PageRule& rule, int n) {
  return rule.force_sinks ? std::max(0, n - (rule.window + 1)) : n;
}

void mark_range(int begin, int end, uint64_t* marks) {
  for (int p = begin; p < end; ++p) marks[p / 64] |= uint64_t{1} << (p % 64);
}

void append(std::vector<RowRun>& out, int begin, int end, uint64_t rows) {
  if (!rows) return;
  if (!out.empty() && out.back().end == begin && out.back().rows == rows)
    out.back().end = end;
  else
    out.push_back({begin, end, rows});
}

template <typename Body>
void for_bits(uint64_t bits, const Body& body) {
  for (; bits; bits &= bits - 1) body(std::countr_zero(bits));
}

}  // namespace

int keep_count(float share, int n) {
  const float product = std::ceil(share * static_cast<float>(n));
  if (!(product > 1)) return 1;
  return product >= static_cast<float>(n) ? n : static_cast<int>(product);
}

void top_channels(const float* x, int n, int keep, std::vector<int>& out) {
  assert(keep >= 1 && keep <= n);
  thread_local std::vector<uint64_t> marks;
  marks.resize(static_cast<size_t>((n + 63) / 64));
  kernels().mark_largest(x, n, keep, true, false, marks.data(), scratch(n));
  out.resize(static_cast<size_t>(keep));
  int* next = out.data();
  for (size_t w = 0; w < marks.size(); ++w)
    for_bits(marks[w], [&](int bit) { *next++ = static_cast<int>(w) * 64 + bit; });
}

void select_pages(const float* score, int n, int keep, const PageRule& rule, uint64_t* marks) {
  const int pages = page_count(n, rule.page_size);
  assert(keep >= 1 && keep <= pages);
  kernels().mark_largest(score, pages, keep, false, !rule.force_sinks, marks, scratch(pages));
  if (!rule.force_sinks) return;
  // Pages that are forced in part are row_runs' business.
  mark_range(0, sinks_end(rule, n) / rule.page_size, marks);
  mark_range(page_count(window_begin(rule, n), rule.page_size), pages, marks);
}

void row_runs(std::span<const RowPages> rows, uint64_t members, const PageRule& rule, int begin,
              int end, std::vector<RowRun>& out) {
  bool all = true;
  for_bits(members, [&](int r) { all = all && !rows[r].marks; });
  if (all) return append(out, begin, end, members);

  const int size = rule.page_size;
  const int first_page = begin / size, last_page = (end - 1) / size;
  struct Member {
    int row;
    uint64_t pages;  // of the word at hand
  };
  Member member[kPartRows];
  int count = 0;
  for_bits(members, [&](int r) { member[count++] = {r, 0}; });
  for (int word = first_page / 64; word <= last_page / 64; ++word) {
    // Pages of this word that somebody marked, and those that a forced stretch of tokens cuts.
    uint64_t wanted = 0, cut = 0;
    const auto cut_at = [&](int token) {
      if (token % size != 0 && token / size / 64 == word) cut |= uint64_t{1} << (token / size % 64);
    };
    for (int m = 0; m < count; ++m) {
      const RowPages& row = rows[member[m].row];
      member[m].pages = row.marks ? row.marks[word] : ~uint64_t{0};
      wanted |= member[m].pages;
      if (!row.marks || !rule.force_sinks) continue;
      cut_at(sinks_end(rule, row.n));
      cut_at(window_begin(rule, row.n));
    }
    wanted |= cut;
    // Only pages of [begin, end): this word's from here to there.
    const int from_bit = std::max(0, first_page - word * 64);
    const int to_bit = std::min(63, last_page - word * 64);
    wanted &= (~uint64_t{0} << from_bit) & (~uint64_t{0} >> (63 - to_bit));
    for_bits(wanted, [&](int bit) {
      const int page = word * 64 + bit;
      const int from = std::max(begin, page * size), to = std::min(end, (page + 1) * size);
      uint64_t who = 0;
      for (int m = 0; m < count; ++m) who |= (member[m].pages >> bit & 1) << member[m].row;
      if (!(cut >> bit & 1)) return append(out, from, to, who);
      for (int j = from; j < to; ++j) {
        uint64_t here = who;
        for_bits(members & ~who, [&](int r) {
          const bool forced = j < sinks_end(rule, rows[r].n) || j >= window_begin(rule, rows[r].n);
          here |= uint64_t{forced} << r;
        });
        append(out, j, j + 1, here);
      }
    });
  }
}

}  // namespace sol::kernels
