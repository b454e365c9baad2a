// A server with a controller that was trained for times.
#include <gmock/gmock.h>

#include "policy/network.h"
#include "served.h"

namespace sol::test {
namespace {

// All parameters zero: every action is as likely as another, so the first is taken, which saves
// most.
Controller made_time_controller(const std::string& fingerprint) {
  PolicyNetworkShape shape;
  shape.hidden_size = 256;
  shape.actions = 4;
  shape.d_model = 16;
  shape.heads = 2;
  shape.action_dim = 8;
  shape.max_length = 16;
  Parameters parameters;
  for (const auto& [name, dimensions] : policy_parameter_shapes(shape)) {
    size_t count = 1;
    for (const int64_t n : dimensions) count *= static_cast<size_t>(n);
    parameters[name] = {dimensions, std::vector<float>(count)};
  }
  ControllerSettings settings;
  settings.horizon = 8;
  settings.ranges.kappa = {0.1, 1.0};
  settings.ranges.rho = {0.5, 1.0};
  settings.costs = std::make_shared<const CostTable>(made_costs(8));
  settings.time = {0.5, 1.0};
  settings.model_fingerprint = fingerprint;
  return Controller(ActionSpace({0.1f, 1.0f}, {0.5f, 1.0f}, {16}), std::move(settings),
                    std::make_shared<PolicyNetwork>(shape, std::move(parameters)));
}

ServedModel served_for_times() {
  ServedModel served = load_served(false);
  use_controller(served, made_time_controller(served.model->fingerprint()), "timed");
  served.costs = made_costs(served.horizon);
  return served;
}

TEST(TimeController, TakesATimeAndNothingElse) {
  const TestServer server(served_for_times());
  const auto ask = [&](Json sol) {
    // One episode: the tiny model is so much faster than its table says that the next one is dense.
    return server.post("/v1/completions", Json{{"prompt", "Once upon a time there was an old man"},
                                               {"max_tokens", 8},
                                               {"ignore_eos", true},
                                               {"sol", std::move(sol)}});
  };
  const auto answer = ask({{"ms_per_token", 8.0}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json& sol = answer.json["choices"][0]["sol"];
  EXPECT_EQ(sol["policy"], "learned") << answer.body;
  EXPECT_EQ(sol["requested"], (Json{{"ms_per_token", 8.0}}));
  EXPECT_NEAR(sol["realised"]["prune"].get<double>(), 0.5, 1e-6);

  for (const char* field : {"budget", "keep", "prune", "bits"}) {
    const auto refused = ask({{field, *field == 'b' && field[1] == 'i' ? 16.0 : 0.6}});
    EXPECT_EQ(refused.status, 400) << field;
    EXPECT_EQ(refused.json["error"]["code"], "needs_time") << refused.body;
    EXPECT_EQ(refused.json["error"]["param"], std::string("sol.") + field);
    EXPECT_THAT(refused.json["error"]["message"].get<std::string>(),
                testing::HasSubstr("ms_per_token"));
  }
  const Json shown = server.get("/v1/models").json["data"][0]["sol"];
  EXPECT_TRUE(shown["budget"].is_null()) << shown;
  EXPECT_EQ(shown["controller"]["timed"], true) << shown;

  // The fixed policy mixes the controller's levels, by shares or by a time.
  EXPECT_EQ(ask({{"prune", 0.7}, {"policy", "fixed"}}).status, 200);
  EXPECT_EQ(ask({{"ms_per_token", 8.0}, {"policy", "fixed"}}).status, 200);
  EXPECT_EQ(ask(Json::object()).status, 200);  // dense
}

// A controller that was never measured: what is shown may be asked for, and nothing else is shown.
TEST(ControllerWithoutFrontier, OffersNoNetKeepRates) {
  ServedModel served = load_served();
  Controller controller = *served.controller;
  controller.set_frontier({});
  use_controller(served, std::move(controller), "unmeasured");
  served.reasoning_effort.clear();
  const TestServer server(std::move(served));
  const Json shown = server.get("/v1/models").json["data"][0]["sol"];
  EXPECT_TRUE(shown["budget"].is_null()) << shown;
  EXPECT_EQ(shown["controller"], (Json{{"name", "unmeasured"}, {"horizon", 16}, {"timed", false}}));
  const auto ask = [&](Json sol) {
    return server.post(complete, completion({{"max_tokens", 2}, {"sol", std::move(sol)}}));
  };
  const auto refused = ask({{"budget", 1.0}});
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.json["error"]["message"].get<std::string>(), testing::HasSubstr("frontier"));
  const Json& axes = shown["axes"];
  EXPECT_EQ(ask({{"keep", axes["keep"]["low"]}, {"bits", axes["bits"]["high"]}}).status, 200);
  EXPECT_EQ(ask({{"budget", 0.6}, {"policy", "fixed"}}).status, 200);
}

}  // namespace
}  // namespace sol::test
