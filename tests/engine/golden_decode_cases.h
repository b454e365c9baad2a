// Decode steps under actions against the authors' code (golden/sol/decode.json), alone and in a
// batch: what every engine has to show. Included by one test per engine, which instantiates
// GoldenDecode.
#pragma once

#include <algorithm>

#include "engines.h"

namespace sol::test {

struct DecodeCase {
  std::string name, folder;
  int page_size, prefill, steps;
};

// What test listings show of a case.
inline void PrintTo(const DecodeCase& c, std::ostream* out) {
  *out << c.name;
}

inline std::vector<DecodeCase> decode_cases() {
  std::vector<DecodeCase> all;
  const Json golden = read_json(golden_dir() / "sol" / "decode.json");
  for (const Json& c : golden.at("cases")) {
    all.push_back(
        {c.at("name"), c.at("folder"), c.at("page_size"), c.at("prefill"), c.at("steps")});
  }
  return all;
}

class GoldenDecode : public testing::TestWithParam<std::tuple<Engine, DecodeCase>> {
 protected:
  void SetUp() override { SOL_PREPARE_ENGINE(std::get<0>(GetParam())); }
  IsaGuard guard_;
};

TEST_P(GoldenDecode, StepsAgreeAloneAndInABatch) {
  const auto& [engine, test_case] = GetParam();
  const TensorStore golden =
      TensorStore::open_file(golden_dir() / "sol" / ("decode_" + test_case.name + ".safetensors"));
  const auto ids = golden.get("ids").to_ints();
  const auto keep = golden.get("keep").to_floats(), prune = golden.get("prune").to_floats();
  const auto bits = golden.get("bits").to_ints();
  const auto expected_logits = golden.get("logits").to_floats();
  const auto expected_hidden = golden.get("hidden").to_floats();
  const auto expected_prefill = golden.get("prefill_hidden_last").to_floats();
  const size_t length = ids.size() / 2;

  auto model = engine.load(golden_dir() / test_case.folder);
  const SequenceOptions options{.page_size = test_case.page_size, .force_sinks = false};
  std::vector<std::unique_ptr<Sequence>> together, alone;
  for (size_t b = 0; b < 2; ++b) {
    std::vector<int32_t> tokens(ids.begin() + static_cast<long>(b * length),
                                ids.begin() + static_cast<long>(b * length) + test_case.prefill);
    auto sequence = model->create(options);
    std::vector<float> hidden(64);
    ExtendItem item{sequence.get(), tokens, {{tokens.size() - 1, {.hidden = hidden.data()}}}};
    model->extend({&item, 1});
    EXPECT_LT(max_difference(hidden.data(), &expected_prefill[b * 64], 64), engine.tolerance);
    alone.push_back(std::move(model->fork(*sequence, 1)[0]));
    together.push_back(std::move(sequence));
  }

  std::vector<double> differences;
  std::vector<float> logits(2 * 320), hidden(2 * 64), single_logits(320), single_hidden(64);
  double worst_between = 0;
  for (int t = 0; t < test_case.steps; ++t) {
    std::vector<DecodeItem> items;
    for (size_t b = 0; b < 2; ++b) {
      const size_t at = b * static_cast<size_t>(test_case.steps) + static_cast<size_t>(t);
      const Action action{keep[at], prune[at], static_cast<int>(bits[at])};
      const auto token =
          static_cast<int32_t>(ids[b * length + static_cast<size_t>(test_case.prefill + t)]);
      items.push_back({together[b].get(),
                       token,
                       action,
                       {.hidden = &hidden[b * 64], .logits = &logits[b * 320]},
                       nullptr});
    }
    model->decode(items);
    for (size_t b = 0; b < 2; ++b) {
      const size_t at = b * static_cast<size_t>(test_case.steps) + static_cast<size_t>(t);
      differences.push_back(max_difference(&logits[b * 320], &expected_logits[at * 320], 320));
      differences.push_back(max_difference(&hidden[b * 64], &expected_hidden[at * 64], 64));
      DecodeItem single = items[b];
      single.sequence = alone[b].get();
      single.out = {.hidden = single_hidden.data(), .logits = single_logits.data()};
      model->decode({&single, 1});
      worst_between =
          std::max(worst_between, max_difference(&logits[b * 320], single_logits.data(), 320));
      if (engine.exact) {
        EXPECT_TRUE(std::equal(single_logits.begin(), single_logits.end(), &logits[b * 320]))
            << "step " << t << ": alone and in a batch must agree bit for bit";
      }
    }
  }
  std::sort(differences.begin(), differences.end());
  const bool quantised = std::any_of(bits.begin(), bits.end(), [](int64_t q) { return q < 16; });
  EXPECT_LT(differences.back(), quantised ? engine.worst_quantised : engine.tolerance);
  EXPECT_LT(differences[differences.size() * 9 / 10],
            quantised ? engine.most_quantised : engine.tolerance);
  // A library sums in an order of the processor's choosing (2.9e-5 on one without AMX), and
  // rounding to levels multiplies what the last bits differ by.
  EXPECT_LT(differences[differences.size() / 2], quantised && !engine.exact ? 1e-4 : 2e-5);
  EXPECT_LT(worst_between, quantised ? engine.worst_quantised : engine.tolerance);
}

inline std::string golden_decode_case(
    const testing::TestParamInfo<std::tuple<Engine, DecodeCase>>& param_info) {
  return std::get<0>(param_info.param).name + "_" + std::get<1>(param_info.param).name;
}

}  // namespace sol::test
