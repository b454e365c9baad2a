// The rows that one forward pass computes: every row is one token of one sequence.
#pragma once

#include <cstdint>
#include <vector>

#include "base/large_memory.h"
#include "engine/decode_attention.h"
#include "engine/kv_cache.h"
#include "engine/stage_clock.h"
#include "sol/frozen_model.h"

namespace sol {

// Consecutive rows of one sequence: a chunk of a dense pass, or a single decoded token.
struct Segment {
  CpuSequence* sequence;
  int first_row;
  int rows;
  int position;   // of the first row, in the cache
  Action action;  // of a decoded token; dense for a chunk
};

struct WantedRow {
  int row;
  OutputRequest out;
};

// Up to 34 MB for a chunk of Llama-3.2-1B.
using Activations = LargeVector<float>;

struct Batch {
  bool decode = false;  // one row per segment, each under its action; else dense chunks
  std::vector<Segment> segments;
  std::vector<Segment> pieces;  // the segments, cut where a cache block ends: no two threads that
                                // take different pieces touch the same page
  std::vector<int32_t> tokens;  // per row
  std::vector<WantedRow> wanted;
  std::vector<StepCost*> costs;  // per segment; null where nobody asks, empty for dense chunks

  int rows() const { return static_cast<int>(tokens.size()); }

  // float32, [rows][width].
  Activations x;         // residual stream [d]
  Activations normed;    // [d]
  Activations q;         // [heads * dim]
  Activations k, v;      // [kv_heads * dim]
  Activations attended;  // [heads * dim]
  Activations update;    // what a block adds to the residual [d]
  Activations gate_up;   // [2 * intermediate]
  Activations inner;     // [intermediate]

  std::vector<int> kept_channels;  // by any row, of the product at hand
  uint64_t skipped_bytes = 0;      // of weights, in the whole pass
  DecodeWork decode_work;          // attention of decoded tokens
  StageClock clock;
};

}  // namespace sol
