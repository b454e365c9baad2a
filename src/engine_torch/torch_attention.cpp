#include "engine_torch/torch_attention.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine_torch/torch_actions.h"
#include "engine_torch/torch_device.h"
#include "kernels/select.h"

namespace sol {

using at::Tensor;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
// Scores of a dense pass that exist at a time, in floats. A GPU wants large products, and memory
// must last for a long context; on the CPU they should stay in the second-level cache.
int64_t most_scores(const at::Device& device) {
  return device.is_cpu() ? 1 << 18 : 64 << 20;
}

double scale(const LlamaConfig& config) {
  return 1.0 / std::sqrt(static_cast<double>(config.head_dim));
}

Tensor flags_on_device(const std::vector<int64_t>& values, at::IntArrayRef shape,
                       const at::Device& device) {
  return on_device(values, shape, device).to(at::kBool);
}

}  // namespace

WritePlan::WritePlan(std::span<const TorchSegment> segments, const at::Device& device) {
  std::vector<int64_t> written, touched, keys;
  int64_t size = 1;
  for (const TorchSegment& segment : segments) {
    const TorchSequence& sequence = *segment.sequence;
    size = sequence.options().page_size;
    const int end = segment.position + segment.rows;
    for (int p = segment.position; p < end; ++p) written.push_back(sequence.slot(p));
    for (int64_t page = segment.position / size; page * size < end; ++page) {
      const int64_t first = sequence.slot(static_cast<int>(page * size));
      touched.push_back(first / size);
      for (int64_t i = 0; i < size; ++i) keys.push_back(first + std::min(i, end - 1 - page * size));
    }
  }
  const int64_t count = static_cast<int64_t>(touched.size());
  slots = on_device(written, {static_cast<int64_t>(written.size())}, device);
  pages = on_device(touched, {count}, device);
  page_slots = on_device(keys, {count, size}, device);
}

// --- Dense passes ---

DenseAttention::DenseAttention(const LlamaConfig& config, std::span<const TorchSegment> segments,
                               const at::Device& device)
    : config_(config), segments_(segments), device_(device) {
  for (const TorchSegment& segment : segments)
    stretches_.emplace_back(*segment.sequence, segment.position + segment.rows, device);
}

Tensor DenseAttention::run(const CachePool::Layer& cache, const Tensor& q) const {
  std::vector<Tensor> parts;
  for (size_t s = 0; s < segments_.size(); ++s)
    parts.push_back(attend(cache, q.narrow(0, segments_[s].first_row, segments_[s].rows), s));
  return parts.size() == 1 ? parts[0] : at::cat(parts);
}

Tensor DenseAttention::attend(const CachePool::Layer& cache, const Tensor& q,
                              size_t segment) const {
  const int64_t kv = config_.num_kv_heads, group = config_.group(), dim = config_.head_dim;
  const int64_t rows = q.size(0), position = segments_[segment].position;
  const Tensor keys = stretches_[segment].positions(cache.keys);
  const Tensor values = stretches_[segment].positions(cache.values);
  const Tensor queries = q.view({rows, kv, group, dim}).permute({1, 0, 2, 3});
  const int64_t step =
      std::clamp<int64_t>(most_scores(device_) / (config_.num_heads * keys.size(1)), 1, rows);
  std::vector<Tensor> parts;
  for (int64_t first = 0; first < rows; first += step) {
    const int64_t count = std::min(step, rows - first), seen = position + first + count;
    const Tensor later =
        at::arange(seen, at::TensorOptions().dtype(at::kLong).device(device_)).unsqueeze(0) >
        at::arange(position + first, seen, at::TensorOptions().dtype(at::kLong).device(device_))
            .unsqueeze(1);
    Tensor scores = at::bmm(queries.narrow(1, first, count).reshape({kv, count * group, dim}),
                            keys.narrow(1, 0, seen).transpose(1, 2))
                        .mul_(scale(config_))
                        .view({kv, count, group, seen});
    scores.masked_fill_(later.view({1, count, 1, seen}), -infinity);
    parts.push_back(
        at::bmm(at::softmax(scores, -1).view({kv, count * group, seen}), values.narrow(1, 0, seen))
            .view({kv, count, group, dim}));
  }
  const Tensor all = parts.size() == 1 ? parts[0] : at::cat(parts, 1);
  return all.permute({1, 0, 2, 3}).reshape({rows, kv * group * dim});
}

// --- Decoded tokens: what lies where ---

DecodeAttention::DecodeAttention(const LlamaConfig& config, std::span<const TorchSegment> segments,
                                 bool count, const at::Device& device)
    : config_(config),
      segments_(segments),
      layout_(segments[0].sequence->pool()->layout()),
      rows_(static_cast<int64_t>(segments.size())),
      count_(count) {
  find_groups(device);
  lay_out_tails(device);
  lay_out_columns(device);
  lay_out_choice(device);
  if (count_) {
    attended_ = at::zeros({rows_}, at::TensorOptions().dtype(at::kLong).device(device));
    needed_ = at::zeros_like(attended_);
  }
}

