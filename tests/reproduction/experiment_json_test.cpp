// Results come back from their files exactly as they were found.
#include "reproduction/experiment_json.h"

#include "support.h"
#include "throws.h"

namespace sol {
namespace {

using test::throws;

Outcome outcome(double base) {
  Outcome one;
  one.asked = {0.25f, 0.6f, 0.5f};
  one.realised = {0.1f + 0.7f, 0.625f, 0.4375f};
  one.net_keep = base / 3;
  one.perplexity = base * 7.1;
  one.attended = 0.3;
  one.seconds_per_token = 1e-4 / 3;
  one.steps = 32;
  one.effective_steps = 30;
  one.nll = {base, base * 1.0000001};
  return one;
}

Sweep example() {
  Sweep sweep{.policy = "learned",
              .baselines = {"fixed", "emc"},
              .space = ActionSpace({0.1f, 1.0f}, {0.6f, 1.0f}, {5, 16}),
              .protocol = {},
              .blocks = {4, 9},
              .points = {},
              .dense = outcome(1),
              .seconds = 1.5,
              .decoded_tokens = 64};
  sweep.protocol.context = 77;
  sweep.protocol.horizon = 16;
  sweep.protocol.sequence.page_size = 8;
  sweep.points.push_back({.requested = {0.3f, 0.7f, 0.5f},
                          .inside = false,
                          .policy = outcome(2),
                          .realised = {outcome(3), outcome(4)},
                          .requested_budget = {}});
  return sweep;
}

TEST(ExperimentJson, Sweeps) {
  const Json json = sweep_to_json(example());
  // Through text, as a file would.
  const Sweep back = sweep_from_json(parse_json(json.dump(), "x"), "x");
  EXPECT_EQ(sweep_to_json(back), json);
  EXPECT_EQ(back.space, example().space);
  EXPECT_EQ(back.points[0].realised[1].nll, example().points[0].realised[1].nll);
  EXPECT_EQ(back.points[0].policy.realised, example().points[0].policy.realised);
  EXPECT_EQ(back.protocol.context, 77);
  EXPECT_FALSE(back.points[0].inside);
  EXPECT_TRUE(back.points[0].requested_budget.empty());
}

TEST(ExperimentJson, Searches) {
  SearchPoint point;
  point.requested = {0.3f, 0.7f, 0.5f};
  point.realised = {0.31f, 0.71f, 0.51f};
  point.policy = {0.5, 10.0 / 3};
  point.fixed = {0.5, 11.0 / 3};
  point.random = {{"random-matched", {{0.5, 12}, {0.6, 13}}}};
  const Json json = search_to_json({point});
  const auto back = search_from_json(parse_json(json.dump(), "x"), "x");
  EXPECT_EQ(search_to_json(back), json);
  EXPECT_EQ(back[0].random[0].schedules[1].perplexity, 13);
  EXPECT_TRUE(search_from_json(search_to_json({}), "x").empty());
}

TEST(ExperimentJson, PollutionAndBehaviour) {
  Pollution pollution;
  pollution.windows = {1, 5};
  pollution.dense_perplexity = 70.5;
  PollutionSetting setting;
  setting.axis = Axis::rho;
  setting.action = {1.0f, 0.4f, 16};
  setting.direct = 3.25;
  setting.median = {0.5};
  setting.low = {0.25};
  setting.high = {0.75};
  pollution.settings = {setting};
  const Json json = pollution_to_json(pollution);
  const Pollution back = pollution_from_json(parse_json(json.dump(), "x"), "x");
  EXPECT_EQ(pollution_to_json(back), json);
  EXPECT_EQ(back.settings[0].action, setting.action);

  FreeGeneration free;
  free.dense.perplexity = 3.5;
  free.pairs = {{{{0.5f, 0.5f, 0.5f}, {0.4f, 0.5f, 0.5f}, 0.1, 0.2, 0.3, 0.4, 0.5}, {}}};
  const Json free_json = free_generation_to_json(free);
  EXPECT_EQ(
      free_generation_to_json(free_generation_from_json(parse_json(free_json.dump(), "x"), "x")),
      free_json);

  Behaviour behaviour;
  behaviour.by_step = {{"1", 9, {0.5f, 0.25f, 1.0f}, 0.5, 2.5, 0.125}};
  behaviour.rank_correlation = -0.25;
  const Json other = behaviour_to_json(behaviour);
  EXPECT_EQ(behaviour_to_json(behaviour_from_json(other, "x")), other);
}

TEST(ExperimentJson, WhatIsMissingOrOfAnotherTypeIsNamed) {
  Json json = sweep_to_json(example());
  json["points"][0]["policy"].erase("nll");
  EXPECT_THAT([&] { sweep_from_json(json, "jobs/a.json"); }, throws({"jobs/a.json", "\"nll\""}));
  json = sweep_to_json(example());
  json["blocks"] = "none";
  EXPECT_THAT([&] { sweep_from_json(json, "x"); }, throws({"\"blocks\"", "list of numbers"}));
  json = search_to_json({});
  json["points"] = 3;
  EXPECT_THAT([&] { search_from_json(json, "x"); }, throws({"\"points\" must be a list"}));
  EXPECT_THAT([&] { pollution_from_json(Json::object(), "x"); }, throws({"\"windows\""}));
  Json uneven = pollution_to_json({{0}, 1, {{}}});
  uneven["settings"][0]["high"] = {1.0};
  EXPECT_THAT([&] { pollution_from_json(uneven, "jobs/pollution.json"); },
              throws({"jobs/pollution.json", "as long as each other", "delete the file"}));
  SearchPoint all, none;
  all.random = {{"random-matched", {{0.5, 12}}}};
  EXPECT_THAT(
      [&] {
        search_from_json(search_to_json({all, none}), "jobs/s.json");
      },
      throws({"jobs/s.json", "same kinds", "delete the file"}));
}

}  // namespace
}  // namespace sol
