// Decode steps under actions against the authors' code (golden/sol/decode.json), alone and in a
// batch.
#include <algorithm>

#include "base/cpu.h"
#include "golden.h"

namespace sol::test {
namespace {

struct Case {
  std::string name, folder;
  int page_size, prefill, steps;
};

// What test listings show of a case.
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const Json golden = read_json(golden_dir() / "sol" / "decode.json");
  for (const Json& c : golden.at("cases")) {
    all.push_back(
        {c.at("name"), c.at("folder"), c.at("page_size"), c.at("prefill"), c.at("steps")});
  }
  return all;
}

class GoldenDecode : public testing::TestWithParam<std::tuple<Isa, bool, Case>> {
 protected:
  void SetUp() override { force_isa(std::get<0>(GetParam())); }
  IsaGuard guard_;
};

TEST_P(GoldenDecode, StepsAgreeAloneAndInABatch) {
  const auto& [isa, deterministic, test_case] = GetParam();
  const TensorStore golden =
      TensorStore::open_file(golden_dir() / "sol" / ("decode_" + test_case.name + ".safetensors"));
  const auto ids = golden.get("ids").to_ints();
  const auto keep = golden.get("keep").to_floats(), prune = golden.get("prune").to_floats();
  const auto bits = golden.get("bits").to_ints();
  const auto expected_logits = golden.get("logits").to_floats();
  const auto expected_hidden = golden.get("hidden").to_floats();
  const auto expected_prefill = golden.get("prefill_hidden_last").to_floats();
  const size_t length = ids.size() / 2;

  auto model = load_model(golden_dir() / test_case.folder, {Precision::f32, deterministic});
  const SequenceOptions options{.page_size = test_case.page_size, .force_sinks = false};
  std::vector<std::unique_ptr<Sequence>> together, alone;
  for (size_t b = 0; b < 2; ++b) {
    std::vector<int32_t> tokens(ids.begin() + static_cast<long>(b * length),
                                ids.begin() + static_cast<long>(b * length) + test_case.prefill);
    auto sequence = model->create(options);
    std::vector<float> hidden(64);
    ExtendItem item{sequence.get(), tokens, {{tokens.size() - 1, {.hidden = hidden.data()}}}};
    model->extend({&item, 1});
    EXPECT_LT(max_difference(hidden.data(), &expected_prefill[b * 64], 64), 5e-5);
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
      if (deterministic) {
        EXPECT_TRUE(std::equal(single_logits.begin(), single_logits.end(), &logits[b * 320]))
            << "step " << t << ": alone and in a batch must agree bit for bit";
      }
    }
  }
  std::sort(differences.begin(), differences.end());
  const bool quantised = std::any_of(bits.begin(), bits.end(), [](int64_t q) { return q < 16; });
  // A value on a rounding tie can flip by one quantum (tests/data/golden/README.md), which moves
  // the logits of a few rows by some thousandths: loose bound, tight bound for nine rows in ten
  // there.
  EXPECT_LT(differences.back(), quantised ? 1e-2 : 5e-5);
  EXPECT_LT(differences[differences.size() * 9 / 10], quantised ? 1e-3 : 5e-5);
  EXPECT_LT(differences[differences.size() / 2], 2e-5);
  EXPECT_LT(worst_between, quantised ? 1e-2 : 5e-5);
}

std::vector<Isa> isas() {
  const auto all = supported_isas();
  return {all.begin(), all.end()};
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, GoldenDecode,
                         testing::Combine(testing::ValuesIn(isas()), testing::Bool(),
                                          testing::ValuesIn(cases())),
                         [](const auto& param_info) {
                           return std::string(to_string(std::get<0>(param_info.param))) +
                                  (std::get<1>(param_info.param) ? "_own_" : "_library_") +
                                  std::get<2>(param_info.param).name;
                         });

}  // namespace
}  // namespace sol::test
