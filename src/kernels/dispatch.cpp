// Which table of kernels is in use.
#include <algorithm>

#include "base/fail.h"
#include "kernels/kernels.h"

namespace sol::kernels {

namespace reference {
extern const Kernels table;
}
#ifdef SOL_X86_KERNELS
namespace avx2 {
extern const Kernels table;
}
namespace avx512 {
extern const Kernels table;
}
namespace avx512_vnni {
extern const Kernels table;
}
#endif

const Kernels& kernels_for(Isa isa) {
  for (const Isa supported : supported_isas()) {
    if (supported != isa) continue;
    switch (isa) {
      case Isa::reference:
        return reference::table;
#ifdef SOL_X86_KERNELS
      case Isa::avx2:
        return avx2::table;
      case Isa::avx512:
        return avx512::table;
      case Isa::avx512_vnni:
        return avx512_vnni::table;
#else
      default:
        break;
#endif
    }
  }
  fail("there are no {} kernels on this machine", to_string(isa));
}

const Kernels& kernels() {
  return kernels_for(current_isa());
}

int mark_largest_scratch(int n) {
  constexpr int kVector =
      16;  // keys twice, each with room for a vector to be filled up and one beyond
  return 2 * (n + 2 * kVector);
}

int64_t attend_causal_scratch(int rows, int heads, int tokens, int dim) {
  // What the vector kernels need (isa/attend_causal.cpp), or the reference's one float per token.
  constexpr int64_t kTile = 64, kAlignment = 16, kRowBlock = 8;
  const int64_t padded = (dim + 15) / 16 * 16;
  const int64_t tiled = kTile * (dim + padded + kRowBlock) + kAlignment;
  return std::max<int64_t>(tiled + int64_t{2} * rows * heads, tokens);
}

}  // namespace sol::kernels
