// Exact sums of products of 4-bit codes with whole numbers of 16 bits, four groups of 32 codes at a
// time:
//   NibbleInputs   128 inputs, arranged for
//   products       their products with a row's codes: lane 4 g + j has inputs 4 j .. 4 j + 3 and
//                  16 + 4 j .. of group g.
// And for rows of channels, kStepChannels of them together, by halves of what four groups give:
//   NibbleFactors  each channel's factor for every group, stored 16 groups at a time (set_step);
//                  then the sum over channels (set_total)
//   load_step      codes of the channels of one step
//   HalfSums       sums of four vectors of outputs; place(o) is where output o of the four groups
//                  lies among those of the first half, then those of the second.
#pragma once

#include "kernels/isa/compressed_row.h"

#if defined(__AVX512VNNI__) && defined(__AVX512VBMI__)
#include "kernels/isa/nibbles_bytes.h"
#else
#include "kernels/isa/nibbles_words.h"
#endif
