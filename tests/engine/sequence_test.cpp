// Forks, truncation, refresh, batching and errors of the CPU engine.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <limits>

#include "base/cpu.h"
#include "base/threads.h"
#include "engine/cpu_model.h"
#include "engine/cpu_weights.h"
#include "golden.h"

namespace sol::test {
namespace {

std::unique_ptr<FrozenModel> tiny(bool deterministic = true) {
  return load_model(golden_dir() / "tiny_untied_f32", {Precision::f32, deterministic});
}

std::unique_ptr<FrozenModel> tiny_with_room(int positions) {
  const auto dir = golden_dir() / "tiny_untied_f32";
  LlamaConfig config = load_config(dir);
  config.max_position_embeddings = positions;
  return std::make_unique<CpuModel>(config, TensorStore::open_directory(dir),
                                    ModelOptions{Precision::f32, true});
}

std::vector<int32_t> tokens(int n, int seed) {
  std::vector<int32_t> ids;
  for (int i = 0; i < n; ++i) ids.push_back((i * 37 + seed * 101 + i * i) % 320);
  return ids;
}

void extend(FrozenModel& model, Sequence& sequence, std::span<const int32_t> ids) {
  ExtendItem item{&sequence, ids, {}};
  model.extend({&item, 1});
}

std::vector<float> decode(FrozenModel& model, Sequence& sequence, int32_t token, Action action = {},
                          StepCost* cost = nullptr) {
  std::vector<float> logits(static_cast<size_t>(model.config().vocab_size));
  DecodeItem item{&sequence, token, action, {.logits = logits.data()}, cost};
  model.decode({&item, 1});
  return logits;
}

constexpr Action harsh{0.2f, 0.4f, 4};

TEST(Sequence, ChildrenCostTheirOwnTokensOnly) {
  auto model = tiny();
  auto parent = model->create({});
  extend(*model, *parent, tokens(128, 1));
  auto children = model->fork(*parent, 16);
  for (auto& child : children) EXPECT_EQ(child->own_bytes(), 0u);
  const auto block = [&] {
    return static_cast<uint64_t>(dynamic_cast<CpuSequence&>(*parent).layout().block_bytes);
  }();
  for (auto& child : children) {
    for (int t = 0; t < 16; ++t) decode(*model, *child, 5 + t);
    EXPECT_EQ(child->own_bytes(), block);  // 16 tokens fit in one block
    EXPECT_EQ(child->length(), 144);
  }
  EXPECT_EQ(parent->length(), 128);
}

TEST(Sequence, AForkWritesNothingIntoItsParent) {
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
  EXPECT_EQ(from_sibling, expected);
  EXPECT_EQ(from_parent, expected);
}

TEST(Sequence, TruncateThenExtendEqualsNeverHavingStrayed) {
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
      EXPECT_EQ(decode(*model, *strayed, token, harsh), decode(*model, *straight, token, harsh))
          << cut;
    }
  }
}

TEST(Sequence, DeterministicResultsDependNeitherOnBatchNorOnThreads) {
  auto model = tiny();
  const int before = thread_count();
  std::vector<std::vector<float>> expected;
  for (int threads : {1, 2, 3}) {
    set_thread_count(threads);
    for (int batch : {1, 2, 5, 16}) {
      std::vector<std::unique_ptr<Sequence>> sequences;
      std::vector<ExtendItem> items;
      std::vector<std::vector<int32_t>> prefixes;
      for (int i = 0; i < batch; ++i) prefixes.push_back(tokens(20 + 7 * i, i));
      for (int i = 0; i < batch; ++i) {
        sequences.push_back(model->create({}));
        items.push_back({sequences.back().get(), prefixes[i], {}});
      }
      model->extend(items);
      for (int t = 0; t < 4; ++t) {
        std::vector<std::vector<float>> logits(static_cast<size_t>(batch), std::vector<float>(320));
        std::vector<DecodeItem> steps;
        for (int i = 0; i < batch; ++i) {
          const Action action{0.1f + 0.05f * static_cast<float>((i + t) % 10), i % 3 ? 0.5f : 1.0f,
                              4 + i % 13};
          steps.push_back({sequences[i].get(),
                           (i * 7 + t) % 320,
                           action,
                           {.logits = logits[i].data()},
                           nullptr});
        }
        model->decode(steps);
        for (int i = 0; i < batch; ++i) {
          const size_t key = static_cast<size_t>(i) * 4 + static_cast<size_t>(t);
          if (expected.size() <= key) expected.resize(key + 1);
          if (expected[key].empty()) expected[key] = logits[i];
          EXPECT_EQ(expected[key], logits[i])
              << threads << " threads, batch " << batch << ", sequence " << i;
        }
      }
    }
  }
  set_thread_count(before);
}

