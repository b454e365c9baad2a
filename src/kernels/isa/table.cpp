#include "kernels/isa/functions.h"

namespace sol::kernels::SOL_ISA_NAME {

extern const Kernels table;
const Kernels table = {
    .isa = Isa::SOL_ISA_NAME,
    .matvec_out_major = matvec_out_major,
    .matmul_out_major = matmul_out_major,
    .matmul_in_major = matmul_in_major,
    .quantise_row = quantise_row,
    .integer_out_major = integer_out_major,
    .integer_in_major = integer_in_major,
    .widen_row = widen_row,
    .widen_summands = widen_summands,
    .compress_row = compress_row,
    .rms_norm = rms_norm,
    .rotary = rotary,
    .silu_mul = silu_mul,
    .add = add,
    .fake_quantise = fake_quantise,
    .store = store_elements,
    .load = load_elements,
    .page_extrema = page_extrema,
    .page_moments = page_moments,
    .page_scores = page_scores,
    .mark_largest = mark_largest,
    .attend_part = attend_part,
    .merge_parts = merge_parts,
    .attend_causal = attend_causal,
    .softmax_step = softmax_step,
    .log_sum_exp = log_sum_exp,
    .layer_norm = layer_norm,
    .gelu = gelu,
    .largest_of = largest_of,
};

}  // namespace sol::kernels::SOL_ISA_NAME
