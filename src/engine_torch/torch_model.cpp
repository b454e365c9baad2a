#include "engine_torch/torch_model.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <set>

#include "base/fail.h"
#include "engine/cpu_weights.h"
#include "engine/length_guard.h"
#include "engine/request_checks.h"
#include "engine_torch/torch_device.h"
#include "engine_torch/torch_forward.h"

namespace sol {
namespace {

// Rows of one dense chunk: enough for a GPU's products, few enough that a chunk's activations are a
// small part of what a model needs.
constexpr int chunk_rows = 1024;

void check_supported(const ModelOptions& options) {
  const auto refuse = [](const char* what) {
    fail("{} is not offered on a LibTorch device: leave it out, or use --device native", what);
  };
  if (options.deterministic)
    refuse("--deterministic (the same bits for every batch size and thread count)");
  if (options.weights == WeightFormat::int8) refuse("--weights int8");
  if (options.weights == WeightFormat::int4) refuse("--weights int4");
  if (options.shared_weights) refuse("sharing weights among processes");
  if (options.prune_down) refuse("--prune-down");
  if (options.int8_activations) refuse("--int8-activations");
  if (options.channel_scores != ChannelScores::magnitude) refuse("--channel-scores wina");
  if (options.page_scores != PageScores::extrema) refuse("--page-scores moments");
}

Precision choose_precision(Precision requested, DType stored, const at::Device& device) {
  if (requested != Precision::automatic) return requested;
  return stored == DType::bf16 && device.is_cuda() ? Precision::bf16 : Precision::f32;
}

// One caller at a time.
class TorchModel final : public FrozenModel {
 public:
  TorchModel(LlamaConfig config, TensorStore store, const at::Device& device,
             const ModelOptions& options)
      : config_(std::move(config)), device_(device) {
    if (conversion_of(config_, store))
      fail(
          "{}: `sol convert` wrote it for the CPU's own engine; a LibTorch device needs the "
          "original directory",
          store.files()[0].parent_path().string());
    precision_ = choose_precision(options.precision, stored_type(config_, store), device_);
    fingerprint_ = fingerprint_of(config_, store);
    weights_ = std::make_unique<TorchWeights>(config_, std::move(store), precision_, device_);
    forward_ = std::make_unique<TorchForward>(config_, *weights_, device_);
  }

  const LlamaConfig& config() const override { return config_; }
  const std::string& fingerprint() const override { return fingerprint_; }
  Precision precision() const override { return precision_; }
  uint64_t parameter_count() const override { return weights_->parameters; }
  std::string device() const override { return device_.str(); }
  uint64_t device_peak_bytes() const override { return peak_bytes(device_); }

  std::unique_ptr<Sequence> create(const SequenceOptions& options) override;
  void extend(std::span<ExtendItem> items, std::stop_token stop) override;
  void decode(std::span<DecodeItem> items) override;
  std::vector<std::unique_ptr<Sequence>> fork(const Sequence& parent, int n) override;
  void truncate(Sequence& sequence, int length) override;
  CacheUse cache_use() const override;
  void embedding(int32_t token, std::span<float> out) const override;

 private:
  void extend_pool(std::span<const ExtendItem* const> items, const std::stop_token& stop);
  void decode_pool(std::span<const DecodeItem* const> items);
  // Room for `counts` more tokens, and a last block of its own for whoever writes into one.
  void make_room(std::span<TorchSequence* const> sequences, std::span<const int> counts);
  const TorchSequence& own(const Sequence* sequence) const;
  TorchSequence& own(Sequence* sequence) const;

  // Calls body(items of one pool) for each of the pools in turn: options may differ in a call, but
  // a pass is one pool's.
  template <typename Item, typename Body>
  void for_each_pool(std::span<Item> items, const Body& body) const;

