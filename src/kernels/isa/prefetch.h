// Streams of weights, and sending for them before they are needed. Addresses may lie beyond the
// weights: harmless.
//
// Weights arrive from memory as several streams at once: one alone leaves the memory waiting. Where
// the rows of a stream follow one another in memory, the processor's own prefetching and one look
// ahead suffice. Shares of what reading alone reaches, AMD Zen 5, bf16, two threads: 0.85 to 0.96;
// 0.73 to 0.82 where neighbouring rows were read together and the next ones sent for line by line.
#pragma once

#include "kernels/isa/simd.h"

namespace sol::kernels::SOL_ISA_NAME {

inline constexpr int kSentAhead = 512;  // bytes

inline void send(const void* base, int64_t offset) {
  // As a number: what lies beyond the weights is no place for a pointer.
  const uint64_t at = reinterpret_cast<uint64_t>(base) + static_cast<uint64_t>(offset);
  __builtin_prefetch(reinterpret_cast<const void*>(at));
}

// What comes soon behind place `offset` of the same stream, into the first-level cache.
inline void send_for(const void* stream, int64_t offset = 0) {
  send(stream, offset + kSentAhead);
}

// The same where O streams are read at once: fewer than eight look farther ahead, so that as many
// bytes are on their way.
template <int O>
inline void send_for_one_of(const void* stream) {
  send(stream, 8 * kSentAhead / O);
}

// The beginning of `bytes` that are read next and lie elsewhere, at `offset` from `row`: as much as
// send_for() does not.
inline void send_for_begin(const void* row, int64_t offset, int64_t bytes) {
  for (int64_t at = 0; at < kSentAhead && at < bytes; at += 64) send(row, offset + at);
}

// The same place of another row that is read next, into the second-level cache.
inline void send_for_next_row(const void* at) {
  __builtin_prefetch(at, 0, 2);
}

// Calls body.operator()<O>(first, step) for all outputs in [begin, end), those at first, first +
// step, ... O at a time: O streams of neighbouring rows, then what is left one by one.
template <int O, typename Body>
inline void for_streams(int begin, int end, const Body& body) {
  const int each = (end - begin) / O;
  for (int i = 0; i < each; ++i) body.template operator()<O>(begin + i, each);
  for (int o = begin + O * each; o < end; ++o) body.template operator()<1>(o, 0);
}

}  // namespace sol::kernels::SOL_ISA_NAME
