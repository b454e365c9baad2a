#include "policy/cost_table.h"

#include <functional>

#include "support.h"
#include "throws.h"

namespace sol {
namespace {

using test::throws;

// Dense 10 ms at 100 keys and 20 at 300; half the context saves 2 and 6, half the channels 4.
CostTable made() {
  return CostTable(16, {0.5f}, {{100, 10, 16, {2}}, {300, 20, 16, {6}}}, {4});
}

TEST(CostTable, InterpolatesSharesAndLengths) {
  const CostTable costs = made();
  EXPECT_DOUBLE_EQ(costs.step_ms(1, 1, 100), 10);
  EXPECT_DOUBLE_EQ(costs.step_ms(1, 1, 200), 15);
  EXPECT_DOUBLE_EQ(costs.step_ms(1, 1, 50), 10);   // level below the shortest
  EXPECT_DOUBLE_EQ(costs.step_ms(1, 1, 500), 30);  // attention goes on growing
  EXPECT_DOUBLE_EQ(costs.step_ms(0.5f, 1, 200), 11);
  EXPECT_DOUBLE_EQ(costs.step_ms(0.75f, 1, 100), 9);
  EXPECT_DOUBLE_EQ(costs.step_ms(0.1f, 1, 100), 8);  // not below what was measured
  EXPECT_DOUBLE_EQ(costs.step_ms(0.5f, 0.5f, 300), 10);
  EXPECT_DOUBLE_EQ(costs.token_ms(1, 1, 100), 10);  // nothing to refresh
  EXPECT_DOUBLE_EQ(costs.token_ms(0.5f, 1, 100), 9);
}

// Noise, or a file of another hand: whatever falls towards the longest length stays there.
TEST(CostTable, BeyondTheLongestLengthNoTimeFalls) {
  const CostTable falling(16, {0.5f}, {{100, 10, 32, {1}}, {200, 10, 16, {6}}}, {2});
  const Budget lowest{0.5f, 0.5f, 1.0f};
  for (const int keys : {201, 400, 2000, 1 << 24}) {
    EXPECT_DOUBLE_EQ(falling.step_ms(1, 1, keys), 10);
    EXPECT_DOUBLE_EQ(falling.step_ms(0.5f, 1, keys), 4);
    EXPECT_DOUBLE_EQ(falling.token_ms(0.5f, 1, keys), 5);  // 16 ms of refresh for 16 tokens
    EXPECT_DOUBLE_EQ(falling.fastest_ms(keys, lowest), 3);
    EXPECT_DOUBLE_EQ(falling.share_ms(0.5, keys), 6);
    EXPECT_DOUBLE_EQ(falling.share_for(5, keys, lowest), 0.4);
  }
  EXPECT_DOUBLE_EQ(falling.token_ms(0.5f, 1, 150), 6.5 + 1.5);  // between lengths as measured
}

// A loss that was measured is a part of the step, which no context makes a larger one.
TEST(CostTable, BeyondTheLongestLengthNoLossGrows) {
  const CostTable costs(16, {0.5f}, {{100, 10, 16, {0}}, {200, 12, 16, {-6}}}, {1});
  EXPECT_DOUBLE_EQ(costs.step_ms(0.5f, 1, 150), 14);  // between lengths as measured
  EXPECT_DOUBLE_EQ(costs.step_ms(0.5f, 1, 200), 18);
  EXPECT_DOUBLE_EQ(costs.step_ms(1, 1, 1200), 32);
  EXPECT_DOUBLE_EQ(costs.step_ms(0.5f, 1, 1200), 1.5 * 32);
  EXPECT_DOUBLE_EQ(costs.step_ms(0.5f, 0.5f, 1200), 1.5 * 32 - 1);
  // What saves less and less saves nothing in the end, and costs no more than the dense step.
  const CostTable less(16, {0.5f}, {{100, 10, 16, {4}}, {200, 12, 16, {2}}}, {1});
  EXPECT_DOUBLE_EQ(less.step_ms(0.5f, 1, 1200), 32);
}

TEST(CostTable, LowersAxesByWhatTheySave) {
  const CostTable costs = made();
  const Budget lowest{0.5f, 0.5f, 0.5f};
  EXPECT_EQ(costs.budget_for(10, 100, lowest), Budget{});
  const Budget some = costs.budget_for(8, 100, lowest);
  EXPECT_NEAR(costs.token_ms(some.kappa, some.rho, 100), 8, 1e-3);
  EXPECT_NEAR((1 - some.rho) / (1 - some.kappa), 2.0, 1e-3);  // channels save twice as much
  const Budget far = costs.budget_for(14, 300, lowest);
  EXPECT_LT(far.kappa, far.rho);  // at this length the context saves more
  EXPECT_EQ(costs.budget_for(0.1, 100, lowest), (Budget{0.5f, 0.5f, 1.0f}));
  // A refresh of 8 ms in 16 tokens takes back more than the 0.3 ms that are saved.
  const CostTable slower(16, {0.5f}, {{100, 10, 8, {0}}}, {0.3});
  EXPECT_EQ(slower.budget_for(9, 100, lowest), Budget{});
  EXPECT_EQ(slower.fastest_ms(100, lowest), 10);
  const CostTable useless(16, {0.5f}, {{100, 10, 16, {-1}}}, {0});
  EXPECT_EQ(useless.budget_for(5, 100, lowest), Budget{});
}

TEST(CostTable, SurvivesJson) {
  const CostTable costs = made();
  const CostTable again = CostTable::from_json(costs.to_json(), "x.json");
  EXPECT_EQ(again.to_json(), costs.to_json());
  Json broken = costs.to_json();
  broken["shares"] = {0.5, 1.5};
  EXPECT_THAT([&] { CostTable::from_json(broken, "x.json"); }, throws({"x.json", "shares"}));
  broken = costs.to_json();
  broken["lengths"][1]["keys"] = 100;
  EXPECT_THAT([&] { CostTable::from_json(broken, "x.json"); }, throws({"x.json", "ascend"}));
  broken = costs.to_json();
  broken["lengths"][0]["saved_ms"] = "no";
  EXPECT_THAT([&] { CostTable::from_json(broken, "x.json"); }, throws({"x.json", "saved_ms"}));
  broken = costs.to_json();
  EXPECT_THAT([&] { CostTable::from_json(Json::array(), "x.json"); }, throws({"x.json"}));
}

TEST(CostTable, TimesThatNothingCanHaveMeasuredAreNamed) {
  const auto refused = [](const std::function<void(Json&)>& spoil, const std::string& entry) {
    Json json = made().to_json();
    spoil(json);
    EXPECT_THAT([&] { CostTable::from_json(json, "x.json"); },
                throws({"x.json", "\"" + entry + "\"", "`sol calibrate`"}));
  };
  for (const double bad : {-10.0, 0.0, 1e300, 1e10}) {
    refused([&](Json& j) { j["lengths"][1]["dense_ms"] = bad; }, "lengths[1].dense_ms");
    refused([&](Json& j) { j["lengths"][0]["refresh_ms"] = bad; }, "lengths[0].refresh_ms");
  }
  for (const double bad : {10.0, 20.0, 1e300, -1e300, -1000.0}) {
    refused([&](Json& j) { j["lengths"][0]["saved_ms"][0] = bad; }, "lengths[0].saved_ms[0]");
    // Of the shortest step there is, 10 ms.
    refused([&](Json& j) { j["channels_saved_ms"][0] = bad; }, "channels_saved_ms[0]");
  }
  Json all = made().to_json();
  for (Json& length : all["lengths"]) length["dense_ms"] = length["saved_ms"][0] = 1;
  EXPECT_THAT([&] { CostTable::from_json(all, "x.json"); }, throws({"lengths[0].saved_ms[0]"}));
  // Noise: a little is lost where nothing is saved.
  Json noise = made().to_json();
  noise["lengths"][0]["saved_ms"][0] = noise["channels_saved_ms"][0] = -3;
  EXPECT_NO_THROW(CostTable::from_json(noise, "x.json"));
}

TEST(CostTable, SavingsTogetherLeaveAStep) {
  const auto changed = [](double context, double channels) {
    Json json = made().to_json();
    json["lengths"][0]["saved_ms"][0] = context;  // of 10 ms
    json["channels_saved_ms"][0] = channels;
    return json;
  };
  const auto refused = [&](double context, double channels) {
    EXPECT_THAT([&] { CostTable::from_json(changed(context, channels), "x.json"); },
                throws({"x.json", "\"lengths[0].saved_ms\" and \"channels_saved_ms\" together",
                        "of 10 ms", "`sol calibrate`"}));
  };
  refused(6, 4);
  refused(9, 9);
  refused(-500, -600);
  EXPECT_NO_THROW(CostTable::from_json(changed(5.5, 4), "x.json"));
  EXPECT_NO_THROW(CostTable::from_json(changed(9, -3), "x.json"));
}

TEST(CostTable, ALongerContextTakesNoLessButForNoise) {
  const auto changed = [](const char* field, double first) {
    Json json = made().to_json();
    json["lengths"][0][field] = first;
    return json;
  };
  const auto refused = [&](const char* field, double first) {
    EXPECT_THAT([&] { CostTable::from_json(changed(field, first), "x.json"); },
                throws({"x.json", std::string("\"lengths[1].") + field + "\"", "a shorter context",
                        "`sol calibrate`"}));
  };
  refused("dense_ms", 50);     // then 20
  refused("refresh_ms", 100);  // then 16
  EXPECT_NO_THROW(CostTable::from_json(changed("dense_ms", 25), "x.json"));
  EXPECT_NO_THROW(CostTable::from_json(changed("refresh_ms", 20), "x.json"));
}

TEST(CostTable, TellsWhetherAnythingSavesTime) {
  EXPECT_TRUE(made().saves_time());
  EXPECT_TRUE(CostTable(16, {0.5f}, {{100, 10, 16, {0}}, {300, 20, 16, {1}}}, {-1}).saves_time());
  EXPECT_TRUE(CostTable(16, {0.5f}, {{100, 10, 16, {0}}}, {1}).saves_time());
  EXPECT_FALSE(CostTable(16, {0.5f}, {{100, 10, 16, {0}}, {300, 20, 16, {-1}}}, {0}).saves_time());
}

TEST(CostTable, TurnsTimesIntoSharesOfTheDenseTime) {
  const CostTable costs = made();
  const Budget lowest{0.5f, 0.5f, 1.0f};
  // A token at 100 keys: 10 ms densely, at least 10 - 2 - 4 and 1 of a refresh otherwise.
  EXPECT_DOUBLE_EQ(costs.share_for(10, 100, lowest), 1.0);
  EXPECT_DOUBLE_EQ(costs.share_for(8, 100, lowest), 0.7);
  EXPECT_DOUBLE_EQ(costs.share_ms(0.7, 100), 8);
  EXPECT_DOUBLE_EQ(costs.share_ms(1.0, 100), 10);  // nothing to refresh
  EXPECT_DOUBLE_EQ(costs.share_for(0.1, 100, lowest), 0.4);
  EXPECT_DOUBLE_EQ(costs.share_for(0.1, 100, lowest, 0.6), 0.6);
  EXPECT_DOUBLE_EQ(costs.share_for(9.5, 100, lowest), 0.85);
  EXPECT_DOUBLE_EQ(costs.share_for(9.5, 100, lowest, 0.6, 0.7), 0.7);
  EXPECT_DOUBLE_EQ(costs.share_for(10, 100, lowest, 0.6, 0.7), 1.0);  // dense needs no policy
  EXPECT_DOUBLE_EQ(costs.share_for(8, 200, lowest), 7.0 / 15);
  const CostTable slower(16, {0.5f}, {{100, 10, 8, {0}}}, {0.3});
  EXPECT_DOUBLE_EQ(slower.share_for(5, 100, lowest), 1.0);  // the refresh costs more than is saved
}

TEST(CostTable, BitsAreNoTime) {
  require_times_fit(ActionSpace({0.5f, 1.0f}, {1.0f}, {16}));
  EXPECT_THAT(
      [] {
        require_times_fit(ActionSpace({0.5f, 1.0f}, {1.0f}, {5, 16}));
      },
      throws({"bits save no time", "from 5 bits"}));
}

}  // namespace
}  // namespace sol