// Forks share a prefix in the arithmetic too. What comes out must be what unshared copies give,
// alone.
TEST(Sequence, ForksThatShareAPrefixEqualUnsharedCopies) {
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
        EXPECT_EQ(decode(*model, *copies[i], steps[i].token, steps[i].action, &cost), logits[i])
            << "context " << context << ", step " << t << ", child " << i;
        EXPECT_EQ(cost.bytes, costs[i].bytes);
        EXPECT_DOUBLE_EQ(cost.attended, costs[i].attended);
      }
    }
  }
  set_thread_count(before);
}

TEST(Sequence, BytesAreThoseOfTheTokensThatAnyHeadNeeds) {
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

TEST(Sequence, DenseChunksDoNotDependOnHowTokensArrive) {
  auto model = tiny();
  const auto prefix = tokens(200, 6);
  auto whole = model->create({}), pieces = model->create({});
  extend(*model, *whole, prefix);
  for (size_t at = 0, n = 1; at < prefix.size();
       at += n, n = std::min<size_t>(n * 2 + 1, prefix.size() - at)) {
    extend(*model, *pieces, std::span(prefix).subspan(at, std::min(n, prefix.size() - at)));
  }
  EXPECT_EQ(pieces->length(), 200);
  EXPECT_EQ(decode(*model, *whole, 9), decode(*model, *pieces, 9));
}

TEST(Sequence, ForcedSinksAndWindowAreAttendedTo) {
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

TEST(Sequence, DroppedChannelsAndPagesAreFewerBytes) {
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

// Outside the paper: half of the down projection's 128 inputs as well, alone as in a batch.
TEST(Sequence, PruneDownDropsInputsOfTheDownProjection) {
  ModelOptions options{.precision = Precision::f32, .deterministic = true};
  const auto plain = load_model(golden_dir() / "tiny_untied_f32", options);
  options.prune_down = true;
  const auto model = load_model(golden_dir() / "tiny_untied_f32", options);
  auto sequence = model->create({});
  extend(*model, *sequence, tokens(40, 8));
  const auto forks = model->fork(*sequence, 4);
  const Action half{1.0f, 0.5f, 16};
  StepCost dense, pruned;
  const auto dense_logits = decode(*model, *forks[0], 3, {}, &dense);
  const auto pruned_logits = decode(*model, *forks[1], 3, half, &pruned);
  EXPECT_EQ(dense.bytes - pruned.bytes, 3u * (32 * 2 * 128 + 64 * 64) * 4);
  EXPECT_NE(dense_logits, pruned_logits);

  auto same = plain->create({});
  extend(*plain, *same, tokens(40, 8));
  const auto plain_logits = decode(*plain, *same, 3, {});
  EXPECT_LT(max_difference(plain_logits.data(), dense_logits.data(), dense_logits.size()), 1e-4);

  std::vector<std::vector<float>> logits(2, std::vector<float>(320));
  std::vector<DecodeItem> items(2);
  for (size_t i = 0; i < 2; ++i) {
    items[i].sequence = forks[2 + i].get();
    items[i].token = 3;
    items[i].action = half;
    items[i].out.logits = logits[i].data();
  }
  model->decode(items);
  EXPECT_EQ(logits[0], pruned_logits);
  EXPECT_EQ(logits[1], pruned_logits);
}

// Outside the paper: channels by |x| times the norm of their weights.
TEST(Sequence, ChannelsCanBeRankedWithTheNormsOfTheirWeights) {
  ModelOptions options{.precision = Precision::f32, .deterministic = true};
  const auto plain = load_model(golden_dir() / "tiny_untied_f32", options);
  EXPECT_TRUE(plain->outside_paper().empty());
  options.channel_scores = ChannelScores::weight_norm;
  options.prune_down = true;
  const auto both = load_model(golden_dir() / "tiny_untied_f32", options);
  EXPECT_THAT(both->outside_paper(), testing::ElementsAre("prune-down", "channel-scores wina"));
  options.prune_down = false;
  const auto model = load_model(golden_dir() / "tiny_untied_f32", options);
  EXPECT_THAT(model->outside_paper(), testing::ElementsAre("channel-scores wina"));

  // The norms are those of the file's columns: of gate and up together.
  LlamaConfig config = load_config(golden_dir() / "tiny_untied_f32");
  const CpuWeights weights(config, TensorStore::open_directory(golden_dir() / "tiny_untied_f32"),
                           Precision::f32, {.channel_scores = ChannelScores::weight_norm});
  const TensorStore store = TensorStore::open_directory(golden_dir() / "tiny_untied_f32");
  for (const int channel : {0, 17, 63}) {
    double squares = 0;
    for (const char* name : {"gate_proj", "up_proj"}) {
      const auto values =
          store.tensors().at(fmt::format("model.layers.1.mlp.{}.weight", name)).to_floats();
      for (size_t out = 0; out < values.size() / 64; ++out)
        squares +=
            std::pow(static_cast<double>(values[out * 64 + static_cast<size_t>(channel)]), 2);
    }
    EXPECT_NEAR(weights.layers[1].gate_up_norms[static_cast<size_t>(channel)], std::sqrt(squares),
                1e-6);
  }

  const Action half{1.0f, 0.5f, 16};
  const auto run = [&](FrozenModel& one, const Action& action, StepCost* cost = nullptr) {
    auto sequence = one.create({});
    extend(one, *sequence, tokens(40, 8));
    return decode(one, *sequence, 3, action, cost);
  };
  StepCost cost, plain_cost;
  const auto logits = run(*model, half, &cost), plain_logits = run(*plain, half, &plain_cost);
  EXPECT_NE(logits, plain_logits);              // other channels
  EXPECT_EQ(cost.bytes, plain_cost.bytes);      // as many
  EXPECT_EQ(run(*model, {}), run(*plain, {}));  // none dropped: the same
  EXPECT_NE(run(*both, half), logits);

  // Alone as in a batch.
  auto sequence = model->create({});
  extend(*model, *sequence, tokens(40, 8));
  const auto forks = model->fork(*sequence, 6);
  std::vector<std::vector<float>> batch(6, std::vector<float>(320));
  std::vector<DecodeItem> items(6);
  for (size_t i = 0; i < 6; ++i) {
    items[i].sequence = forks[i].get();
    items[i].token = 3;
    items[i].action = half;
    items[i].out.logits = batch[i].data();
  }
  model->decode(items);
  for (const auto& one : batch) EXPECT_EQ(one, logits);
}

// Outside the paper: summaries follow the keys through forks and truncation as extrema do.
TEST(Sequence, PagesCanBeRankedByTheirMoments) {
  ModelOptions options{.precision = Precision::f32, .deterministic = true};
  const auto plain = load_model(golden_dir() / "tiny_untied_f32", options);
  options.page_scores = PageScores::moments;
  const auto model = load_model(golden_dir() / "tiny_untied_f32", options);
  EXPECT_THAT(model->outside_paper(), testing::ElementsAre("page-scores moments"));

  const Action sparse{0.1f, 1.0f, 16};
  const auto fresh = [&](FrozenModel& one, const Action& action) {
    auto sequence = one.create({});
    extend(one, *sequence, tokens(100, 8));
    return decode(one, *sequence, 3, action);
  };
  const auto logits = fresh(*model, sparse);
  EXPECT_NE(logits, fresh(*plain, sparse));
  EXPECT_EQ(fresh(*model, {}), fresh(*plain, {}));

  auto strayed = model->create({});
  extend(*model, *strayed, tokens(100, 8));
  extend(*model, *strayed, tokens(9, 5));
  model->truncate(*strayed, 98);
  auto child = std::move(model->fork(*strayed, 1)[0]);
  const auto all = tokens(100, 8);
  ExtendItem rest{child.get(), std::span(all).last(2), {}};
  model->extend({&rest, 1});
  EXPECT_EQ(decode(*model, *child, 3, sparse), logits);
}

// Outside the paper: sums are exact, so alone, in a batch and in dense passes products give the
// same bits in every mode, whatever ρ drops.
TEST(Sequence, Int8ActivationsAreTheSameAloneAndInABatch) {
  const std::vector<Action> actions{{}, {1.0f, 0.5f, 16}, {0.5f, 0.25f, 8}, {1.0f, 0.5f, 16}, {}};
  for (const bool deterministic : {false, true}) {
    for (const bool prune_down : {false, true}) {
      ModelOptions options{.precision = Precision::f32, .weights = WeightFormat::int8};
      options.deterministic = deterministic;
      options.prune_down = prune_down;
      const auto plain = load_model(golden_dir() / "tiny_untied_f32", options);
      options.int8_activations = true;
      const auto model = load_model(golden_dir() / "tiny_untied_f32", options);
      EXPECT_THAT(model->outside_paper(), testing::Contains("int8-activations"));
      const auto sequence = model->create({}), same = plain->create({});
      extend(*model, *sequence, tokens(40, 8));
      extend(*plain, *same, tokens(40, 8));
      const auto alone = model->fork(*sequence, static_cast<int>(actions.size()));
      const auto plain_logits = decode(*plain, *same, 3, {});
      std::vector<std::vector<float>> single;
      for (size_t i = 0; i < actions.size(); ++i)
        single.push_back(decode(*model, *alone[i], 3, actions[i]));
      const double difference =
          max_difference(single[0].data(), plain_logits.data(), plain_logits.size());
      EXPECT_GT(difference, 0);
      const auto [low, high] = std::ranges::minmax(plain_logits);
      EXPECT_LT(difference, 0.05 * (high - low));

      for (const size_t count : {size_t{3}, actions.size()}) {
        const auto together = model->fork(*sequence, static_cast<int>(count));
        std::vector<std::vector<float>> logits(count, std::vector<float>(320));
        std::vector<DecodeItem> items(count);
        for (size_t i = 0; i < count; ++i) {
          items[i].sequence = together[i].get();
          items[i].token = 3;
          items[i].action = actions[i];
          items[i].out.logits = logits[i].data();
        }
        model->decode(items);
        for (size_t i = 0; i < count; ++i) EXPECT_EQ(logits[i], single[i]) << i << " of " << count;
      }

      // A dense pass' attention sums in another order than decoding's.
      const auto prefilled = model->fork(*sequence, 1);
      std::vector<float> logits(320);
      const int32_t token = 3;
      ExtendItem item{prefilled[0].get(), {&token, 1}, {{0, {.logits = logits.data()}}}};
      model->extend({&item, 1});
      EXPECT_LT(max_difference(logits.data(), single[0].data(), logits.size()),
                0.02 * (high - low));
    }
  }
}

TEST(Sequence, Int8ActivationsNeedInt8Weights) {
  for (const WeightFormat weights : {WeightFormat::automatic, WeightFormat::int4}) {
    const ModelOptions options{.weights = weights, .int8_activations = true};
    EXPECT_THAT([&] { load_model(golden_dir() / "tiny_untied_f32", options); },
                testing::ThrowsMessage<Error>(testing::HasSubstr("--weights int8")));
  }
}

// Two to four sequences skip what none of them keeps; the bits are those of each alone.
TEST(Sequence, SmallBatchesSkipTogether) {
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
    EXPECT_EQ(logits[i], decode(*model, *alone[i], static_cast<int32_t>(3 + i), actions[i])) << i;
}

TEST(Sequence, LogProbAndEntropyAgreeWithTheLogits) {
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

template <typename Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Sequence, BadRequestsAreErrorsThatChangeNothing) {
  auto model = tiny();
  auto other = load_model(golden_dir() / "tiny_untied_f32", {Precision::f32});
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
  EXPECT_THAT(error_of([&] { decode(*other, *sequence, 1); }), testing::HasSubstr("another model"));
  EXPECT_THAT(error_of([&] { other->fork(*sequence, 1); }), testing::HasSubstr("another model"));
  EXPECT_THAT(error_of([&] { model->truncate(*sequence, 11); }),
              testing::HasSubstr("outside 0..10"));
  EXPECT_THAT(error_of([&] { model->create({.page_size = 0}); }),
              testing::HasSubstr("page size 0"));
  std::vector<DecodeItem> twice(2, DecodeItem{sequence.get(), 1, {}, {}, nullptr});
  EXPECT_THAT(error_of([&] { model->decode(twice); }), testing::HasSubstr("twice"));
  EXPECT_EQ(sequence->length(), 10);
}

TEST(Sequence, CancelledExtendLeavesTheSequenceAsItWas) {
  auto model = load_model(golden_dir() / "tiny_untied_f32", {Precision::f32, true});
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

TEST(Sequence, WeightsThatAreNotFiniteAreAnError) {
  TemporaryDirectory dir;
  const auto source = golden_dir() / "tiny_tied_bf16";
  std::filesystem::copy(source / "config.json", dir.path() / "config.json");
  std::string bytes = read_file(source / "model.safetensors");
  bytes[bytes.size() - 1] = '\x7f';  // the last weight, little-endian bf16: 0x7fc0 is a NaN
  bytes[bytes.size() - 2] = '\xc0';
  write_file_atomically(dir.path() / "model.safetensors", bytes);
  EXPECT_THAT(error_of([&] { load_model(dir.path()); }), testing::HasSubstr("holds nan"));
}

}  // namespace
}  // namespace sol::test
