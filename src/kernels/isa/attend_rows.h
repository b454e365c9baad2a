// Decoded tokens over cached keys and values, whatever multiplies them. Pieces are cut into steps
// of at most four tokens. Rows that attend to mostly the same steps are worked in groups, a load of
// keys or values serving all of a group; others go through their own steps one row at a time, where
// the part's keys and values come from the first- or second-level cache for all but the first of
// them.
//
// What multiplies, `A` below, is a type with
//   Stored           what keys and values are stored as
//   Factor           what it multiplies them by: queries, and weights, which scores become in place
//   Queries<R>       of R rows; of(r) is where those of row r are
//   score_four<R>()  scores of R rows with four keys
//   narrow_weights() of one row, kPartTokens of them, from float32 to Factor
//   mix_steps<R>()   adds the weighted values of listed steps to R rows
#pragma once

#include "kernels/isa/math.h"
#include "kernels/isa/send_ahead.h"
#include "kernels/isa/simd.h"

namespace sol::kernels::SOL_ISA_NAME {

// At most four tokens, whose positions lie in one vector.
template <typename T>
struct Step {
  const T* keys;
  const T* values;
  int position, count;
};

// A part's steps. Lists of steps hold their numbers, ascending.
template <typename T>
struct Steps {
  static_assert(kPartTokens <= 256, "step numbers are bytes");
  Step<T> step[kPartTokens];
  uint64_t rows[kPartTokens + 8];
  int count = 0;
};

// The steps of those pieces that any of the wanted rows attends to. They lie at different
// positions.
template <typename T>
inline void cut(const AttendPiece* pieces, int piece_count, uint64_t wanted, int dim,
                Steps<T>& steps) {
  for (const AttendPiece* piece = pieces; piece < pieces + piece_count; ++piece) {
    if (!(piece->rows & wanted)) continue;
    for (int j = 0; j < piece->count;) {
      const int position = piece->position + j;
      const int room = smaller(4, kWidth - position % kWidth);
      const int count = smaller(room, piece->count - j);
      const int64_t at = static_cast<int64_t>(j) * dim;
      steps.step[steps.count] = {static_cast<const T*>(piece->keys) + at,
                                 static_cast<const T*>(piece->values) + at, position, count};
      steps.rows[steps.count++] = piece->rows;
      j += count;
    }
  }
  for (int i = 0; i < 8; ++i) steps.rows[steps.count + i] = 0;  // steps_of looks at eight at once
}

// Bit s % 64 of word s / 64: step s.
struct StepSet {
  uint64_t word[kPartTokens / 64] = {};