  LlamaConfig config_;
  at::Device device_;
  std::string fingerprint_;
  Precision precision_ = Precision::f32;
  std::unique_ptr<TorchWeights> weights_;
  std::unique_ptr<TorchForward> forward_;
  mutable std::mutex pools_mutex_;  // cache_use() is asked while a pass runs
  std::vector<std::shared_ptr<CachePool>> pools_;
};

std::unique_ptr<Sequence> TorchModel::create(const SequenceOptions& options) {
  check_options(options);
  const Precision cache = options.cache == Precision::automatic ? precision_ : options.cache;
  const CacheLayout layout(
      config_, options,
      cache == Precision::bf16 ? kernels::ElementType::bf16 : kernels::ElementType::f32);
  const std::lock_guard lock(pools_mutex_);
  const auto found = std::ranges::find_if(pools_, [&](const auto& pool) {
    return pool->layout().page_size == layout.page_size && pool->layout().type == layout.type;
  });
  if (found != pools_.end()) return std::make_unique<TorchSequence>(options, *found);
  pools_.push_back(std::make_shared<CachePool>(config_, layout, device_));
  return std::make_unique<TorchSequence>(options, pools_.back());
}

template <typename Item, typename Body>
void TorchModel::for_each_pool(std::span<Item> items, const Body& body) const {
  std::vector<const Item*> all, here;
  for (const Item& item : items) all.push_back(&item);
  while (!all.empty()) {
    const auto pool = own(all[0]->sequence).pool();
    const auto others = std::stable_partition(all.begin(), all.end(), [&](const Item* item) {
      return own(item->sequence).pool() == pool;
    });
    here.assign(all.begin(), others);
    all.erase(all.begin(), others);
    body(std::span<const Item* const>(here));
  }
}

void TorchModel::make_room(std::span<TorchSequence* const> sequences, std::span<const int> counts) {
  CachePool& pool = *sequences[0]->pool();
  int blocks = 0;
  for (size_t i = 0; i < sequences.size(); ++i)
    blocks += sequences[i]->blocks_to_grow(counts[i]) +
              (counts[i] > 0 && sequences[i]->shared_last_block() >= 0);
  pool.reserve(blocks);
  // Nobody's blocks change before all copies are there.
  std::vector<std::pair<int, int>> copies;
  std::vector<std::pair<TorchSequence*, std::shared_ptr<const int>>> replacements;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const int shared = sequences[i]->shared_last_block();
    if (shared < 0 || counts[i] == 0) continue;
    replacements.emplace_back(sequences[i], pool.acquire());
    copies.emplace_back(shared, *replacements.back().second);
  }
  pool.copy(copies);
  for (auto& [sequence, block] : replacements) sequence->replace_last_block(std::move(block));
}

void TorchModel::extend(std::span<ExtendItem> items, std::stop_token stop) {
  std::set<const Sequence*> seen;
  LengthGuard<TorchSequence> lengths;
  for (const ExtendItem& item : items) {
    TorchSequence& sequence = own(item.sequence);
    if (!seen.insert(&sequence).second) fail("extend: a sequence occurs twice in one call");
    check_item(config_, item);
    lengths.remember(sequence);
  }
  torch_call(device_, [&] {
    for_each_pool(items, [&](std::span<const ExtendItem* const> here) { extend_pool(here, stop); });
  });
  lengths.keep();
}

void TorchModel::extend_pool(std::span<const ExtendItem* const> items,
                             const std::stop_token& stop) {
  std::vector<TorchSequence*> sequences;
  std::vector<int> counts;
  for (const ExtendItem* item : items) {
    sequences.push_back(&own(item->sequence));
    counts.push_back(static_cast<int>(item->tokens.size()));
  }
  make_room(sequences, counts);

  size_t item = 0, done = 0;  // next token: items[item]->tokens[done]
  while (item < items.size()) {
    TorchPass pass;
    while (item < items.size() && pass.rows() < chunk_rows) {
      const ExtendItem& current = *items[item];
      TorchSequence& sequence = *sequences[item];
      const size_t room = static_cast<size_t>(chunk_rows - pass.rows());
      const size_t count = std::min(room, current.tokens.size() - done);
      const int first_row = pass.rows();
      if (count > 0) {
        pass.segments.push_back(
            {&sequence, first_row, static_cast<int>(count), sequence.length(), {}});
        sequence.grow(static_cast<int>(count));
        const auto tokens = current.tokens.subspan(done, count);
        pass.tokens.insert(pass.tokens.end(), tokens.begin(), tokens.end());
        for (const ExtendItem::Wanted& wanted : current.wanted)
          if (wanted.index >= done && wanted.index < done + count && wanted.out.wants_anything())
            pass.wanted.push_back({first_row + static_cast<int>(wanted.index - done), wanted.out});
      }
      done += count;
      if (done == current.tokens.size()) {
        ++item;
        done = 0;
      }
    }
    if (pass.rows() > 0) forward_->run(pass);
    if (stop.stop_requested() && item < items.size()) throw Cancelled();
  }
}

void TorchModel::decode(std::span<DecodeItem> items) {
  if (items.empty()) return;
  std::set<const Sequence*> seen;
  LengthGuard<TorchSequence> lengths;
  for (const DecodeItem& item : items) {
    TorchSequence& sequence = own(item.sequence);
    if (!seen.insert(&sequence).second) fail("decode: a sequence occurs twice in one call");
    check_item(config_, item);
    lengths.remember(sequence);
  }
  torch_call(device_, [&] {
    for_each_pool(items, [&](std::span<const DecodeItem* const> here) { decode_pool(here); });
  });
  lengths.keep();
}

void TorchModel::decode_pool(std::span<const DecodeItem* const> items) {
  std::vector<TorchSequence*> sequences;
  for (const DecodeItem* item : items) sequences.push_back(&own(item->sequence));
  make_room(sequences, std::vector<int>(items.size(), 1));

  // Sequences that begin alike next to each other.
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (TorchSequence* sequence : sequences) sequence->grow(1);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return sequences[i]->block(0); });

  TorchPass pass;
  pass.decode = true;
  for (const size_t i : order) {
    const DecodeItem& item = *items[i];
    const int row = pass.rows();
    pass.segments.push_back({sequences[i], row, 1, sequences[i]->length() - 1, item.action});
    pass.tokens.push_back(item.token);
    pass.costs.push_back(item.cost);
    if (item.out.wants_anything()) pass.wanted.push_back({row, item.out});
  }
  forward_->run(pass);
}

