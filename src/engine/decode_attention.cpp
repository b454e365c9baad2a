#include "engine/decode_attention.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/threads.h"
#include "engine/batch.h"
#include "engine/shared_attention.h"
#include "kernels/attention_bf16.h"
#include "kernels/select.h"

namespace sol {
namespace {

using kernels::AttendPiece;
using kernels::AttendRow;
using kernels::kPartRows;
using kernels::kPartTokens;
using kernels::PageRule;
using kernels::RowPages;
using kernels::RowRun;

PageRule rule_of(const CpuSequence& sequence) {
  const SequenceOptions& o = sequence.options();
  return {o.page_size, o.sinks, o.window, o.force_sinks};
}

// Query heads of one key head that are worked together: all of them, unless they are very many.
int heads_per_task(const LlamaConfig& config) {
  return std::min(config.group(), kPartRows);
}
int head_sets(const LlamaConfig& config) {
  return (config.group() + kPartRows - 1) / kPartRows;
}

const float* query(const LlamaConfig& config, const Batch& batch, int segment, int head) {
  const int64_t row = batch.segments[segment].first_row;
  return &batch.q[static_cast<size_t>((row * config.num_heads + head) * config.head_dim)];
}

// --- Which pages (paper, appendix "Quest masking"; docs/arithmetic.md) ---

void score_pages(const LlamaConfig& config, int layer, int kv_head, int segment, int first,
                 int count, Batch& batch, kernels::MatmulMode mode) {
  DecodeWork& work = batch.decode_work;
  const DecodeWork::Place& place = work.places[segment];
  const CpuSequence& sequence = *batch.segments[segment].sequence;
  const int head = kv_head * config.group();
  const float* q = query(config, batch, segment, head);
  const kernels::PagesView pages = sequence.pages(layer, kv_head);
  float* to = &work.scores[place.scores + int64_t{head} * place.pages];
  const auto unit = kernels::attention_unit(pages.type, config.head_dim, mode);
  if (unit &&
      kernels::bf16_page_scores(*unit, q, config.group(), pages, first, count, to, place.pages))
    return;
  kernels::kernels().page_scores(q, config.group(), pages, first, count, to, place.pages);
}

void mark_pages(int head, int segment, Batch& batch) {
  DecodeWork& work = batch.decode_work;
  const DecodeWork::Place& place = work.places[segment];
  const CpuSequence& sequence = *batch.segments[segment].sequence;
  const PageRule rule = rule_of(sequence);
  const int keep = kernels::page_count(place.budget, rule.page_size);
  kernels::select_pages(
      &work.scores[place.scores + int64_t{head} * place.pages], sequence.length(), keep, rule,
      &work.marks[place.marks + int64_t{head} * kernels::page_words(place.pages)]);
}

void select_pages(const LlamaConfig& config, int layer, Batch& batch, kernels::MatmulMode mode) {
  const std::vector<int>& sparse = batch.decode_work.sparse;
  const int64_t count = static_cast<int64_t>(sparse.size());
  if (count * config.num_kv_heads >= thread_count()) {
    parallel_for(count * config.num_kv_heads, [&](int64_t i) {
      const int kv_head = static_cast<int>(i / count), segment = sparse[i % count];
      score_pages(config, layer, kv_head, segment, 0, batch.decode_work.places[segment].pages,
                  batch, mode);
      for (int g = 0; g < config.group(); ++g)
        mark_pages(kv_head * config.group() + g, segment, batch);
    });
    return;
  }
  // Fewer key heads than threads: pages are split as well.
  constexpr int step = 512;
  struct Piece {
    int kv_head, segment, first;
  };
  std::vector<Piece> pieces;
  for (int kv_head = 0; kv_head < config.num_kv_heads; ++kv_head)
    for (const int segment : sparse)
      for (int first = 0; first < batch.decode_work.places[segment].pages; first += step)
        pieces.push_back({kv_head, segment, first});
  parallel_for(static_cast<int64_t>(pieces.size()), [&](int64_t i) {
    const auto [kv_head, segment, first] = pieces[i];
    score_pages(config, layer, kv_head, segment, first,
                std::min(step, batch.decode_work.places[segment].pages - first), batch, mode);
  });
  parallel_for(count * config.num_heads, [&](int64_t i) {
    mark_pages(static_cast<int>(i / count), sparse[i % count], batch);
  });
}

// --- The kept tokens ---

// What a thread needs to describe one task to the kernel, kept between calls.
struct TaskMemory {
  std::vector<AttendRow> rows;
  std::vector<RowPages> pages;
  std::vector<RowRun> runs;
  std::vector<AttendPiece> pieces;
  size_t shared = 0;  // pieces
  kernels::ElementType type = kernels::ElementType::f32;
};

// The task's rows: head after head, within a head segment after segment. Neighbours are worked in
// groups, and what sequences keep for one head is more alike than what one keeps for its heads.
void list_rows(const LlamaConfig& config, const DecodeTask& task, int first_head, int heads,
               Batch& batch, TaskMemory& m) {
  DecodeWork& work = batch.decode_work;
  m.rows.clear();
  m.pages.clear();
  for (int head = first_head; head < first_head + heads; ++head) {
    for (const int s : task.segments) {
      const DecodeWork::Place& place = work.places[s];
      const int n = batch.segments[s].sequence->length();
      const int64_t words = kernels::page_words(place.pages);
      const int64_t at =
          place.partials + (int64_t{head} * place.parts + task.part) * work.partial_stride;
      m.rows.push_back({query(config, batch, s, head), &work.partials[static_cast<size_t>(at)]});
      m.pages.push_back({place.budget < n ? &work.marks[place.marks + head * words] : nullptr, n});
    }
  }
}

// Bits of members as bits of their rows.
uint64_t rows_of(uint64_t members, size_t segments, int heads) {
  uint64_t rows = 0;
  for (int h = 0; h < heads; ++h) rows |= members << (static_cast<size_t>(h) * segments);
  return rows;
}

// Cuts a run at the boundaries of blocks.
void append_pieces(const CacheLayout& layout, int layer, int kv_head, const SharedStretch& stretch,
                   const RowRun& run, int part_begin, std::vector<AttendPiece>& pieces) {
  const int64_t row_bytes = static_cast<int64_t>(layout.dim) * kernels::size_of(layout.type);
  for (int j = run.begin; j < run.end;) {
    const int slot = j % layout.tokens;
    const int count = std::min(run.end - j, layout.tokens - slot);
    const std::byte* block = stretch.blocks[j / layout.tokens] + slot * row_bytes;
    pieces.push_back({block + layout.keys_offset(layer, kv_head),
                      block + layout.values_offset(layer, kv_head), j - part_begin, count,
                      run.rows});
    j += count;
  }
}

void count_run(const RowRun& run, size_t segments, int heads, DecodeWork::Count* counts) {
  const uint64_t first = rows_of(1, segments, heads);
  for (size_t i = 0; i < segments; ++i) {
    const uint64_t who = run.rows >> i & first;
    counts[i].attended += int64_t{std::popcount(who)} * (run.end - run.begin);
    counts[i].needed += who ? run.end - run.begin : 0;
  }
}

// One task of one key head; very large groups of query heads are worked in several sets.
struct Unit {
  int kv_head, head_set;
  int64_t task;
};

Unit unit_at(const LlamaConfig& config, const DecodeWork& work, int64_t index) {
  const int64_t count = static_cast<int64_t>(work.tasks.size()), sets = head_sets(config);
  // Key head by key head: threads work on memory that is far apart.
  return {static_cast<int>(index / count / sets), static_cast<int>(index / count % sets),
          index % count};
}

void describe(const LlamaConfig& config, int layer, const Unit& unit, Batch& batch, TaskMemory& m) {
  DecodeWork& work = batch.decode_work;
  const DecodeTask& task = work.tasks[unit.task];
  const int first_in_group = unit.head_set * kPartRows;
  const int heads = std::min(kPartRows, config.group() - first_in_group);
  const int64_t set = int64_t{unit.kv_head} * head_sets(config) + unit.head_set;
  DecodeWork::Count* counts =
      &work.counts[set * work.first_count.back() + work.first_count[unit.task]];
  list_rows(config, task, unit.kv_head * config.group() + first_in_group, heads, batch, m);
  const CpuSequence& first = *batch.segments[task.segments[0]].sequence;
  const PageRule rule = rule_of(first);
  m.type = first.layout().type;
  m.pieces.clear();
  m.shared = 0;
  for (const SharedStretch& stretch : task.stretches) {
    m.runs.clear();
    kernels::row_runs(m.pages, rows_of(stretch.members, task.segments.size(), heads), rule,
                      stretch.begin, stretch.end, m.runs);
    for (const RowRun& run : m.runs) {
      append_pieces(first.layout(), layer, unit.kv_head, stretch, run, task.part * kPartTokens,
                    m.pieces);
      count_run(run, task.segments.size(), heads, counts);
    }
    if (stretch.end <= task.shared_end) m.shared = m.pieces.size();
  }
}

void attend_described(const LlamaConfig& config, const TaskMemory& m, const TaskMemory* next,
                      kernels::MatmulMode mode) {
  thread_local std::vector<float> scratch(kernels::attend_part_scratch);
  const float scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim));
  if (m.shared == m.pieces.size() && worth_products(m.rows, m.pieces, m.type, mode))
    return attend_shared(m.rows, m.pieces, config.head_dim, scale);
  kernels::NextPieces coming;
  if (next && next->type == m.type)
    coming = {next->pieces.data(), static_cast<int>(next->pieces.size())};
  const int rows = static_cast<int>(m.rows.size()), pieces = static_cast<int>(m.pieces.size());
  const int shared = static_cast<int>(m.shared);
  const auto unit = kernels::attention_unit(m.type, config.head_dim, mode);
  if (unit &&
      kernels::bf16_attend_part(*unit, m.rows.data(), rows, config.head_dim, m.pieces.data(),
                                pieces, shared, coming, scale, scratch.data()))
    return;
  kernels::kernels().attend_part(m.rows.data(), rows, config.head_dim, m.type, m.pieces.data(),
                                 pieces, shared, coming, scale, scratch.data());
}

