// Attention of one layer over the cache: causal for dense chunks, over selected pages for decoded
// tokens.
#pragma once

#include "engine/batch.h"

namespace sol {

// Fills batch.attended from batch.q; the rows' own keys and values are in the cache already. Adds
// what was attended to and read to batch.costs.
void attend(const LlamaConfig& config, int layer, Batch& batch);

}  // namespace sol
