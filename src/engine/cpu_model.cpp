#include "engine/cpu_model.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <set>

#include "base/fail.h"
#include "base/threads.h"
#include "engine/attention.h"
#include "engine/length_guard.h"
#include "engine/request_checks.h"
#include "kernels/compressed.h"
#include "kernels/select.h"

namespace sol {

using kernels::WeightView;

namespace {

// Rows of one dense chunk: enough for the matrix unit, few enough that activations stay in cache.
constexpr int chunk_rows = 512;

size_t area(int rows, int64_t width) {
  return static_cast<size_t>(rows) * static_cast<size_t>(width);
}

}  // namespace

CpuModel::CpuModel(LlamaConfig config, TensorStore store, const ModelOptions& options)
    : config_(std::move(config)),
      mode_(options.deterministic ? kernels::MatmulMode::own : kernels::MatmulMode::library) {
  precision_ = resolve_precision(options.precision, stored_type(config_, store));
  if (!options.deterministic && precision_ == Precision::f32)
    mode_ = kernels::MatmulMode::library_f32;
  int8_activations_ = options.int8_activations;
  page_summary_ = options.page_scores == PageScores::moments ? kernels::PageSummary::moments
                                                             : kernels::PageSummary::extrema;
  fingerprint_ = fingerprint_of(config_, store);
  weights_ = std::make_unique<CpuWeights>(config_, std::move(store), precision_, options);
  inverse_frequencies_ = rotary_inverse_frequencies(config_);
}

// ---------------------------------------------------------------------------------------------
// The forward pass

void CpuModel::forward(Batch& batch) {
  batch.skipped_bytes = 0;
  cut_into_pieces(batch);
  resize(batch);
  embed_tokens(batch);
  if (batch.decode) prepare_decode(config_, batch);
  for (int layer = 0; layer < config_.num_layers; ++layer) run_layer(layer, batch);
  count_weight_bytes(batch);
  batch.clock.enter(&StageTimes::head);
  write_outputs(batch);
  batch.clock.stop();
}

void CpuModel::run_layer(int layer, Batch& batch) const {
  const CpuLayer& weights = weights_->layers[layer];
  const auto add_to_residual = [&] {
    const size_t d = static_cast<size_t>(config_.hidden_size);
    parallel_for(batch.rows(), [&](int64_t r) {
      kernels::kernels().add(&batch.x[r * d], &batch.update[r * d], config_.hidden_size);
    });
  };
  batch.clock.enter(&StageTimes::projections);
  normalise(weights.input_norm, batch);
  project_qkv(weights, batch);
  rotate(batch);
  write_cache(layer, batch);
  batch.clock.enter(&StageTimes::attention);
  attend(config_, layer, batch, attention_mode());
  batch.clock.enter(&StageTimes::projections);
  product(batch.attended, batch.rows(), weights.o, batch.update);
  add_to_residual();
  batch.clock.enter(&StageTimes::mlp);
  normalise(weights.post_norm, batch);
  run_mlp(weights, batch);
  quantise(batch);
  add_to_residual();
}

void CpuModel::cut_into_pieces(Batch& batch) const {
  batch.pieces.clear();
  for (const Segment& segment : batch.segments) {
    const int block = segment.sequence->layout().tokens;
    for (int r = 0; r < segment.rows;) {
      const int position = segment.position + r;
      const int rows = std::min(segment.rows - r, block - position % block);
      batch.pieces.push_back({segment.sequence, segment.first_row + r, rows, position, {}});
      r += rows;
    }
  }
}

void CpuModel::resize(Batch& batch) const {
  const int rows = batch.rows();
  const int64_t d = config_.hidden_size, heads = config_.num_heads, kv = config_.num_kv_heads;
  batch.x.resize(area(rows, d));
  batch.normed.resize(area(rows, d));
  batch.update.resize(area(rows, d));
  batch.q.resize(area(rows, heads * config_.head_dim));
  batch.attended.resize(area(rows, heads * config_.head_dim));
  batch.k.resize(area(rows, kv * config_.head_dim));
  batch.v.resize(area(rows, kv * config_.head_dim));
  batch.gate_up.resize(area(rows, 2 * static_cast<int64_t>(config_.intermediate_size)));
  batch.inner.resize(area(rows, config_.intermediate_size));
}

void CpuModel::embed_tokens(Batch& batch) const {
  const int d = config_.hidden_size;
  for (int r = 0; r < batch.rows(); ++r) {
    embedding(batch.tokens[r], {&batch.x[area(r, d)], static_cast<size_t>(d)});
  }
}

void CpuModel::normalise(const std::vector<float>& weight, Batch& batch) const {
  const int d = config_.hidden_size;
  parallel_for(batch.rows(), [&](int64_t r) {
    kernels::kernels().rms_norm(&batch.x[r * d], weight.data(),
                                static_cast<float>(config_.rms_norm_eps), d, &batch.normed[r * d]);
  });
}

void CpuModel::product(const Activations& x, int rows, const WeightView& w, Activations& y) const {
  if (integer_product(w))
    kernels::integer_matmul(x.data(), w.in, rows, w, {}, y.data(), w.out, mode_);
  else
    kernels::matmul(x.data(), w.in, rows, w, y.data(), w.out, mode_);
}

bool CpuModel::integer_product(const WeightView& w) const {
  return int8_activations_ && w.type == kernels::WeightType::int8;
}

void CpuModel::project_qkv(const CpuLayer& layer, Batch& batch) const {
  product(batch.normed, batch.rows(), layer.q, batch.q);
  product(batch.normed, batch.rows(), layer.k, batch.k);
  product(batch.normed, batch.rows(), layer.v, batch.v);
}

void CpuModel::rotate(Batch& batch) const {
  const int half = config_.head_dim / 2;
  const int64_t q_stride = static_cast<int64_t>(config_.num_heads) * config_.head_dim;
  const int64_t k_stride = static_cast<int64_t>(config_.num_kv_heads) * config_.head_dim;
  const auto rotary = kernels::kernels().rotary;
  parallel_for(static_cast<int64_t>(batch.pieces.size()), [&](int64_t p) {
    const Segment& piece = batch.pieces[p];
    for (int r = 0; r < piece.rows; ++r) {
      const int64_t row = piece.first_row + r;
      const int64_t table = static_cast<int64_t>(piece.position + r) * half;
      rotary(&batch.q[row * q_stride], config_.num_heads, config_.head_dim, &cos_[table],
             &sin_[table]);
      rotary(&batch.k[row * k_stride], config_.num_kv_heads, config_.head_dim, &cos_[table],
             &sin_[table]);
    }
  });
}

void CpuModel::write_cache(int layer, Batch& batch) const {
  const int64_t stride = static_cast<int64_t>(config_.num_kv_heads) * config_.head_dim;
  parallel_for(static_cast<int64_t>(batch.pieces.size()), [&](int64_t p) {
    const Segment& piece = batch.pieces[p];
    const int64_t at = piece.first_row * stride;
    piece.sequence->write(layer, piece.position, piece.rows, &batch.k[at], &batch.v[at], stride);
    piece.sequence->update_pages(layer, piece.position, piece.rows);
  });
}

void CpuModel::run_mlp(const CpuLayer& layer, Batch& batch) const {
  const int64_t width = config_.intermediate_size;
  if (batch.decode)
    product_of_kept(batch.normed, batch, layer.gate_up, layer.gate_up_norms, batch.gate_up);
  else
    product(batch.normed, batch.rows(), layer.gate_up, batch.gate_up);
  parallel_for(batch.rows(), [&](int64_t r) {
    const float* gate = &batch.gate_up[2 * r * width];
    kernels::kernels().silu_mul(gate, gate + width, config_.intermediate_size,
                                &batch.inner[r * width]);
  });
  const bool prune_down = layer.down.layout == kernels::Layout::in_major;
  if (batch.decode && prune_down)
    product_of_kept(batch.inner, batch, layer.down, layer.down_norms, batch.update);
  else
    product(batch.inner, batch.rows(), layer.down, batch.update);
}

// ρ: of each row's inputs only the channels of largest magnitude count (paper, "Structured MLP
// activation pruning"), or of largest magnitude times the norm of their weights. W is stored by
// channel. Weights of channels that no row keeps are not read; in larger batches, which together
// soon keep every channel, dropped ones are only zero.
void CpuModel::product_of_kept(Activations& x, Batch& batch, const WeightView& w,
                               const std::vector<float>& norms, Activations& y) const {
  const int rows = batch.rows();
  const bool dropped = zero_dropped(x, batch, w.in, norms);
  if (!dropped || rows > most_skipping_sequences) return product(x, rows, w, y);
  std::vector<int>& kept = batch.kept_channels;
  kept.clear();
  for (int c = 0; c < w.in; ++c) {
    bool wanted = false;
    for (int r = 0; r < rows; ++r) wanted = wanted || x[area(r, w.in) + c] != 0.0f;
    if (wanted) kept.push_back(c);
  }
  if (kept.empty()) kept.push_back(0);  // an empty list would mean all
  batch.skipped_bytes += (static_cast<uint64_t>(w.in) - kept.size()) *
                         static_cast<uint64_t>(kernels::row_bytes(w.type, w.out));
  if (integer_product(w))
    kernels::integer_matmul(x.data(), w.in, rows, w, kept, y.data(), w.out, mode_);
  else
    kernels::matmul_kept(x.data(), w.in, rows, w, kept, y.data(), w.out, mode_);
}

// Zeroes each row's dropped channels; false when no row drops any.
bool CpuModel::zero_dropped(Activations& x, const Batch& batch, int width,
                            const std::vector<float>& norms) const {
  std::atomic<bool> dropped = false;
  parallel_for(batch.rows(), [&](int64_t r) {
    const int keep = kernels::keep_count(batch.segments[r].action.rho, width);
    if (keep == width) return;
    dropped = true;
    float* row = &x[r * width];
    thread_local std::vector<int> channels;
    thread_local std::vector<float> weighted;
    const float* scores = row;
    if (!norms.empty()) {
      weighted.resize(static_cast<size_t>(width));
      for (int c = 0; c < width; ++c) weighted[c] = row[c] * norms[c];
      scores = weighted.data();
    }
    kernels::top_channels(scores, width, keep, channels);
    auto kept = channels.begin();
    for (int c = 0; c < width; ++c) {
      if (kept != channels.end() && *kept == c) {
        ++kept;
      } else {
        row[c] = 0.0f;
      }
    }
  });
  return dropped;
}

// q: the MLP's output, before it joins the residual (paper, "Activation quantization").
void CpuModel::quantise(Batch& batch) const {
  if (!batch.decode) return;
  const int d = config_.hidden_size;
  parallel_for(batch.rows(), [&](int64_t r) {
    kernels::kernels().fake_quantise(&batch.update[r * d], d, batch.segments[r].action.bits);
  });
}

uint64_t CpuModel::layer_weight_bytes(float rho) const {
  const auto kept = [&](int channels) {
    return static_cast<uint64_t>(kernels::keep_count(rho, channels));
  };
  return static_cast<uint64_t>(config_.num_layers) *
         (weights_->layer_fixed_bytes + kept(config_.hidden_size) * weights_->gate_up_row_bytes +
          kept(config_.intermediate_size) * weights_->down_row_bytes);
}

void CpuModel::count_weight_bytes(Batch& batch) const {
  for (size_t s = 0; s < batch.costs.size(); ++s) {
    if (!batch.costs[s]) continue;
    batch.costs[s]->bytes += layer_weight_bytes(batch.segments[s].action.rho);
  }
  for (const WantedRow& wanted : batch.wanted) {
    if (!batch.costs.empty() && batch.costs[wanted.row] && wanted.out.wants_head()) {
      batch.costs[wanted.row]->bytes += weights_->head_bytes;
    }
  }
}

// Final norm and head, for the rows that anybody wants something of, a few rows at a time so that
// logits of a large vocabulary never exist for all rows at once.
void CpuModel::write_outputs(Batch& batch) {
  constexpr int64_t max_logits = 4 << 20;  // floats
  const int d = config_.hidden_size, vocab = config_.vocab_size;
  const int step = static_cast<int>(std::clamp<int64_t>(max_logits / vocab, 1, 256));
  std::vector<const WantedRow*> with_head;
  head_input_.resize(area(step, d));
  head_output_.resize(area(step, vocab));
  const auto final_norm = [&](int row, float* out) {
    kernels::kernels().rms_norm(&batch.x[area(row, d)], weights_->final_norm.data(),
                                static_cast<float>(config_.rms_norm_eps), d, out);
  };
  for (const WantedRow& wanted : batch.wanted) {
    if (wanted.out.hidden) final_norm(wanted.row, wanted.out.hidden);
    if (wanted.out.wants_head()) with_head.push_back(&wanted);
  }
  for (size_t first = 0; first < with_head.size(); first += static_cast<size_t>(step)) {
    const int rows = static_cast<int>(std::min<size_t>(step, with_head.size() - first));
    for (int r = 0; r < rows; ++r) final_norm(with_head[first + r]->row, &head_input_[area(r, d)]);
    product(head_input_, rows, weights_->head, head_output_);
    parallel_for(rows, [&](int64_t r) {
      const OutputRequest& out = with_head[first + static_cast<size_t>(r)]->out;
      const float* logits = &head_output_[area(static_cast<int>(r), vocab)];
      if (out.logits) std::copy(logits, logits + vocab, out.logits);
      if (!out.log_prob && !out.entropy) return;
      float log_sum = 0, expected = 0;
      kernels::kernels().log_sum_exp(logits, vocab, &log_sum, &expected);
      if (out.log_prob) *out.log_prob = logits[out.target] - log_sum;
      if (out.entropy) *out.entropy = log_sum - expected;
    });
  }
}

// ---------------------------------------------------------------------------------------------
// The public calls

std::vector<std::string> CpuModel::outside_paper() const {
  std::vector<std::string> options;
  if (weights_->layers[0].down.layout == kernels::Layout::in_major) options.push_back("prune-down");
  if (int8_activations_) options.push_back("int8-activations");
  if (!weights_->layers[0].gate_up_norms.empty()) options.push_back("channel-scores wina");
  if (page_summary_ == kernels::PageSummary::moments) options.push_back("page-scores moments");
  return options;
}

std::string_view CpuModel::product_type() const {
  return int8_activations_ ? "int8" : to_string(precision_);
}

std::unique_ptr<Sequence> CpuModel::create(const SequenceOptions& options) {
  check_options(options);
  const Precision cache = options.cache == Precision::automatic ? precision_ : options.cache;
  const CacheLayout layout(
      config_, options,
      cache == Precision::bf16 ? kernels::ElementType::bf16 : kernels::ElementType::f32,
      page_summary_);
  const std::lock_guard lock(pools_mutex_);
  const auto found = std::ranges::find_if(
      pools_, [&](const auto& pool) { return pool->block_bytes() == layout.block_bytes; });
  if (found != pools_.end()) return std::make_unique<CpuSequence>(options, layout, *found);
  pools_.push_back(std::make_shared<BlockPool>(layout.block_bytes));
  return std::make_unique<CpuSequence>(options, layout, pools_.back());
}

void CpuModel::extend(std::span<ExtendItem> items, std::stop_token stop) {
  std::set<const Sequence*> seen;
  LengthGuard<CpuSequence> lengths;
  int longest = 0;
  for (const ExtendItem& item : items) {
    CpuSequence& sequence = own(item.sequence);
    if (!seen.insert(&sequence).second) fail("extend: a sequence occurs twice in one call");
    check_item(config_, item);
    lengths.remember(sequence);
    longest = std::max(longest, sequence.length() + static_cast<int>(item.tokens.size()));
  }
  grow_rotary_table(longest);

  size_t item = 0, done = 0;  // next token: items[item].tokens[done]
  while (item < items.size()) {
    Batch& batch = batch_;
    batch.decode = false;
    batch.segments.clear();
    batch.tokens.clear();
    batch.wanted.clear();
    batch.costs.clear();
    while (item < items.size() && batch.rows() < chunk_rows) {
      const ExtendItem& current = items[item];
      const size_t room = static_cast<size_t>(chunk_rows - batch.rows());
      const size_t count = std::min(room, current.tokens.size() - done);
      const int first_row = batch.rows();
      CpuSequence& sequence = own(current.sequence);
      if (count > 0) {
        batch.segments.push_back(
            {&sequence, first_row, static_cast<int>(count), sequence.length(), {}});
        sequence.grow(static_cast<int>(count));
        batch.tokens.insert(batch.tokens.end(), current.tokens.begin() + static_cast<long>(done),
                            current.tokens.begin() + static_cast<long>(done + count));
        for (const ExtendItem::Wanted& wanted : current.wanted) {
          if (wanted.index >= done && wanted.index < done + count && wanted.out.wants_anything()) {
            batch.wanted.push_back({first_row + static_cast<int>(wanted.index - done), wanted.out});
          }
        }
      }
      done += count;
      if (done == current.tokens.size()) {
        ++item;
        done = 0;
      }
    }
    if (batch.rows() > 0) forward(batch);
    if (stop.stop_requested() && item < items.size()) throw Cancelled();
  }
  lengths.keep();
}

void CpuModel::decode(std::span<DecodeItem> items) {
  if (items.empty()) return;
  std::set<const Sequence*> seen;
  int longest = 0;
  for (const DecodeItem& item : items) {
    CpuSequence& sequence = own(item.sequence);
    if (!seen.insert(&sequence).second) fail("decode: a sequence occurs twice in one call");
    check_item(config_, item);
    longest = std::max(longest, sequence.length() + 1);
  }
  grow_rotary_table(longest);

  Batch& batch = batch_;
  batch.decode = true;
  batch.segments.clear();
  batch.tokens.clear();
  batch.wanted.clear();
  batch.costs.clear();
  LengthGuard<CpuSequence> lengths;
  for (const DecodeItem& item : items) {
    CpuSequence& sequence = own(item.sequence);
    lengths.remember(sequence);
    const int row = batch.rows();
    batch.segments.push_back({&sequence, row, 1, sequence.length(), item.action});
    sequence.grow(1);
    batch.tokens.push_back(item.token);
    batch.costs.push_back(item.cost);
    if (item.cost) *item.cost = {0.0, 0};
    if (item.out.wants_anything()) batch.wanted.push_back({row, item.out});
  }
  forward(batch);
  lengths.keep();
}

CacheUse CpuModel::cache_use() const {
  const std::lock_guard lock(pools_mutex_);
  CacheUse use;
  for (const auto& pool : pools_) {
    const uint64_t blocks = pool->blocks_in_use();
    use.blocks += blocks;
    use.bytes += blocks * static_cast<uint64_t>(pool->block_bytes());
  }
  return use;
}

std::vector<std::unique_ptr<Sequence>> CpuModel::fork(const Sequence& parent, int n) {
  const CpuSequence& sequence = own(&parent);
  std::vector<std::unique_ptr<Sequence>> children;
  children.reserve(static_cast<size_t>(std::max(n, 0)));
  for (int i = 0; i < n; ++i) children.push_back(sequence.fork());
  return children;
}

void CpuModel::truncate(Sequence& sequence, int length) {
  check_truncation(sequence, length);
  own(&sequence).truncate(length);
}

void CpuModel::embedding(int32_t token, std::span<float> out) const {
  check_embedding(config_, token, out.size());
  kernels::kernels().widen_row(weights_->embedding, token, 0, config_.hidden_size,
                               kernels::ElementType::f32, out.data());
}

// ---------------------------------------------------------------------------------------------

void CpuModel::grow_rotary_table(int positions) {
  const int half = config_.head_dim / 2;
  const int have = static_cast<int>(cos_.size()) / half;
  if (positions <= have) return;
  const int rows = std::min(std::max(positions, 2 * have), config_.max_position_embeddings);
  // Both or none, should memory end.
  std::vector<float> cos(area(rows, half)), sin(area(rows, half));
  std::ranges::copy(cos_, cos.begin());
  std::ranges::copy(sin_, sin.begin());
  for (int p = have; p < rows; ++p) {
    for (int i = 0; i < half; ++i) {
      const float angle =
          static_cast<float>(p) * inverse_frequencies_[i];  // float32, as Hugging Face
      cos[area(p, half) + i] = std::cos(angle);
      sin[area(p, half) + i] = std::sin(angle);
    }
  }
  cos_.swap(cos);
  sin_.swap(sin);
}

// A sequence's blocks come from a pool of the model that made it.
const CpuSequence& CpuModel::own(const Sequence* sequence) const {
  const auto* cpu_sequence = dynamic_cast<const CpuSequence*>(sequence);
  if (!cpu_sequence || std::ranges::find(pools_, cpu_sequence->pool()) == pools_.end()) {
    fail("the sequence was made by another model");
  }
  return *cpu_sequence;
}

CpuSequence& CpuModel::own(Sequence* sequence) const {
  return const_cast<CpuSequence&>(own(static_cast<const Sequence*>(sequence)));
}

std::unique_ptr<FrozenModel> load_model(const std::filesystem::path& dir,
                                        const ModelOptions& options) {
  return std::make_unique<CpuModel>(load_config(dir), TensorStore::open_directory(dir), options);
}

}  // namespace sol
