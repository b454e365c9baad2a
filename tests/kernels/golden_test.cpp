// Against values that the reference implementation computed (tests/data/golden/README.md).
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "kernel_cases.h"
#include "kernels/select.h"
#include "model/safetensors.h"
#include "support.h"

namespace sol::kernels {
namespace {

using nlohmann::json;

json read_json(const std::string& name) {
  std::ifstream file(test::test_data() / "golden/sol" / name);
  if (!file) throw std::runtime_error("cannot open " + name);
  return json::parse(file);
}

TensorStore read_tensors(const std::string& name) {
  return TensorStore::open_file(test::test_data() / "golden/sol" / name);
}

class Golden : public test::EachIsa {};
SOL_FOR_EACH_ISA(Golden);

std::vector<float> row(const std::vector<float>& all, int index, int width) {
  return {all.begin() + static_cast<int64_t>(index) * width,
          all.begin() + static_cast<int64_t>(index + 1) * width};
}

TEST_P(Golden, FakeQuantise) {
  const TensorStore golden = read_tensors("fake_quant.safetensors");
  const int rows = static_cast<int>(golden.get("x").shape[0]);
  const int width = static_cast<int>(golden.get("x").shape[2]);
  const auto x = golden.get("x").to_floats();
  const auto check = [&](const std::vector<float>& input, const TensorView& expected, auto bits_of,
                         bool as_bf16) {
    const auto y = expected.to_floats();
    for (int r = 0; r < rows; ++r) {
      auto z = row(input, r, width);
      fast().fake_quantise(z.data(), width, bits_of(r));
      if (as_bf16)
        for (float& v : z) v = to_float(to_bf16(v));
      EXPECT_SAME_BITS(z, row(y, r, width)) << expected.name << " row " << r;
    }
  };
  for (int bits = 2; bits <= 16; ++bits)
    check(
        x, golden.get(fmt::format("y_bits{}", bits)), [&](int) { return bits; }, false);
  const auto mixed = golden.get("mixed_bits").to_ints();
  check(
      x, golden.get("y_mixed"), [&](int r) { return static_cast<int>(mixed[r]); }, false);
  const auto x_bf16 = golden.get("x_bf16").to_floats();
  for (const int bits : {4, 5, 8, 12})
    check(
        x_bf16, golden.get(fmt::format("y_bf16_bits{}", bits)), [&](int) { return bits; }, true);
}

// Keys of one page after another: minima and maxima as the cache keeps them, and their scores.
std::vector<float> scores_of(const Kernels& k, const float* q, const float* keys, int n, int dim,
                             int page_size) {
  const int pages = (n + page_size - 1) / page_size;
  std::vector<float> extrema(static_cast<size_t>(pages) * 2 * dim), score(pages);
  for (int p = 0; p < pages; ++p)
    k.page_extrema(keys + static_cast<int64_t>(p) * page_size * dim, ElementType::f32,
                   std::min(page_size, n - p * page_size), dim, &extrema[p * 2 * dim]);
  const std::byte* block = reinterpret_cast<const std::byte*>(extrema.data());
  k.page_scores(q, 1, {&block, 0, pages, dim, ElementType::f32}, 0, pages, score.data(), pages);
  return score;
}

TEST_P(Golden, QuestSelection) {
  const TensorStore golden = read_tensors("quest_cases.safetensors");
  int checked = 0, heads_checked = 0;
  for (const json& c : read_json("quest_cases.json")) {
    const std::string id = fmt::format("c{}.", c["id"].get<int>());
    // One query over keys that are all there: the others are masked or span several queries.
    const std::string name = c["name"];
    if (c["Q"] != 1 || name.starts_with("left_pad") || !golden.has(id + "budgets")) continue;
    ++checked;
    const int batch = c["B"], heads = c["H"], kv_heads = c["Hkv"], dim = c["Dh"], n = c["K"];
    const int page_size = c["page_size"];
    const bool dense = c["dense"];
    const auto q = golden.get(id + "q").to_floats(), k = golden.get(id + "k").to_floats();
    const auto budgets = golden.get(id + "budgets").to_ints();
    const auto keep = dense ? std::vector<int64_t>{} : golden.get(id + "keep").to_ints();
    for (int b = 0; b < batch; ++b) {
      const int budget = static_cast<int>(std::clamp<int64_t>(budgets[b], 1, n));
      const int pages = (n + page_size - 1) / page_size;
      const int kept_pages = (budget + page_size - 1) / page_size;
      if (dense) {
        EXPECT_EQ(kept_pages, pages) << name;
      }
      for (int h = 0; h < heads && !dense; ++h) {
        const int kv = h / (heads / kv_heads);
        const auto score =
            scores_of(fast(), &q[(b * heads + h) * dim],
                      &k[static_cast<size_t>(b * kv_heads + kv) * n * dim], n, dim, page_size);
        const PageRule rule{page_size, 4, 16, false};
        std::vector<uint64_t> marks(page_words(pages));
        select_pages(score.data(), n, kept_pages, rule, marks.data());
        const RowPages row{marks.data(), n};
        std::vector<RowRun> runs;
        row_runs({&row, 1}, 1, rule, 0, n, runs);
        std::vector<int64_t> got(n, 0);
        for (const RowRun& r : runs) std::fill(&got[r.begin], &got[0] + r.end, 1);
        const auto expected = std::vector<int64_t>(keep.begin() + (b * heads + h) * n,
                                                   keep.begin() + (b * heads + h + 1) * n);
        EXPECT_EQ(got, expected) << name << " sequence " << b << " head " << h;
        ++heads_checked;
      }
    }
  }
  EXPECT_GE(checked, 60);
  EXPECT_GE(heads_checked, 400);
}

TEST(GoldenCounts, KeysAndChannels) {
  const json budgets = read_json("quest_budget_table.json");
  for (const auto& [share, counts] : budgets["keeps"].items())
    for (size_t n = 1; n <= counts.size(); ++n)
      ASSERT_EQ(keep_count(std::stof(share), static_cast<int>(n)), counts[n - 1].get<int>())
          << share << " of " << n;
  const json channels = read_json("pruned_mlp.json")["k_counts_fp32"];
  ASSERT_FALSE(channels.empty());
  for (const auto& [width, shares] : channels.items())
    for (const auto& [share, count] : shares.items())
      ASSERT_EQ(keep_count(std::stof(share), std::stoi(width)), count.get<int>())
          << share << " of " << width;
}

TEST_P(Golden, PrunedMlp) {
  const TensorStore golden = read_tensors("pruned_mlp.safetensors");
  const int hidden = static_cast<int>(golden.get("down_proj.weight").shape[0]);
  const int middle = static_cast<int>(golden.get("down_proj.weight").shape[1]);
  const auto transposed = [&](const std::string& name) {
    const auto w = golden.get(name).to_floats();
    std::vector<float> t(w.size());
    for (int o = 0; o < middle; ++o)
      for (int i = 0; i < hidden; ++i) t[i * middle + o] = w[o * hidden + i];
    return t;
  };
  const auto gate = transposed("gate_proj.weight"), up = transposed("up_proj.weight");
  const auto down = golden.get("down_proj.weight").to_floats();
  const WeightView gate_view{gate.data(), WeightType::f32, Layout::in_major,
                             hidden,      middle,          middle};
  const WeightView up_view{up.data(), WeightType::f32, Layout::in_major, hidden, middle, middle};
  const WeightView down_view{down.data(), WeightType::f32, Layout::out_major,
                             middle,      hidden,          middle};
  int compared = 0;
  const json description = read_json("pruned_mlp.json");
  for (const json& c : description["cases"]) {
    const std::string id = fmt::format("c{}.", c["id"].get<int>());
    const TensorView& input = golden.get(id + "x");
    const int tokens = static_cast<int>(input.shape[1]);
    const auto x = input.to_floats(), x_pruned = golden.get(id + "x_pruned").to_floats();
    const auto y = golden.get(id + "y").to_floats();
    for (int b = 0; b < input.shape[0]; ++b) {
      const json& keeps = c["keep"];
      const float share = keeps[keeps.size() == 1 ? 0 : b];
      const int bits = c["bits"].is_null() ? 16 : c["bits"][b].get<int>();
      for (int t = 0; t < tokens; ++t) {
        const auto in = row(x, b * tokens + t, hidden);
        const int keep = keep_count(share, hidden);
        std::vector<int> channels;
        top_channels(in.data(), hidden, keep, channels);
        ASSERT_EQ(channels.size(), static_cast<size_t>(keep));
        std::vector<float> pruned(hidden, 0.0f);
        for (const int i : channels) pruned[i] = in[i];

        // Our rule: what is kept is at least as large as what is not, ties go to the lower index.
        for (int i = 0; i < hidden; ++i) {
          if (std::binary_search(channels.begin(), channels.end(), i)) continue;
          for (const int j : channels)
            EXPECT_TRUE(std::fabs(in[j]) > std::fabs(in[i]) ||
                        (std::fabs(in[j]) == std::fabs(in[i]) && j < i));
        }
        // The reference scores by the maximum over the tokens and keeps every tie: comparable for
        // single tokens where it kept as many.
        const auto theirs = row(x_pruned, b * tokens + t, hidden);
        const auto kept =
            std::count_if(theirs.begin(), theirs.end(), [](float v) { return v != 0; });
        if (tokens > 1 || kept != keep) continue;
        EXPECT_EQ(pruned, theirs) << c["name"];
        std::vector<float> g(middle), u(middle), z(hidden);
        fast().matmul_in_major(gate_view, in.data(), 0, 1, channels.data(), keep, 0, middle,
                               g.data(), 0);
        fast().matmul_in_major(up_view, in.data(), 0, 1, channels.data(), keep, 0, middle, u.data(),
                               0);
        fast().silu_mul(g.data(), u.data(), middle, g.data());
        fast().matvec_out_major(down_view, g.data(), 0, hidden, z.data());
        fast().fake_quantise(z.data(), hidden, bits);
        // A value on a rounding tie may flip by one quantum of the quantiser.
        const float quantum = bits < 16 ? 8.0f / static_cast<float>((1 << (bits - 1)) - 1) : 0.0f;
        test::expect_near(z, row(y, b, hidden), 1e-5f + quantum * 1e-3f, 1e-5f);
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, 18);
}

}  // namespace
}  // namespace sol::kernels