std::vector<std::unique_ptr<Sequence>> TorchModel::fork(const Sequence& parent, int n) {
  const TorchSequence& sequence = own(&parent);
  std::vector<std::unique_ptr<Sequence>> children;
  for (int i = 0; i < n; ++i) children.push_back(sequence.fork());
  return children;
}

void TorchModel::truncate(Sequence& sequence, int length) {
  check_truncation(sequence, length);
  own(&sequence).truncate(length);
}

CacheUse TorchModel::cache_use() const {
  const std::lock_guard lock(pools_mutex_);
  CacheUse use;
  for (const auto& pool : pools_) {
    const uint64_t blocks = pool->blocks_in_use();
    use.blocks += blocks;
    use.bytes += blocks * static_cast<uint64_t>(pool->layout().block_bytes);
  }
  return use;
}

// From host memory: rollouts ask for a row per sequence and step.
void TorchModel::embedding(int32_t token, std::span<float> out) const {
  check_embedding(config_, token, out.size());
  const c10::InferenceMode no_gradients;
  const at::Tensor row = weights_->file_embedding.select(0, token)
                             .to(weights_->embedding.scalar_type())
                             .to(at::kFloat)
                             .contiguous();
  std::copy_n(row.data_ptr<float>(), config_.hidden_size, out.begin());
}

// A sequence's blocks come from a pool of the model that made it.
const TorchSequence& TorchModel::own(const Sequence* sequence) const {
  const auto* found = dynamic_cast<const TorchSequence*>(sequence);
  if (!found || std::ranges::find(pools_, found->pool()) == pools_.end())
    fail("the sequence was made by another model");
  return *found;
}

TorchSequence& TorchModel::own(Sequence* sequence) const {
  return const_cast<TorchSequence&>(own(static_cast<const Sequence*>(sequence)));
}

}  // namespace

std::unique_ptr<FrozenModel> make_torch_model(LlamaConfig config, TensorStore store,
                                              const std::string& device,
                                              const ModelOptions& options) {
  const at::Device found = find_device(device);
  check_supported(options);
  return torch_call(found, [&] {
    return std::make_unique<TorchModel>(std::move(config), std::move(store), found, options);
  });
}

std::unique_ptr<FrozenModel> load_torch_model(const std::filesystem::path& dir,
                                              const std::string& device,
                                              const ModelOptions& options) {
  (void)find_device(device);  // before anything is read
  check_supported(options);
  return make_torch_model(load_config(dir), TensorStore::open_directory(dir), device, options);
}

}  // namespace sol
