// Choice of the largest and rounding against the kernels that define them.
#include "engine_torch/torch_actions.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <random>

#include "engine_torch/torch_cache.h"
#include "engine_torch/torch_device.h"
#include "kernels/select.h"
#include "torch_engines.h"

namespace sol::test {

std::vector<float> torch_key(const Sequence& sequence, int layer, int head, int position) {
  return dynamic_cast<const TorchSequence&>(sequence).key(layer, head, position);
}

namespace {

using at::Tensor;

const at::Device cpu(at::kCPU);

// Few distinct values: many ties, zeros of both signs among them.
std::vector<float> with_ties(int n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values;
  for (int i = 0; i < n; ++i)
    values.push_back(static_cast<float>(static_cast<int>(random() % 7) - 3) *
                     (random() % 2 ? 0.5f : -0.5f));
  return values;
}

TEST(TorchActions, PagesAreThoseThatTheKernelsChoose) {
  constexpr int tokens = 397, size = 4, pages = 100;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const std::vector<float> scores = with_ties(3 * pages, seed);
    const std::vector<int64_t> keep{1 + seed, pages, 40 + 2 * seed};
    const Tensor x = on_device(scores, {3, pages}, cpu);
    for (const bool ties : {false, true}) {
      const Tensor marked =
          mark_largest(x, on_device(keep, {3, 1}, cpu), pages,
                       ties ? at::ones({3, 1}, at::TensorOptions().dtype(at::kBool)) : Tensor());
      for (int row = 0; row < 3; ++row) {
        std::vector<uint64_t> expected(static_cast<size_t>(kernels::page_words(pages)));
        // Without sinks and window: a rule that forces nothing keeps ties, one that forces the
        // current token adds at most the last page.
        const kernels::PageRule rule{size, 0, 0, !ties};
        kernels::select_pages(&scores[static_cast<size_t>(row) * pages], tokens,
                              static_cast<int>(keep[static_cast<size_t>(row)]), rule,
                              expected.data());
        for (int p = 0; p < pages - 1; ++p)
          ASSERT_EQ(marked[row][p].item<bool>(), (expected[p / 64] >> (p % 64) & 1) != 0)
              << "seed " << seed << ", row " << row << ", page " << p;
      }
    }
  }
}

TEST(TorchActions, ChannelsAreThoseThatTheKernelsChoose) {
  constexpr int width = 96;
  const std::vector<Action> actions{{1, 0.01f, 16}, {1, 0.3f, 16}, {1, 1.0f, 16}, {1, 0.77f, 16}};
  const std::vector<float> values = with_ties(4 * width, 5);
  const Tensor kept =
      RowActions(actions, width, cpu).keep_channels(on_device(values, {4, width}, cpu));
  for (int row = 0; row < 4; ++row) {
    const float* x = &values[static_cast<size_t>(row) * width];
    std::vector<int> channels;
    kernels::top_channels(x, width, kernels::keep_count(actions[row].rho, width), channels);
    std::vector<float> expected(width, 0.0f);
    for (const int c : channels) expected[c] = x[c];
    for (int c = 0; c < width; ++c) ASSERT_EQ(kept[row][c].item<float>(), expected[c]) << row;
  }
}

TEST(TorchActions, RoundingIsTheKernelsBitForBit) {
  constexpr int width = 64;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<Action> actions;
  for (int bits = 2; bits <= 17; ++bits) actions.push_back({1, 1, bits});
  std::vector<float> values;
  for (size_t i = 0; i < actions.size() * width; ++i) values.push_back(normal(random));
  std::fill_n(values.begin(), width, 0.0f);
  const int64_t rows = static_cast<int64_t>(actions.size());
  const Tensor rounded =
      RowActions(actions, width, cpu).quantise(on_device(values, {rows, width}, cpu));
  for (size_t row = 0; row < actions.size(); ++row) {
    std::vector<float> expected(&values[row * width], &values[row * width] + width);
    kernels::kernels().fake_quantise(expected.data(), width, actions[row].bits);
    for (int i = 0; i < width; ++i)
      ASSERT_EQ(rounded[static_cast<int64_t>(row)][i].item<float>(), expected[i])
          << actions[row].bits << " bits";
  }
}

}  // namespace
}  // namespace sol::test
