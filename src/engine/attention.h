// Attention of one layer over the cache: causal for dense chunks, over selected pages for decoded
// tokens.
#pragma once

#include "engine/batch.h"
#include "kernels/matmul.h"

namespace sol {

// Fills batch.attended from batch.q; the rows' own keys and values are in the cache already. Adds
// what was attended to and read to batch.costs. `mode` as for products: only the library may round
// to BF16 what dense chunks multiply.
void attend(const LlamaConfig& config, int layer, Batch& batch, kernels::MatmulMode mode);

}  // namespace sol