void attend_tasks(const LlamaConfig& config, int layer, Batch& batch, kernels::MatmulMode mode) {
  DecodeWork& work = batch.decode_work;
  const int64_t units =
      static_cast<int64_t>(work.tasks.size()) * config.num_kv_heads * head_sets(config);
  std::fill(work.counts.begin(), work.counts.end(), DecodeWork::Count{});
  // Each thread describes its next unit before it works on the present one, so that the next one's
  // keys and values are on their way from memory meanwhile.
  const int threads = thread_count();
  parallel_for(threads, [&](int64_t part) {
    thread_local TaskMemory memory[2];
    const Range range = split(units, threads, static_cast<int>(part));
    for (int64_t i = range.begin; i < range.end; ++i) {
      TaskMemory &present = memory[i % 2], &next = memory[(i + 1) % 2];
      if (i == range.begin) describe(config, layer, unit_at(config, work, i), batch, present);
      const bool more = i + 1 < range.end;
      if (more) describe(config, layer, unit_at(config, work, i + 1), batch, next);
      attend_described(config, present, more ? &next : nullptr, mode);
    }
  });
}

void merge(const LlamaConfig& config, Batch& batch) {
  DecodeWork& work = batch.decode_work;
  const int64_t count = static_cast<int64_t>(batch.segments.size()) * config.num_heads;
  const auto merge_row = [&](int64_t i) {
    const int segment = static_cast<int>(i / config.num_heads);
    const int64_t head = i % config.num_heads;
    const DecodeWork::Place& place = work.places[segment];
    const int64_t row = int64_t{batch.segments[segment].first_row} * config.num_heads + head;
    kernels::kernels().merge_parts(
        &work.partials[place.partials + head * place.parts * work.partial_stride], place.parts,
        work.partial_stride, config.head_dim, &batch.attended[row * config.head_dim]);
  };
  // Below this many floats waking the other threads costs more than they save.
  constexpr size_t worth_threads = 1 << 16;
  if (work.partials.size() >= worth_threads) return parallel_for(count, merge_row);
  for (int64_t i = 0; i < count; ++i) merge_row(i);
}

