// A FrozenModel that is a table: hidden state and entropy are functions of token, position and
// action, so that tests see exactly what decode_step asked for and passed on.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "base/fail.h"
#include "sol/frozen_model.h"

namespace sol::test {

class FakeSequence final : public Sequence {
 public:
  explicit FakeSequence(const SequenceOptions& options) : options_(options) {}
  int length() const override { return static_cast<int>(tokens.size()); }
  const SequenceOptions& options() const override { return options_; }
  uint64_t own_bytes() const override { return 0; }

  std::vector<int32_t> tokens;
  std::vector<Action> actions;  // one per decoded token

 private:
  SequenceOptions options_;
};

class FakeModel final : public FrozenModel {
 public:
  static constexpr int hidden_size = 4, vocab_size = 10;

  FakeModel() {
    config_.hidden_size = hidden_size;
    config_.vocab_size = vocab_size;
  }

  static std::vector<float> hidden(int32_t token, int position, const Action& action) {
    const auto t = static_cast<float>(token), p = static_cast<float>(position);
    return {t + 1, p - 3, action.kappa, action.rho};
  }
  static std::vector<float> embedding_of(int32_t token) {
    return {static_cast<float>(token), 1, 2, 3};
  }
  static float entropy(int32_t token) { return 0.1f * static_cast<float>(token); }

  const LlamaConfig& config() const override { return config_; }
  const std::string& fingerprint() const override { return fingerprint_; }
  Precision precision() const override { return Precision::f32; }
  uint64_t parameter_count() const override { return 0; }

  std::unique_ptr<Sequence> create(const SequenceOptions& options) override {
    return std::make_unique<FakeSequence>(options);
  }
  void extend(std::span<ExtendItem> items, std::stop_token) override {
    for (ExtendItem& item : items) {
      auto& sequence = static_cast<FakeSequence&>(*item.sequence);
      sequence.tokens.insert(sequence.tokens.end(), item.tokens.begin(), item.tokens.end());
    }
  }
  void decode(std::span<DecodeItem> items) override {
    batch_sizes.push_back(items.size());
    for (DecodeItem& item : items) {
      if (item.token < 0 || item.token >= vocab_size) fail("token {}", item.token);
      auto& sequence = static_cast<FakeSequence&>(*item.sequence);
      const auto h = hidden(item.token, sequence.length(), item.action);
      sequence.tokens.push_back(item.token);
      sequence.actions.push_back(item.action);
      hidden_requests += item.out.hidden != nullptr;
      entropy_requests += item.out.entropy != nullptr;
      if (item.out.hidden) std::copy(h.begin(), h.end(), item.out.hidden);
      if (item.out.entropy) *item.out.entropy = entropy(item.token);
      if (item.out.log_prob) *item.out.log_prob = -static_cast<float>(item.out.target);
      if (item.cost) item.cost->bytes = 7;
    }
  }
  std::vector<std::unique_ptr<Sequence>> fork(const Sequence& parent, int n) override {
    std::vector<std::unique_ptr<Sequence>> children;
    for (int i = 0; i < n; ++i)
      children.push_back(std::make_unique<FakeSequence>(static_cast<const FakeSequence&>(parent)));
    return children;
  }
  CacheUse cache_use() const override { return {}; }
  void truncate(Sequence& sequence, int length) override {
    static_cast<FakeSequence&>(sequence).tokens.resize(static_cast<size_t>(length));
  }
  void embedding(int32_t token, std::span<float> out) const override {
    ++embedding_calls;
    const auto values = embedding_of(token);
    std::copy(values.begin(), values.end(), out.begin());
  }

  std::vector<size_t> batch_sizes;
  int hidden_requests = 0, entropy_requests = 0;
  mutable int embedding_calls = 0;

 private:
  LlamaConfig config_;
  std::string fingerprint_ = "fake";
};

}  // namespace sol::test
