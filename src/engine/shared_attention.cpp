#include "engine/shared_attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/tile_dnnl.h"

namespace sol {
namespace {

using kernels::AttendPiece;
using kernels::AttendRow;
using kernels::kPartTokens;

struct Memory {
  std::vector<bf16> q, keys, values;
  std::vector<float> scores, out, largest, total;
};

// The pieces' vectors one after the other, then zeros up to `room`.
void gather(std::span<const AttendPiece> pieces, const void* AttendPiece::*from, int dim, int room,
            bf16* to) {
  bf16* const end = to + int64_t{room} * dim;
  for (const AttendPiece& piece : pieces) {
    const int64_t n = int64_t{piece.count} * dim;
    std::memcpy(to, piece.*from, sizeof(bf16) * static_cast<size_t>(n));
    to += n;
  }
  std::fill(to, end, bf16{0});
}

// Takes out of each row's scores what it does not attend to.
void mask(std::span<const AttendPiece> pieces, int rows, float* scores) {
  const uint64_t everybody = ~uint64_t{0} >> (64 - rows);
  int column = 0;
  for (const AttendPiece& piece : pieces) {
    for (uint64_t others = everybody & ~piece.rows; others; others &= others - 1) {
      float* at = scores + std::countr_zero(others) * kPartTokens + column;
      std::fill(at, at + piece.count, -INFINITY);
    }
    column += piece.count;
  }
}

}  // namespace

bool worth_products(std::span<const AttendRow> rows, std::span<const AttendPiece> pieces,
                    kernels::ElementType type, kernels::MatmulMode mode) {
  // As measured with bench/forks_bench: fewer do not pay for gathering keys and values.
  constexpr size_t least_rows = 16;
  constexpr int least_tokens = 64, least_percent = 25;
  if (mode != kernels::MatmulMode::library || type != kernels::ElementType::bf16 ||
      rows.size() < least_rows || !kernels::have_tile_products())
    return false;
  int64_t tokens = 0, attended = 0;
  for (const AttendPiece& piece : pieces) {
    tokens += piece.count;
    attended += int64_t{piece.count} * std::popcount(piece.rows);
  }
  return tokens >= least_tokens &&
         100 * attended >= least_percent * tokens * static_cast<int64_t>(rows.size());
}

void attend_shared(std::span<const AttendRow> rows, std::span<const AttendPiece> pieces, int dim,
                   float scale) {
  thread_local Memory m;
  const auto& k = kernels::kernels();
  const int n = static_cast<int>(rows.size());
  int tokens = 0;
  for (const AttendPiece& piece : pieces) tokens += piece.count;
  const int room = (tokens + 63) / 64 * 64;  // few shapes, each compiled once

  m.q.resize(rows.size() * static_cast<size_t>(dim));
  m.keys.resize(static_cast<size_t>(kPartTokens) * dim);
  m.values.resize(static_cast<size_t>(kPartTokens) * dim);
  m.scores.resize(rows.size() * kPartTokens);
  m.out.assign(rows.size() * static_cast<size_t>(dim), 0.0f);
  m.largest.assign(rows.size(), -INFINITY);
  m.total.assign(rows.size(), 0.0f);
  for (size_t r = 0; r < rows.size(); ++r)
    k.store(rows[r].q, dim, kernels::ElementType::bf16, &m.q[r * static_cast<size_t>(dim)]);
  gather(pieces, &AttendPiece::keys, dim, room, m.keys.data());
  gather(pieces, &AttendPiece::values, dim, room, m.values.data());

  kernels::tile_product({n, dim, room, dim, kernels::Layout::out_major, kPartTokens, false},
                        m.q.data(), m.keys.data(), m.scores.data());
  mask(pieces, n, m.scores.data());
  k.softmax_step(m.scores.data(), kPartTokens, n, room, tokens, n, scale, m.largest.data(),
                 m.total.data(), m.out.data(), dim);
  kernels::tile_product({n, room, dim, 2 * kPartTokens, kernels::Layout::in_major, dim, true},
                        reinterpret_cast<const bf16*>(m.scores.data()), m.values.data(),
                        m.out.data());
  for (size_t r = 0; r < rows.size(); ++r) {
    const float* from = &m.out[r * static_cast<size_t>(dim)];
    std::copy(from, from + dim, rows[r].partial);
    rows[r].partial[dim] = m.largest[r];
    rows[r].partial[dim + 1] = m.total[r];
  }
}

}  // namespace sol