// --- What it cost ---

void add_costs(const LlamaConfig& config, Batch& batch) {
  const DecodeWork& work = batch.decode_work;
  std::vector<DecodeWork::Count> totals(batch.segments.size());
  for (int set = 0; set < config.num_kv_heads * head_sets(config); ++set) {
    const DecodeWork::Count* count = &work.counts[set * work.first_count.back()];
    for (const DecodeTask& task : work.tasks) {
      for (const int s : task.segments) {
        totals[s].attended += count->attended;
        totals[s].needed += count->needed;
        ++count;
      }
    }
  }
  for (size_t s = 0; s < batch.costs.size(); ++s) {
    StepCost* cost = batch.costs[s];
    if (!cost) continue;
    const CpuSequence& sequence = *batch.segments[s].sequence;
    const int n = sequence.length();
    cost->attended += static_cast<double>(totals[s].attended) /
                      (static_cast<double>(n) * config.num_heads * config.num_layers);
    const uint64_t vector_bytes =
        static_cast<uint64_t>(kernels::size_of(sequence.layout().type)) * config.head_dim;
    // A key and a value of every token that some query head of the group attends to; minimum and
    // maximum of every page where pages had to be chosen.
    cost->bytes += 2 * vector_bytes * static_cast<uint64_t>(totals[s].needed);
    if (work.places[s].budget < n) {
      cost->bytes += 2 * vector_bytes * static_cast<uint64_t>(work.places[s].pages) *
                     static_cast<uint64_t>(config.num_kv_heads);
    }
  }
}

}  // namespace