  bool operator==(const StepSet& other) const {
    for (int i = 0; i < kPartTokens / 64; ++i)
      if (word[i] != other.word[i]) return false;
    return true;
  }
  int count() const {
    int n = 0;
    for (const uint64_t w : word) n += __builtin_popcountll(w);
    return n;
  }
  void add(const StepSet& other) {
    for (int i = 0; i < kPartTokens / 64; ++i) word[i] |= other.word[i];
  }
  template <typename Body>
  void each(const Body& body) const {
    for (int i = 0; i < kPartTokens / 64; ++i)
      for (uint64_t w = word[i]; w; w &= w - 1) body(i * 64 + __builtin_ctzll(w));
  }
};

template <typename T>
inline StepSet steps_of(const Steps<T>& steps, int row) {
  StepSet set;
  for (int s = 0; s < steps.count; s += 8)
    set.word[s / 64] |= uint64_t{test_eight(steps.rows + s, uint64_t{1} << row)} << (s % 64);
  return set;
}

// Numbers of steps.
struct StepList {
  uint8_t number[kPartTokens];
  int count = 0;
  void add(int s) { number[count++] = static_cast<uint8_t>(s); }
};

// Scores of R rows with the keys of listed steps. `scores` is where position 0 of a row lies.
template <typename A, int R, typename T = typename A::Stored>
inline void score_steps(const typename A::Factor* const (&q)[R], const Steps<T>& steps,
                        const StepList& list, int dim, float* const (&scores)[R],
                        SendAhead& ahead) {
  for (int i = 0; i < list.count; ++i) {
    const Step<T>& step = steps.step[list.number[i]];
    ahead.send(4);
    const T* key[4];
    float* to[R];
    float some[R][4];
    for (int t = 0; t < 4; ++t)
      key[t] = step.keys + static_cast<int64_t>(smaller(t, step.count - 1)) * dim;
    for (int r = 0; r < R; ++r) to[r] = step.count == 4 ? scores[r] + step.position : some[r];
    A::template score_four<R>(q, key, dim, to);
    if (step.count == 4) continue;
    for (int r = 0; r < R; ++r)
      for (int t = 0; t < step.count; ++t) scores[r][step.position + t] = some[r][t];
  }
}

// Bit i of tokens[v]: position 16 v + i is one of those meant.
using Tokens = uint16_t[kPartTokens / kWidth];

// Turns a row's scores into weights: other positions than those of `tokens` get weight 0, and
// vectors without any are left alone.
inline void weigh(float* scores, const Tokens& tokens, float scale, float* largest, float* total) {
  Vec lanes = set(-kInfinity);
  for (int v = 0; v < kPartTokens / kWidth; ++v) {
    if (!tokens[v]) continue;
    float* at = scores + v * kWidth;
    const Vec score = select(lanes_of(tokens[v]), load(at) * set(scale), set(-kInfinity));
    store(at, score);
    lanes = max(score, lanes);
  }
  *largest = reduce_max(lanes);
  // While every score is -infinity there is nothing to be relative to.
  const Vec base = set(*largest == -kInfinity ? 0.0f : *largest);
  Vec sum = zero();
  for (int v = 0; v < kPartTokens / kWidth; ++v) {
    if (!tokens[v]) continue;
    float* at = scores + v * kWidth;
    const Vec weight = weight_exp(load(at) - base);
    store(at, weight);
    sum = sum + weight;
  }
  *total = reduce_add(sum);
}

template <typename T>
inline void add_tokens(const Step<T>& step, Tokens& tokens) {
  const uint32_t bits = ((1u << step.count) - 1u) << (step.position % kWidth);
  tokens[step.position / kWidth] |= static_cast<uint16_t>(bits);
}

// R rows over the union of their shared steps, then each over steps of its own, which lie behind.
template <typename A, int R, typename T = typename A::Stored>
inline void attend_rows(const AttendRow* rows, const StepSet* sets, const Steps<T>& shared,
                        const Steps<T>* own, int dim, float scale, float* scratch,
                        SendAhead& keys_ahead, SendAhead& values_ahead) {
  using Factor = typename A::Factor;
  StepSet all = sets[0];
  for (int r = 1; r < R; ++r) all.add(sets[r]);
  StepList list, own_list[R];
  Tokens of_all = {};
  all.each([&](int s) {
    list.add(s);
    add_tokens(shared.step[s], of_all);
  });
  const typename A::template Queries<R> q(rows, dim);
  float* scores[R];
  float* out[R];
  const Factor* weights[R];
  for (int r = 0; r < R; ++r) {
    out[r] = rows[r].partial;
    scores[r] = scratch + r * kPartTokens;
    weights[r] = reinterpret_cast<const Factor*>(scores[r]);
    for_vectors(dim, [&](int d, auto part) { store(out[r] + d, zero(), part); });
    for (int s = 0; s < own[r].count; ++s) own_list[r].add(s);
  }

  for_groups<kScoreRows>(R, [&]<int G>(int first) {
    const Factor* queries[G];
    float* to[G];
    for (int r = 0; r < G; ++r) {
      queries[r] = q.of(first + r);
      to[r] = scores[first + r];
    }
    score_steps<A, G>(queries, shared, list, dim, to, keys_ahead);
  });
  for (int r = 0; r < R; ++r) {
    const Factor* const query[1] = {q.of(r)};
    float* const to[1] = {scores[r]};
    score_steps<A, 1>(query, own[r], own_list[r], dim, to, keys_ahead);

    Tokens tokens = {};
    if (sets[r] == all)
      __builtin_memcpy(tokens, of_all, sizeof(tokens));
    else
      sets[r].each([&](int s) { add_tokens(shared.step[s], tokens); });
    for (int s = 0; s < own[r].count; ++s) add_tokens(own[r].step[s], tokens);
    // Steps that only others attend to: 0 times their values adds nothing.
    for (int v = 0; v < kPartTokens / kWidth; ++v)
      if (!tokens[v]) store(scores[r] + v * kWidth, zero());
    weigh(scores[r], tokens, scale, out[r] + dim, out[r] + dim + 1);
    A::narrow_weights(scores[r]);
  }
  A::template mix_steps<R>(weights, shared, list, dim, out, values_ahead);
  for (int r = 0; r < R; ++r) {
    const Factor* const weight[1] = {weights[r]};
    float* const to[1] = {out[r]};
    A::template mix_steps<1>(weight, own[r], own_list[r], dim, to, values_ahead);
  }
}

// A row alone costs one unit per step, a group a little more for each further row, whether that row
// attends to the step or not.
template <int R>
inline bool worth_grouping(const StepSet* sets) {
  if (R == 1) return true;
  StepSet all = sets[0];
  int own = sets[0].count();
  for (int r = 1; r < R; ++r) {
    all.add(sets[r]);
    own += sets[r].count();
  }
  return all.count() * (100 + (R - 1) * kFurtherRowCost) <= 100 * own;
}

// As Kernels::attend_part.
template <typename A, typename T = typename A::Stored>
inline void attend_part_by(const AttendRow* rows, int row_count, int dim, const AttendPiece* pieces,
                           int piece_count, int shared_count, const NextPieces& next, float scale,
                           float* scratch) {
  const int row_bytes = dim * static_cast<int>(sizeof(T));
  SendAhead keys_ahead(next, &AttendPiece::keys, row_bytes);
  SendAhead values_ahead(next, &AttendPiece::values, row_bytes);
  Steps<T> shared;
  cut(pieces, shared_count, ~uint64_t{0}, dim, shared);
  for_groups<kMixRows>(row_count, [&]<int R>(int first) {
    StepSet sets[R];
    Steps<T> own[R];
    for (int r = 0; r < R; ++r) {
      sets[r] = steps_of(shared, first + r);
      cut(pieces + shared_count, piece_count - shared_count, uint64_t{1} << (first + r), dim,
          own[r]);
    }
    if (worth_grouping<R>(sets))
      return attend_rows<A, R>(rows + first, sets, shared, own, dim, scale, scratch, keys_ahead,
                               values_ahead);
    for (int r = 0; r < R; ++r)
      attend_rows<A, 1>(rows + first + r, sets + r, shared, own + r, dim, scale, scratch,
                        keys_ahead, values_ahead);
  });
}

}  // namespace sol::kernels::SOL_ISA_NAME
