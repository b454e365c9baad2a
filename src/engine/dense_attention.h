// Causal attention of dense chunks over the cache.
#pragma once

#include "engine/batch.h"
#include "kernels/matmul.h"

namespace sol {

// One layer: batch.attended from batch.q. With MatmulMode::library and a BF16 cache queries and
// weights are rounded to BF16 where the processor multiplies it.
void attend_chunks(const LlamaConfig& config, int layer, Batch& batch, kernels::MatmulMode mode);

}  // namespace sol