void prepare_decode(const LlamaConfig& config, Batch& batch) {
  DecodeWork& work = batch.decode_work;
  work.tasks = plan_decode(batch.segments, kPartRows / heads_per_task(config));
  work.partial_stride = (config.head_dim + 2 + 15) / 16 * 16;
  work.places.clear();
  work.sparse.clear();
  int64_t scores = 0, marks = 0, partials = 0;
  for (size_t s = 0; s < batch.segments.size(); ++s) {
    const CpuSequence& sequence = *batch.segments[s].sequence;
    const int n = sequence.length();
    DecodeWork::Place place{};
    place.budget = kernels::keep_count(batch.segments[s].action.kappa, n);
    place.pages = sequence.page_count();
    place.parts = (n + kPartTokens - 1) / kPartTokens;
    place.scores = scores;
    place.marks = marks;
    place.partials = partials;
    if (place.budget < n) {
      work.sparse.push_back(static_cast<int>(s));
      scores += int64_t{config.num_heads} * place.pages;
      marks += int64_t{config.num_heads} * kernels::page_words(place.pages);
    }
    partials += config.num_heads * place.parts * work.partial_stride;
    work.places.push_back(place);
  }
  work.scores.resize(static_cast<size_t>(scores));
  work.marks.resize(static_cast<size_t>(marks));
  work.partials.resize(static_cast<size_t>(partials));

  work.first_count.assign(1, 0);
  for (const DecodeTask& task : work.tasks)
    work.first_count.push_back(work.first_count.back() +
                               static_cast<int64_t>(task.segments.size()));
  work.counts.resize(
      static_cast<size_t>(work.first_count.back() * config.num_kv_heads * head_sets(config)));
}

void attend_decoded(const LlamaConfig& config, int layer, Batch& batch, kernels::MatmulMode mode) {
  if (!batch.decode_work.sparse.empty()) {
    batch.clock.enter(&StageTimes::page_scoring);
    select_pages(config, layer, batch, mode);
    batch.clock.enter(&StageTimes::attention);
  }
  attend_tasks(config, layer, batch, mode);
  merge(config, batch);
  if (!batch.costs.empty()) add_costs(config, batch);
}

}  // namespace sol
