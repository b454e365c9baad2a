#include "engine/attention.h"

#include "engine/decode_attention.h"
#include "engine/dense_attention.h"

namespace sol {

void attend(const LlamaConfig& config, int layer, Batch& batch, kernels::MatmulMode mode) {
  if (batch.decode) {
    attend_decoded(config, layer, batch, mode);
  } else {
    attend_chunks(config, layer, batch, mode);
  }
}

}  // namespace sol
