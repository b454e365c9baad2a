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
    uint64_t left = static_cast<uint64_t>(tokens) * row_bytes_;
    while (piece_ != end_) {
      for (; at_ < stop_; at_ += kLine) {
        if (left < kLine) return;
        left -= kLine;
        __builtin_prefetch(reinterpret_cast<const void*>(at_), 0, 2);
      }
      ++piece_;
      enter();
    }
  }

 private:
  static constexpr uint64_t kLine = 64;

  void enter() {
    if (piece_ == end_) return;
    at_ = reinterpret_cast<uint64_t>(piece_->*what_);
    stop_ = at_ + static_cast<uint64_t>(piece_->count) * row_bytes_;
  }

  const AttendPiece* piece_;
  const AttendPiece* end_;
  const void* AttendPiece::*what_;
  uint64_t row_bytes_;
  uint64_t at_ = 0, stop_ = 0;
};

}  // namespace sol::kernels::SOL_ISA_NAME
