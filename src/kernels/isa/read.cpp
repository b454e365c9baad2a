// Reading memory as fast as possible, for the ceilings of benchmarks.
#include "kernels/isa/functions.h"
#include "kernels/isa/simd.h"

namespace sol::kernels::SOL_ISA_NAME {

// Eight streams, as the product of one row with eight rows of weights has: one stream leaves the
// memory waiting (prefetch.h).
int32_t largest_of(const int32_t* x, int64_t count) {
  constexpr int kStreams = 8;
  constexpr int64_t kAhead = 1024 / sizeof(int32_t);
  const int64_t each = count / kStreams;
  Keys largest[kStreams];
  int32_t least[kWidth];
  for (int32_t& l : least) l = INT32_MIN;
  for (Keys& l : largest) l = load_keys(least);
  for (int64_t i = 0; i < each; i += kWidth) {
    for (int s = 0; s < kStreams; ++s) {
      const int32_t* at = x + s * each + i;
      __builtin_prefetch(at + kAhead);  // may point beyond the end: harmless
      largest[s] = max(largest[s], load_keys(at));
    }
  }
  for (int s = 1; s < kStreams; ++s) largest[0] = max(largest[0], largest[s]);
  int32_t lanes[kWidth];
  store(lanes, largest[0]);
  int32_t result = INT32_MIN;
  for (const int32_t lane : lanes) result = lane > result ? lane : result;
  return result;
}

}  // namespace sol::kernels::SOL_ISA_NAME