// The current token has made everybody's last block its own, so what several hold is full.
void DecodeAttention::find_groups(const at::Device& device) {
  for (size_t s = 0; s < segments_.size();) {
    const TorchSequence& first = *segments_[s].sequence;
    size_t end = s + 1, common = first.blocks();
    for (; end < segments_.size(); ++end) {
      const TorchSequence& other = *segments_[end].sequence;
      if (other.block(0) != first.block(0)) break;
      common = std::min(common, other.blocks());
      size_t same = 0;
      while (same < common && other.block(same) == first.block(same)) ++same;
      common = same;
    }
    const int rows = static_cast<int>(end - s);
    // Who is alone has everything in the stretch of its group and nothing in a tail.
    const int count = rows == 1 ? first.length() : static_cast<int>(common) * layout_.tokens;
    groups_.push_back({static_cast<int>(s), rows, CachedStretch(first, count, device)});
    shared_ = std::max(shared_, groups_.back().shared.page_count * layout_.page_size);
    s = end;
  }
}

void DecodeAttention::lay_out_tails(const at::Device& device) {
  const int64_t size = layout_.page_size;
  const auto own = [](const Group& group, const TorchSegment& segment) {
    return segment.sequence->length() - group.shared.count;
  };
  for (const Group& group : groups_)
    for (int r = group.first_row; r < group.first_row + group.rows; ++r)
      tail_ = std::max(tail_, (own(group, segments_[r]) + size - 1) / size * size);
  if (tail_ == 0) return;
  // What a row does not have is slot 0, which its masks hide.
  std::vector<int64_t> slots(static_cast<size_t>(rows_ * tail_));
  std::vector<int64_t> pages(slots.size() / static_cast<size_t>(size));
  for (const Group& group : groups_) {
    for (int r = group.first_row; r < group.first_row + group.rows; ++r) {
      for (int64_t i = 0; i < own(group, segments_[r]); ++i) {
        const size_t at = static_cast<size_t>(r * tail_ + i);
        slots[at] = segments_[r].sequence->slot(static_cast<int>(group.shared.count + i));
        pages[at / static_cast<size_t>(size)] = slots[at] / size;
      }
    }
  }
  tail_slots_ = on_device(slots, {rows_ * tail_}, device);
  tail_pages_ = on_device(pages, {rows_ * tail_ / size}, device);
}

void DecodeAttention::lay_out_columns(const at::Device& device) {
  const int64_t columns = shared_ + tail_, size = layout_.page_size;
  std::vector<int64_t> real(static_cast<size_t>(rows_ * columns)), forced(real.size());
  std::vector<int64_t> real_pages(real.size() / static_cast<size_t>(size));
  for (const Group& group : groups_) {
    for (int r = group.first_row; r < group.first_row + group.rows; ++r) {
      const SequenceOptions& options = segments_[r].sequence->options();
      const int64_t n = segments_[r].sequence->length();
      for (int64_t p = 0; p < n; ++p) {
        const int64_t column = p < group.shared.count ? p : shared_ + p - group.shared.count;
        const size_t at = static_cast<size_t>(r * columns + column);
        real[at] = 1;
        real_pages[at / static_cast<size_t>(size)] = 1;
        forced[at] = options.force_sinks && (p < options.sinks || p >= n - options.window - 1);
      }
    }
  }
  real_ = flags_on_device(real, {1, rows_, 1, columns}, device);
  forced_ = flags_on_device(forced, {1, rows_, 1, columns}, device);
  real_pages_ = flags_on_device(real_pages, {1, rows_, 1, columns / size}, device);
}

void DecodeAttention::lay_out_choice(const at::Device& device) {
  std::vector<int64_t> keep, ties, all;
  for (const TorchSegment& segment : segments_) {
    const int n = segment.sequence->length();
    const int budget = kernels::keep_count(segment.action.kappa, n);
    sparse_.push_back(budget < n);
    keep.push_back(budget < n ? kernels::page_count(budget, layout_.page_size) : 1);
    ties.push_back(!segment.sequence->options().force_sinks);
    all.push_back(budget == n);
  }
  most_pages_ = *std::ranges::max_element(keep);
  keep_ = on_device(keep, {1, rows_, 1, 1}, device);
  keep_ties_ = flags_on_device(ties, {1, rows_, 1, 1}, device);
  keep_all_ = flags_on_device(all, {1, rows_, 1, 1}, device);
}

// --- Decoded tokens: the arithmetic; q is [kv_heads, rows, group, width] throughout ---

