#include "kernels/select.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <functional>

namespace sol::kernels {
namespace {

// The keep-th largest of keys (1-based), which are reordered.
template <typename Key>
Key kth_largest(std::vector<Key>& keys, int keep) {
  std::nth_element(keys.begin(), keys.begin() + (keep - 1), keys.end(), std::greater<>());
  return keys[keep - 1];
}

// Ascending indices of all keys above the threshold and of the first ones equal to it, `keep` in
// all.
template <typename KeyAt>
void take(int n, int keep, uint32_t threshold, const KeyAt& key_at, std::vector<int>& out) {
  int above = 0;
  for (int i = 0; i < n; ++i) above += key_at(i) > threshold;
  int ties = keep - above;
  out.resize(keep);
  int* next = out.data();
  for (int i = 0; i < n; ++i) {
    const uint32_t key = key_at(i);
    if (key > threshold || (key == threshold && ties-- > 0)) *next++ = i;
  }
}

// Unsigned integers that order as |x| does; a NaN orders above infinity.
uint32_t magnitude_key(float x) {
  return std::bit_cast<uint32_t>(x) & 0x7fffffffu;
}

// Unsigned integers that order as floats do, with -0 equal to +0 and every NaN lowest: a page whose
// score is not a number is the last to be kept.
uint32_t score_key(float x) {
  if (std::isnan(x)) return 0;
  const uint32_t u = std::bit_cast<uint32_t>(x == 0 ? 0.0f : x);
  return u & 0x80000000u ? ~u : u | 0x80000000u;
}

// The keep-th largest key. Its buffer is kept by the thread: selection runs on every layer and head
// of every step.
template <typename KeyOf>
uint32_t threshold_of(const float* x, int n, int keep, const KeyOf& key_of) {
  thread_local std::vector<uint32_t> keys;
  keys.resize(n);
  for (int i = 0; i < n; ++i) keys[i] = key_of(x[i]);
  return kth_largest(keys, keep);
}

}  // namespace

int keep_count(float share, int n) {
  const float product = std::ceil(share * static_cast<float>(n));
  if (!(product > 1)) return 1;
  return product >= static_cast<float>(n) ? n : static_cast<int>(product);
}

void top_channels(const float* x, int n, int keep, std::vector<int>& out) {
  assert(keep >= 1 && keep <= n);
  const uint32_t threshold = threshold_of(x, n, keep, magnitude_key);
  take(
      n, keep, threshold, [&](int i) { return magnitude_key(x[i]); }, out);
}

void top_pages(const float* score, int n, int keep, bool keep_ties, std::vector<int>& out) {
  assert(keep >= 1 && keep <= n);
  const uint32_t threshold = threshold_of(score, n, keep, score_key);
  if (keep_ties) {
    keep = 0;
    for (int i = 0; i < n; ++i) keep += score_key(score[i]) >= threshold;
  }
  take(
      n, keep, threshold, [&](int i) { return score_key(score[i]); }, out);
}

void token_ranges(std::span<const int> pages, int n, const PageRule& rule,
                  std::vector<TokenRange>& out) {
  out.clear();
  // Ranges arrive with ascending begins, so each either extends the last one or follows it.
  const auto add = [&](int begin, int end) {
    if (begin >= end) return;
    if (!out.empty() && begin <= out.back().end)
      out.back().end = std::max(out.back().end, end);
    else
      out.push_back({begin, end});
  };
  const int window_begin = std::max(0, n - (rule.window + 1));
  if (rule.force_sinks) add(0, std::min(rule.sinks, n));
  bool window_added = !rule.force_sinks;
  for (const int page : pages) {
    const int begin = page * rule.page_size;
    if (!window_added && begin >= window_begin) {
      add(window_begin, n);
      window_added = true;
    }
    add(begin, std::min(begin + rule.page_size, n));
  }
  if (!window_added) add(window_begin, n);
}

}  // namespace sol::kernels
