// Token ids of the training text, and the windows that training cuts from them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine.h"
#include "text/block_dataset.h"

namespace sol::pretrain {

// Windows of one length in the order that training visits them: each epoch cuts the text anew, at
// another offset, and shuffles. Which window stands at a position is a function of (seed, length,
// position), so a resumed run needs the position only.
class WindowOrder {
 public:
  // Throws Error when the text is shorter than two windows. `ids` must outlive this.
  WindowOrder(std::span<const int32_t> ids, int window, uint64_t seed);

  std::span<const int32_t> window(int64_t position);  // window + 1 ids
  Batch batch(int64_t position, int64_t windows);     // valid until the next call
  int64_t per_epoch() const { return per_epoch_; }

 private:
  std::span<const int32_t> ids_;
  int window_;
  uint64_t seed_;
  int64_t per_epoch_;
  int64_t epoch_ = -1;
  int64_t offset_ = 0;
  std::vector<int64_t> order_;
  std::vector<int32_t> batch_;
};

}  // namespace sol::pretrain
