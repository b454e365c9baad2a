// Sending for the next part's keys or values while the present ones are worked on.
#pragma once

#include "kernels/isa/simd.h"

namespace sol::kernels::SOL_ISA_NAME {

// Sends for them piece after piece, into the second-level cache. Pieces are short and far apart,
// where the processor's own prefetching starts anew each time.
class SendAhead {
 public:
  SendAhead(const NextPieces& next, const void* AttendPiece::*what, int row_bytes)
      : piece_(next.pieces),
        end_(next.pieces + next.count),
        what_(what),
        row_bytes_(static_cast<uint64_t>(row_bytes)) {
    enter();
  }

  // The next `tokens` rows.
  void send(int tokens) {
    int lines = static_cast<int>(tokens * row_bytes_ / kLine);
    while (piece_ != end_) {
      const int here = smaller(lines, lines_left_);
      lines -= here;
      lines_left_ -= here;
      int i = 0;
      // Without a test for each line, which costs as much as the line's share of the arithmetic.
      for (; i + 4 <= here; i += 4, at_ += 4 * kLine) {
        send_line(at_);
        send_line(at_ + kLine);
        send_line(at_ + 2 * kLine);
        send_line(at_ + 3 * kLine);
      }
      for (; i < here; ++i, at_ += kLine) send_line(at_);
      if (lines_left_ > 0) return;
      ++piece_;
      enter();
    }
  }

 private:
  static constexpr uint64_t kLine = 64;

  static void send_line(uint64_t at) {
    __builtin_prefetch(reinterpret_cast<const void*>(at), 0, 2);
  }

  void enter() {
    if (piece_ == end_) return;
    at_ = reinterpret_cast<uint64_t>(piece_->*what_);
    const uint64_t bytes = static_cast<uint64_t>(piece_->count) * row_bytes_;
    lines_left_ = static_cast<int>((bytes + kLine - 1) / kLine);
  }

  const AttendPiece* piece_;
  const AttendPiece* end_;
  const void* AttendPiece::*what_;
  uint64_t row_bytes_;
  uint64_t at_ = 0;
  int lines_left_ = 0;
};

}  // namespace sol::kernels::SOL_ISA_NAME
