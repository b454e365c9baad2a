// Forks, truncation, refresh, batching and errors: what every engine has to show. Included by one
// test per engine, which instantiates EverySequence.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <limits>

#include "base/threads.h"
#include "engines.h"
#include "steps.h"

namespace sol::test {

class EverySequence : public testing::TestWithParam<Engine> {
 protected:
  void SetUp() override { SOL_PREPARE_ENGINE(GetParam()); }

  std::unique_ptr<FrozenModel> tiny() const {
    return GetParam().load(golden_dir() / "tiny_untied_f32");
  }
  std::unique_ptr<FrozenModel> tiny_with_room(int positions) const {
    const auto dir = golden_dir() / "tiny_untied_f32";
    LlamaConfig config = load_config(dir);
    config.max_position_embeddings = positions;
    return GetParam().make(config, TensorStore::open_directory(dir), Precision::f32);
  }

  // Where an engine's sums depend on the batch they differ by rounding, and a value on a rounding
  // tie of q may fall to the other side; logits of the golden models lie within about 10.
  static constexpr double summed = 1e-4, rounded = 2e-2;
  void expect_same(const std::vector<float>& a, const std::vector<float>& b,
                   double tolerance = summed) const {
    if (GetParam().exact) {
      EXPECT_EQ(a, b);
      return;
    }
    ASSERT_EQ(a.size(), b.size());
    EXPECT_LT(max_difference(a.data(), b.data(), a.size()), tolerance);
  }
  IsaGuard guard_;
};

TEST_P(EverySequence, ChildrenCostTheirOwnTokensOnly) {
  auto model = tiny();
  auto parent = model->create({});
  extend(*model, *parent, tokens(128, 1));
  auto children = model->fork(*parent, 16);
  for (auto& child : children) EXPECT_EQ(child->own_bytes(), 0u);
  // 16 tokens fit in one block of 32 tokens: keys and values, and extrema of 8 pages.
  const LlamaConfig& config = model->config();
  const uint64_t block =
      sizeof(float) * 2 * (32 + 32 / 4) *
      static_cast<uint64_t>(config.num_layers * config.num_kv_heads * config.head_dim);
  for (auto& child : children) {
    for (int t = 0; t < 16; ++t) decode(*model, *child, 5 + t);
    EXPECT_EQ(child->own_bytes(), block);
    EXPECT_EQ(child->length(), 144);
  }
  EXPECT_EQ(parent->length(), 128);
}

TEST_P(EverySequence, AForkWritesNothingIntoItsParent) {
  auto model = tiny();
  const auto prefix = tokens(45, 2);  // ends inside a block and inside a page
  auto parent = model->create({});
  extend(*model, *parent, prefix);
  auto children = model->fork(*parent, 2);
  for (int t = 0; t < 6; ++t) decode(*model, *children[0], 10 + t, harsh);
  const auto from_sibling = decode(*model, *children[1], 77, harsh);
  const auto from_parent = decode(*model, *parent, 77, harsh);
  auto fresh = model->create({});
  extend(*model, *fresh, prefix);
  const auto expected = decode(*model, *fresh, 77, harsh);
  expect_same(from_sibling, expected, rounded);
  expect_same(from_parent, expected, rounded);
}

TEST_P(EverySequence, TruncateThenExtendEqualsNeverHavingStrayed) {
  auto model = tiny();
  const auto prefix = tokens(70, 3), rest = tokens(9, 4);
  for (int cut : {70, 69, 66, 64, 33, 1}) {
    auto strayed = model->create({.page_size = 8});
    extend(*model, *strayed, prefix);
    for (int t = 0; t < 20; ++t)
      decode(*model, *strayed, 200 + t, harsh);  // polluted keys and values
    model->truncate(*strayed, cut);
    EXPECT_EQ(strayed->length(), cut);
    auto straight = model->create({.page_size = 8});
    extend(*model, *straight, std::span(prefix).first(static_cast<size_t>(cut)));
    // Page extrema of the cut page must have forgotten the dropped keys, or selection differs.
    for (int32_t token : rest) {
      SCOPED_TRACE(cut);
      StepCost cost, straight_cost;
      expect_same(decode(*model, *strayed, token, harsh, &cost),
                  decode(*model, *straight, token, harsh, &straight_cost), rounded);
      EXPECT_DOUBLE_EQ(cost.attended, straight_cost.attended);
    }
  }
}

// Forks share a prefix in the arithmetic too. What comes out must be what unshared copies give,
// alone.
TEST_P(EverySequence, ForksThatShareAPrefixEqualUnsharedCopies) {
  auto model = tiny_with_room(1024);
  const int before = thread_count();
  for (int context : {300, 513, 17}) {
    const auto prefix = tokens(context, 11);
    const SequenceOptions options{.page_size = 8, .sinks = 5, .window = 10};
    auto parent = model->create(options);
    extend(*model, *parent, prefix);
    constexpr size_t count = 7;
    auto children = model->fork(*parent, count);
    model->truncate(*children[5], context - 9);
    std::vector<std::unique_ptr<Sequence>> copies;
    for (size_t i = 0; i < count; ++i) {
      copies.push_back(model->create(options));
      extend(*model, *copies[i],
             std::span(prefix).first(static_cast<size_t>(children[i]->length())));
    }
    for (int t = 0; t < 20; ++t) {
      set_thread_count(1 + t % 3);
      std::vector<std::vector<float>> logits(count, std::vector<float>(320));
      std::vector<StepCost> costs(count);
      std::vector<DecodeItem> steps;
      for (size_t i = 0; i < count; ++i) {
        const float kappa = i % 3 == 0 ? 1.0f : 0.1f + 0.12f * static_cast<float>((i + t) % 7);
        steps.push_back({children[i].get(),
                         (t * 7 + static_cast<int>(i) / 4) % 320,
                         {kappa, 1.0f, 16},
                         {.logits = logits[i].data()},
                         &costs[i]});
      }
      model->decode(steps);
      for (size_t i = 0; i < count; ++i) {
        StepCost cost;
        SCOPED_TRACE(fmt::format("context {}, step {}, child {}", context, t, i));
        expect_same(decode(*model, *copies[i], steps[i].token, steps[i].action, &cost), logits[i]);
        EXPECT_EQ(cost.bytes, costs[i].bytes);
        EXPECT_DOUBLE_EQ(cost.attended, costs[i].attended);
      }
    }
  }
  set_thread_count(before);
}

TEST_P(EverySequence, BytesAreThoseOfTheTokensThatAnyHeadNeeds) {
  auto model = tiny();
  const LlamaConfig& config = model->config();
  auto sequence = model->create({.page_size = 4, .sinks = 0, .window = 0});
  extend(*model, *sequence, tokens(127, 12));
  auto forks = model->fork(*sequence, 2);
  StepCost dense, sparse;
  decode(*model, *forks[0], 3, {}, &dense);
  decode(*model, *forks[1], 3, {4.0f / 128, 1.0f, 16}, &sparse);
  const uint64_t vector = sizeof(float) * static_cast<uint64_t>(config.head_dim);
  const uint64_t key_heads = static_cast<uint64_t>(config.num_kv_heads * config.num_layers);
  const uint64_t all = 2 * vector * 128 * key_heads, extrema = 2 * vector * 32 * key_heads;
  const uint64_t weights = dense.bytes - all;
  // One page and the current token for every query head; at best all of a group choose the same.
  const uint64_t page = 2 * vector * 4 * key_heads, token = 2 * vector * key_heads;
  EXPECT_GE(sparse.bytes, weights + extrema + page);
  EXPECT_LE(sparse.bytes, weights + extrema + page * static_cast<uint64_t>(config.group()) + token);
}

TEST_P(EverySequence, DenseChunksDoNotDependOnHowTokensArrive) {
  auto model = tiny();
  const auto prefix = tokens(200, 6);
  auto whole = model->create({}), pieces = model->create({});
  extend(*model, *whole, prefix);
  for (size_t at = 0, n = 1; at < prefix.size();
       at += n, n = std::min<size_t>(n * 2 + 1, prefix.size() - at)) {
    extend(*model, *pieces, std::span(prefix).subspan(at, std::min(n, prefix.size() - at)));
  }
  EXPECT_EQ(pieces->length(), 200);
  expect_same(decode(*model, *whole, 9), decode(*model, *pieces, 9));
}

TEST_P(EverySequence, ForcedSinksAndWindowAreAttendedTo) {
  auto model = tiny();
  auto sequence = model->create({.page_size = 4, .sinks = 4, .window = 2});
  extend(*model, *sequence, tokens(100, 7));
  StepCost cost;
  decode(*model, *sequence, 3, {0.01f, 1.0f, 16}, &cost);  // two keys' worth: one page
  // One page of 4, plus at most 4 sinks and window + current = 3, of 101 keys.
  EXPECT_GE(cost.attended, 4.0 / 101 - 1e-9);
  EXPECT_LE(cost.attended, 11.0 / 101 + 1e-9);
  decode(*model, *sequence, 3, {}, &cost);
  EXPECT_DOUBLE_EQ(cost.attended, 1.0);
}

TEST_P(EverySequence, DroppedChannelsAndPagesAreFewerBytes) {
  auto model = tiny();
  auto sequence = model->create({});
  extend(*model, *sequence, tokens(200, 8));
  StepCost dense, pruned, sparse;
  auto forks = model->fork(*sequence, 3);
  decode(*model, *forks[0], 3, {}, &dense);
  decode(*model, *forks[1], 3, {1.0f, 0.5f, 16}, &pruned);
  decode(*model, *forks[2], 3, {0.1f, 1.0f, 16}, &sparse);
  // 3 layers, half of 64 channels, gate and up rows of 128 floats each.
  EXPECT_EQ(dense.bytes - pruned.bytes, 3u * 32 * 2 * 128 * 4);
  EXPECT_LT(sparse.bytes, dense.bytes);
}

// The CPU engine skips what none of two to four sequences keeps.
TEST_P(EverySequence, SmallBatchesEqualEachAlone) {
  auto model = tiny();
  auto sequence = model->create({});
  extend(*model, *sequence, tokens(40, 8));
  const std::vector<Action> actions{
      {1.0f, 0.25f, 16}, {1.0f, 0.5f, 16}, {1.0f, 0.1f, 16}, {1.0f, 0.25f, 8}};
  const auto alone = model->fork(*sequence, 4), together = model->fork(*sequence, 4);
  std::vector<std::vector<float>> logits(4, std::vector<float>(320));
  std::vector<DecodeItem> items(4);
  for (size_t i = 0; i < 4; ++i) {
    items[i].sequence = together[i].get();
    items[i].token = static_cast<int32_t>(3 + i);
    items[i].action = actions[i];
    items[i].out.logits = logits[i].data();
  }
  model->decode(items);
  for (size_t i = 0; i < 4; ++i)
    expect_same(logits[i], decode(*model, *alone[i], static_cast<int32_t>(3 + i), actions[i]),
                actions[i].bits < 16 ? rounded : summed);
}

TEST_P(EverySequence, LogProbAndEntropyAgreeWithTheLogits) {
  auto model = tiny();
  auto sequence = model->create({});
  extend(*model, *sequence, tokens(30, 9));
  std::vector<float> logits(320);
  float log_prob = 0, entropy = 0;
  DecodeItem item{
      sequence.get(),
      4,
      {},
      {.logits = logits.data(), .target = 17, .log_prob = &log_prob, .entropy = &entropy},
      nullptr};
  model->decode({&item, 1});
  double sum = 0, expected_entropy = 0;
  for (float x : logits) sum += std::exp(static_cast<double>(x));
  for (float x : logits) expected_entropy -= std::exp(x) / sum * (x - std::log(sum));
  EXPECT_NEAR(log_prob, logits[17] - std::log(sum), 1e-5);
  EXPECT_NEAR(entropy, expected_entropy, 1e-4);
}

TEST_P(EverySequence, BadRequestsAreErrorsThatChangeNothing) {
  auto model = tiny();
  auto other = tiny();
  auto sequence = model->create({});
  extend(*model, *sequence, tokens(10, 1));
  EXPECT_THAT(error_of([&] { decode(*model, *sequence, 320); }),
              testing::HasSubstr("vocabulary of 320"));
  EXPECT_THAT(error_of([&] { decode(*model, *sequence, -1); }), testing::HasSubstr("vocabulary"));
  EXPECT_THAT(error_of([&] { extend(*model, *sequence, tokens(247, 1)); }),
              testing::HasSubstr("exceed the model's context of 256"));
  EXPECT_THAT(error_of([&] {
                decode(*model, *sequence, 1, {0.0f, 1.0f, 16});
              }),
              testing::HasSubstr("out of range"));
  EXPECT_THAT(error_of([&] {
                decode(*model, *sequence, 1, {1.0f, 1.5f, 16});
              }),
              testing::HasSubstr("out of range"));
  for (const int bits : {1, 17})
    EXPECT_THAT(error_of([&] {
                  decode(*model, *sequence, 1, {1.0f, 1.0f, bits});
                }),
                testing::HasSubstr(fmt::format("bits {} is out of range", bits)));
  EXPECT_THAT(error_of([&] { decode(*other, *sequence, 1); }), testing::HasSubstr("another model"));
  EXPECT_THAT(error_of([&] { other->fork(*sequence, 1); }), testing::HasSubstr("another model"));
  EXPECT_THAT(error_of([&] { model->truncate(*sequence, 11); }),
              testing::HasSubstr("outside 0..10"));
  EXPECT_THAT(error_of([&] { model->create({.page_size = 0}); }),
              testing::HasSubstr("page size 0"));
  for (const int count : {-1, most_forced_tokens + 1, std::numeric_limits<int>::max()}) {
    const std::string outside = fmt::format("{}, is outside 0..16777216", count);
    EXPECT_THAT(error_of([&] { model->create({.sinks = count}); }),
                testing::HasSubstr("sink tokens, " + outside));
    EXPECT_THAT(error_of([&] { model->create({.window = count}); }),
                testing::HasSubstr("window tokens, " + outside));
  }
  auto all = model->create({.sinks = most_forced_tokens, .window = most_forced_tokens});
  extend(*model, *all, tokens(10, 1));
  StepCost cost;
  decode(*model, *all, 1, harsh, &cost);
  EXPECT_DOUBLE_EQ(cost.attended, 1.0);
  std::vector<DecodeItem> twice(2, DecodeItem{sequence.get(), 1, {}, {}, nullptr});
  EXPECT_THAT(error_of([&] { model->decode(twice); }), testing::HasSubstr("twice"));
  EXPECT_EQ(sequence->length(), 10);
}

TEST_P(EverySequence, CancelledExtendLeavesTheSequenceAsItWas) {
  auto model = tiny();
  std::vector<std::unique_ptr<Sequence>> sequences;
  std::vector<ExtendItem> items;
  const auto ids = tokens(200, 2);
  for (int i = 0; i < 8; ++i) {
    sequences.push_back(model->create({}));
    items.push_back({sequences.back().get(), ids, {}});
  }
  std::stop_source source;
  source.request_stop();
  EXPECT_THROW(model->extend(items, source.get_token()), Cancelled);
  for (auto& sequence : sequences) EXPECT_EQ(sequence->length(), 0);
}

TEST_P(EverySequence, WeightsThatAreNotFiniteAreAnError) {
  TemporaryDirectory dir;
  const auto source = golden_dir() / "tiny_tied_bf16";
  std::filesystem::copy(source / "config.json", dir.path() / "config.json");
  std::string bytes = read_file(source / "model.safetensors");
  bytes[bytes.size() - 1] = '\x7f';  // the last weight, little-endian bf16: 0x7fc0 is a NaN
  bytes[bytes.size() - 2] = '\xc0';
  write_file_atomically(dir.path() / "model.safetensors", bytes);
  EXPECT_THAT(error_of([&] { GetParam().load(dir.path()); }), testing::HasSubstr("holds nan"));
}

}  // namespace sol::test