// q times every column's vector, [kv_heads, rows, group, columns or pages]. What a row does not
// have comes out as anything.
Tensor DecodeAttention::products(const Tensor& q, const Tensor& tensor, bool pages) const {
  const int64_t kv = q.size(0), group = q.size(2), width = q.size(3);
  const int64_t per_column = pages ? layout_.page_size : 1;
  const int64_t shared = shared_ / per_column, tail = tail_ / per_column;
  Tensor out = at::empty({kv, rows_, group, shared + tail}, q.options());
  for (const Group& one : groups_) {
    const Tensor vectors = pages ? one.shared.pages(tensor) : one.shared.positions(tensor);
    out.narrow(1, one.first_row, one.rows)
        .narrow(3, 0, vectors.size(1))
        .copy_(at::bmm(q.narrow(1, one.first_row, one.rows).reshape({kv, one.rows * group, width}),
                       vectors.transpose(1, 2))
                   .view({kv, one.rows, group, vectors.size(1)}));
  }
  if (tail > 0) {
    const Tensor vectors = tensor.index_select(1, pages ? tail_pages_ : tail_slots_)
                               .to(at::kFloat)
                               .view({kv * rows_, tail, width});
    out.narrow(3, shared, tail)
        .copy_(at::bmm(q.view({kv * rows_, group, width}), vectors.transpose(1, 2))
                   .view({kv, rows_, group, tail}));
  }
  return out;
}

// κ: the keys that each query head attends to (paper, appendix "Quest masking").
Tensor DecodeAttention::visible_keys(const CachePool::Layer& cache, const Tensor& q) const {
  if (std::ranges::none_of(sparse_, [](bool yes) { return yes; })) return real_;
  constexpr double lowest = std::numeric_limits<float>::lowest();
  // Σ max(q, 0) · max k + min(q, 0) · min k as one product. A score that is not a number is the
  // last to be kept, before pages that are not there.
  const Tensor signs = at::cat({q.clamp_min(0), q.clamp_max(0)}, -1);
  const Tensor scores = at::nan_to_num(products(signs, cache.extrema, true), lowest)
                            .clamp_min_(lowest)
                            .masked_fill_(real_pages_.logical_not(), -infinity);
  const Tensor pages = mark_largest(scores, keep_, most_pages_, keep_ties_) | keep_all_;
  std::vector<int64_t> shape = pages.sizes().vec();
  shape.push_back(layout_.page_size);
  const Tensor keys = pages.unsqueeze(-1).expand(shape).flatten(-2);
  return (keys | forced_) & real_;
}

// [kv_heads, rows, group, dim]; weights of what a row does not have are 0.
Tensor DecodeAttention::weighted_values(const Tensor& weights, const Tensor& values) const {
  const int64_t kv = weights.size(0), group = weights.size(2), dim = config_.head_dim;
  Tensor out = at::empty({kv, rows_, group, dim}, weights.options());
  for (const Group& one : groups_) {
    const Tensor vectors = one.shared.positions(values);
    out.narrow(1, one.first_row, one.rows)
        .copy_(at::bmm(weights.narrow(1, one.first_row, one.rows)
                           .narrow(3, 0, vectors.size(1))
                           .reshape({kv, one.rows * group, vectors.size(1)}),
                       vectors)
                   .view({kv, one.rows, group, dim}));
  }
  if (tail_ > 0) {
    const Tensor vectors =
        values.index_select(1, tail_slots_).to(at::kFloat).view({kv * rows_, tail_, dim});
    out.add_(at::bmm(weights.narrow(3, shared_, tail_).reshape({kv * rows_, group, tail_}), vectors)
                 .view({kv, rows_, group, dim}));
  }
  return out;
}

Tensor DecodeAttention::run(const CachePool::Layer& cache, const Tensor& q) {
  const int64_t kv = config_.num_kv_heads, group = config_.group(), dim = config_.head_dim;
  const Tensor queries = q.view({rows_, kv, group, dim}).permute({1, 0, 2, 3}).contiguous();
  const Tensor visible = visible_keys(cache, queries);
  if (count_) {
    const Tensor heads = visible.expand({kv, rows_, group, shared_ + tail_});
    attended_.add_(heads.sum(at::IntArrayRef{0, 2, 3}));
    needed_.add_(heads.any(2).sum(at::IntArrayRef{0, 2}));
  }
  const Tensor scores = products(queries, cache.keys, false)
                            .mul_(scale(config_))
                            .masked_fill_(visible.logical_not(), -infinity);
  return weighted_values(at::softmax(scores, -1), cache.values)
      .permute({1, 0, 2, 3})
      .reshape({rows_, kv * group * dim});
}

namespace {

std::vector<int64_t> to_host(const Tensor& tensor) {
  const Tensor host = tensor.to(at::kCPU).contiguous();
  return {host.data_ptr<int64_t>(), host.data_ptr<int64_t>() + host.numel()};
}

}  // namespace

std::vector<int64_t> DecodeAttention::attended() const {
  return to_host(attended_);
}

std::vector<int64_t> DecodeAttention::needed() const {
  return to_host(needed_);
}

}  // namespace sol
