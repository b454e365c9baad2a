// Attention of decoded tokens: which pages each query head keeps, then the kept tokens part by
// part, shared blocks once for all who keep them.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/decode_plan.h"
#include "kernels/matmul.h"
#include "sol/config.h"

namespace sol {

struct Batch;

// What one decode step needs from layer to layer; the memory is kept between steps.
struct DecodeWork {
  std::vector<DecodeTask> tasks;

  // Per segment. Offsets count elements of the arrays below.
  struct Place {
    int budget;  // keys that κ allows; the sequence's length where it allows all
    int pages, parts;
    int64_t scores;    // [heads][pages], only where the budget binds
    int64_t marks;     // [heads][page_words(pages)], likewise
    int64_t partials;  // [heads][parts][partial_stride]
  };
  std::vector<Place> places;
  std::vector<int> sparse;  // segments whose budget binds
  int64_t partial_stride = 0;

  std::vector<float> scores, partials;
  std::vector<uint64_t> marks;

  // Tokens that a segment attends to in a task and key head: summed over its query heads, and those
  // that any of them needs.
  struct Count {
    int64_t attended, needed;
  };
  std::vector<Count> counts;         // [kv_heads][sets of heads][segments of all tasks]
  std::vector<int64_t> first_count;  // per task, within a key head
};

// Once per step, when the sequences have grown by their new token.
void prepare_decode(const LlamaConfig& config, Batch& batch);

// One layer: batch.attended from batch.q; adds to batch.costs what was attended to and read. With
// MatmulMode::library what multiplies BF16 is used where the processor has it
// (kernels/attention_bf16.h), and many forks of one prefix attend to it through BF16 products; the
// other modes keep one order of summation.
void attend_decoded(const LlamaConfig& config, int layer, Batch& batch, kernels::MatmulMode mode);

}  // namespace sol
