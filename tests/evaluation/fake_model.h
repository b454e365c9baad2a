// A FrozenModel without a transformer: what it answers depends on every token and action so far, so
// a mix-up of sequences, steps or arms changes the result.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/fail.h"
#include "evaluation/perplexity.h"
#include "sol/frozen_model.h"

namespace sol::test {

class FakeSequence final : public Sequence {
 public:
  int length() const override { return static_cast<int>(history.size()); }
  const SequenceOptions& options() const override { return options_; }
  uint64_t own_bytes() const override { return history.size() * 16; }

  std::vector<int32_t> history;
  double state = 0;
  SequenceOptions options_;
};

class FakeModel final : public FrozenModel {
 public:
  explicit FakeModel(int positions = 4096) {
    config_.hidden_size = 4;
    config_.num_layers = 1;
    config_.vocab_size = 50;
    config_.max_position_embeddings = positions;
  }

  const LlamaConfig& config() const override { return config_; }
  const std::string& fingerprint() const override { return fingerprint_; }
  Precision precision() const override { return Precision::f32; }
  uint64_t parameter_count() const override { return 1; }

  std::unique_ptr<Sequence> create(const SequenceOptions& options) override {
    auto made = std::make_unique<FakeSequence>();
    made->options_ = options;
    return made;
  }

  void extend(std::span<ExtendItem> items, std::stop_token) override {
    for (ExtendItem& item : items) {
      auto& sequence = static_cast<FakeSequence&>(*item.sequence);
      for (size_t i = 0; i < item.tokens.size(); ++i) {
        advance(sequence, item.tokens[i], Action{});
        for (const auto& wanted : item.wanted)
          if (wanted.index == i) answer(sequence, wanted.out);
      }
      prefilled += static_cast<int64_t>(item.tokens.size());
    }
  }

  void decode(std::span<DecodeItem> items) override {
    for (DecodeItem& item : items) {
      auto& sequence = static_cast<FakeSequence&>(*item.sequence);
      advance(sequence, item.token, item.action);
      answer(sequence, item.out);
      if (item.cost) item.cost->attended = static_cast<double>(item.action.kappa) / 2 + 0.5;
    }
    largest_batch = std::max(largest_batch, items.size());
    decoded += static_cast<int64_t>(items.size());
  }

  std::vector<std::unique_ptr<Sequence>> fork(const Sequence& parent, int n) override {
    std::vector<std::unique_ptr<Sequence>> children;
    for (int i = 0; i < n; ++i)
      children.push_back(std::make_unique<FakeSequence>(static_cast<const FakeSequence&>(parent)));
    return children;
  }

  // What is kept counts as computed densely.
  CacheUse cache_use() const override { return {}; }
  void truncate(Sequence& sequence, int length) override {
    auto& fake = static_cast<FakeSequence&>(sequence);
    const std::vector<int32_t> kept(fake.history.begin(), fake.history.begin() + length);
    fake.history.clear();
    fake.state = 0;
    for (const int32_t token : kept) advance(fake, token, Action{});
  }

  void embedding(int32_t token, std::span<float> out) const override {
    for (float& value : out) value = static_cast<float>(token);
  }

  // log p(target) after what `sequence` has seen; dearer actions are better.
  double log_prob(const FakeSequence& sequence, int32_t target) const {
    return -2 - 0.1 * std::abs(std::sin(sequence.state + 0.7 * target)) - 1.5 * sequence_cost_;
  }

  int64_t prefilled = 0, decoded = 0;
  size_t largest_batch = 0;
  bool broken = false;  // answers NaN

 private:
  void advance(FakeSequence& sequence, int32_t token, const Action& action) {
    const double spent = static_cast<double>(action.kappa + action.rho + action.eta()) / 3;
    sequence.state = std::fmod(sequence.state * 1.37 + token * 0.11 + spent * 3.3, 97.0);
    sequence.history.push_back(token);
    sequence_cost_ = 1 - spent;
  }

  void answer(const FakeSequence& sequence, const OutputRequest& out) const {
    if (out.hidden)
      for (int i = 0; i < config_.hidden_size; ++i)
        out.hidden[i] = static_cast<float>(sequence.state) + static_cast<float>(i);
    if (out.entropy) *out.entropy = static_cast<float>(std::fmod(sequence.state, 3.0));
    if (out.log_prob)
      *out.log_prob = broken ? std::nanf("") : static_cast<float>(log_prob(sequence, out.target));
  }

  LlamaConfig config_;
  std::string fingerprint_ = "00112233445566778899aabbccddeeff";
  double sequence_cost_ = 0;  // of the token that was advanced last
};

inline BlockDataset fake_blocks(int blocks, const ProtocolOptions& options) {
  std::vector<int32_t> ids;
  for (int i = 0; i < blocks * options.block_length(); ++i)
    ids.push_back(static_cast<int32_t>((i * 7919LL + i / 13) % 50));
  return BlockDataset::from_ids(std::move(ids), options.block_length());
}

inline ProtocolOptions small_protocol() {
  ProtocolOptions options;
  options.context = 20;
  options.horizon = 8;
  return options;
}

// Every arm on some blocks, with an evaluator of its own.
inline std::vector<std::vector<BlockResult>> evaluate_arms(
    FrozenModel& model, const BlockDataset& blocks, std::span<const int64_t> indices,
    std::span<const Arm> arms, const ProtocolOptions& options, bool keep_actions = false,
    const BlockProgress& progress = {}, std::stop_token stop = {}) {
  BlockEvaluator evaluator(model, blocks, {indices.begin(), indices.end()}, options);
  return evaluator.run(arms, keep_actions, progress, stop);
}

inline std::vector<int64_t> first_blocks(int64_t n) {
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < n; ++i) indices.push_back(i);
  return indices;
}

}  // namespace sol::test
