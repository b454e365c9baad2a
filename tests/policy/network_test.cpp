#include "policy/network.h"

#include "base/cpu.h"
#include "base/json.h"
#include "support_policy.h"

namespace sol {
namespace {

using test::error_of;
using ::testing::HasSubstr;

PolicyNetworkShape golden_shape(const Json& json) {
  PolicyNetworkShape shape;
  shape.hidden_size = json["h"];
  shape.actions = json["n_actions"];
  shape.d_model = json["d_model"];
  shape.heads = json["heads"];
  shape.layers = json["layers"];
  shape.action_dim = json["action_dim"];
  shape.max_length = json["max_len"];
  return shape;
}

// Inputs [T][B] of one of the reference's networks and the logits that it gave.
struct GoldenCase {
  explicit GoldenCase(const std::string& name)
      : store(test::golden("policy_" + name + ".safetensors")) {
    const Json json = read_json(test::test_data() / "golden/sol/policy.json")[name];
    shape = golden_shape(json);
    steps = json["T"].get<size_t>();
    batch = json["B"].get<size_t>();
    temperature = json["temperature"].get<float>();
    hidden = store.get("h").to_floats();
    embedding = store.get("e").to_floats();
    scalars = store.get("scalars").to_floats();
    previous = store.get("prev_actions").to_ints();
  }

  PolicyNetwork::Input input(size_t t, size_t b, PolicyNetwork::State& state, float* logits) const {
    const size_t at = t * batch + b, d = static_cast<size_t>(shape.hidden_size);
    PolicyNetwork::Input in{&state, &hidden[at * d], &embedding[at * d], {}, 0, logits};
    std::copy_n(&scalars[at * 8], 8, in.features.begin());
    const int64_t action = previous[at];
    in.previous_action = action == shape.actions ? -1 : static_cast<int>(action);
    return in;
  }

  TensorStore store;
  PolicyNetworkShape shape;
  size_t steps, batch;
  float temperature;  // that the recorded logits are divided by
  std::vector<float> hidden, embedding, scalars;
  std::vector<int64_t> previous;
};

class PolicyNetworkGolden
    : public testing::TestWithParam<std::tuple<std::string, Isa, kernels::MatmulMode>> {
 protected:
  void SetUp() override { force_isa(std::get<Isa>(GetParam())); }
  void TearDown() override { force_isa(before_); }
  Isa before_ = current_isa();
};

std::string golden_name(const testing::TestParamInfo<PolicyNetworkGolden::ParamType>& info) {
  const auto& [name, isa, mode] = info.param;
  return name + "_" + std::string(to_string(isa)) +
         (mode == kernels::MatmulMode::own ? "_own" : "_library");
}

TEST_P(PolicyNetworkGolden, LogitsAgreeStepByStep) {
  const GoldenCase golden(std::get<std::string>(GetParam()));
  const PolicyNetwork network(golden.shape, test::golden_parameters(golden.store, "param"));
  const auto stepwise = golden.store.get("logits_step").to_floats();
  const auto sequence = golden.store.get("logits_seq").to_floats();
  const auto actions = static_cast<size_t>(golden.shape.actions);

  std::vector<PolicyNetwork::State> states(golden.batch);
  std::vector<float> logits(golden.batch * actions);
  for (size_t t = 0; t < golden.steps; ++t) {
    std::vector<PolicyNetwork::Input> inputs;
    for (size_t b = 0; b < golden.batch; ++b)
      inputs.push_back(golden.input(t, b, states[b], &logits[b * actions]));
    network.step(inputs, std::get<kernels::MatmulMode>(GetParam()));
    for (size_t i = 0; i < logits.size(); ++i) {
      ASSERT_NEAR(logits[i] / golden.temperature, stepwise[t * logits.size() + i], 5e-5f)
          << "step " << t;
      ASSERT_NEAR(logits[i] / golden.temperature, sequence[t * logits.size() + i], 5e-5f)
          << "step " << t;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, PolicyNetworkGolden,
    testing::Combine(testing::Values("p1", "p2"),
                     testing::ValuesIn(supported_isas().begin(), supported_isas().end()),
                     testing::Values(kernels::MatmulMode::library, kernels::MatmulMode::own)),
    golden_name);

TEST(PolicyNetwork, ParameterCountsAreThePublishedOnes) {
  const auto count = [](int hidden, int actions, int max_length) {
    PolicyNetworkShape shape;
    shape.hidden_size = hidden;
    shape.actions = actions;
    shape.max_length = max_length;
    int64_t total = 0;
    for (const auto& [name, dimensions] : policy_parameter_shapes(shape)) {
      int64_t n = 1;
      for (const int64_t size : dimensions) n *= size;
      total += n;
    }
    return total;
  };
  EXPECT_EQ(count(4096, 1560, 512), 8560529);
  EXPECT_EQ(count(2048, 1560, 1024), 6725521);
  EXPECT_EQ(count(3072, 1560, 512), 7511953);
  EXPECT_EQ(count(2048, 336, 1024), 6018049);
}

TEST(PolicyNetwork, ParameterNamesAreTheReferences) {
  for (const char* name : {"p1", "p2"}) {
    const Json json = read_json(test::test_data() / "golden/sol/policy.json")[name];
    std::map<std::string, std::vector<int64_t>> expected;
    for (const auto& [key, dimensions] : json["names"].items())
      expected[key] = dimensions.get<std::vector<int64_t>>();
    EXPECT_EQ(policy_parameter_shapes(golden_shape(json)), expected);
    const PolicyNetwork network(
        golden_shape(json),
        test::golden_parameters(test::golden("policy_" + std::string(name) + ".safetensors"),
                                "param"));
    EXPECT_EQ(network.parameter_count(), json["n_params"].get<int64_t>());
  }
}

// Episodes of different lengths, many at once, against each of them alone.
TEST(PolicyNetwork, OwnProductsDoNotDependOnTheBatch) {
  PolicyNetworkShape shape{.hidden_size = 48,
                           .actions = 37,
                           .d_model = 24,
                           .heads = 3,
                           .layers = 2,
                           .mlp_ratio = 1.5,
                           .action_dim = 8,
                           .max_length = 12};
  const PolicyNetwork network(shape, test::random_parameters(shape, 7));
  constexpr size_t episodes = 70;
  const auto hidden = test::random_vector(episodes * 12 * 48, 1);
  const auto embedding = test::random_vector(episodes * 12 * 48, 2);
  std::vector<PolicyNetwork::State> batched(episodes), alone(episodes);
  std::vector<float> together(episodes * 37), single(37);
  const auto input = [&](size_t e, size_t t, PolicyNetwork::State& state, float* logits) {
    const size_t at = (e * 12 + t) * 48;
    return PolicyNetwork::Input{
        &state,
        &hidden[at],
        &embedding[at],
        {0.1f * static_cast<float>(t), 1, 0.5f, 0.25f, 0.01f * static_cast<float>(e), 0, 0, 0},
        t == 0 ? -1 : static_cast<int>((e + t) % 37),
        logits};
  };
  for (size_t t = 0; t < 12; ++t) {
    std::vector<PolicyNetwork::Input> inputs;
    std::vector<size_t> members;
    for (size_t e = 0; e < episodes; ++e) {
      if (t >= 1 + e % 12) continue;  // this episode has ended: others go on without it
      inputs.push_back(input(e, t, batched[e], &together[e * 37]));
      members.push_back(e);
    }
    network.step(inputs, kernels::MatmulMode::own);
    for (const size_t e : members) {
      const auto one = input(e, t, alone[e], single.data());
      network.step({&one, 1}, kernels::MatmulMode::own);
      for (size_t a = 0; a < 37; ++a) ASSERT_EQ(together[e * 37 + a], single[a]) << e << " " << t;
    }
  }
}

TEST(PolicyNetwork, AnEpisodeMayNotOutgrowItsPositions) {
  PolicyNetworkShape shape{.hidden_size = 4,
                           .actions = 3,
                           .d_model = 8,
                           .heads = 2,
                           .layers = 1,
                           .mlp_ratio = 4.0,
                           .action_dim = 4,
                           .max_length = 2};
  const PolicyNetwork network(shape, test::random_parameters(shape, 1));
  const std::vector<float> zeros(4);
  std::vector<float> logits(3);
  PolicyNetwork::State state;
  PolicyNetwork::Input input{&state, zeros.data(), zeros.data(), {}, -1, logits.data()};
  network.step({&input, 1});
  network.step({&input, 1});
  EXPECT_THAT(error_of([&] { network.step({&input, 1}); }), HasSubstr("at most 2 steps"));
  EXPECT_EQ(state.length, 2);
  PolicyNetwork::State fresh;
  input.state = &fresh;
  input.previous_action = 3;
  EXPECT_THROW(network.step({&input, 1}), Error);
  network.step({});  // nothing to do
}

TEST(PolicyNetwork, BadParametersAreNamed) {
  PolicyNetworkShape shape{.hidden_size = 4,
                           .actions = 3,
                           .d_model = 8,
                           .heads = 2,
                           .layers = 1,
                           .mlp_ratio = 4.0,
                           .action_dim = 4,
                           .max_length = 2};
  const auto broken = [&](const std::function<void(Parameters&)>& edit) {
    Parameters parameters = test::random_parameters(shape, 1);
    edit(parameters);
    return error_of([&] { PolicyNetwork(shape, parameters); });
  };
  EXPECT_THAT(broken([](Parameters& p) { p.erase("pi.bias"); }), HasSubstr("\"pi.bias\" [3]"));
  EXPECT_THAT(broken([](Parameters& p) {
                p["blocks.1.ln1.bias"] = {{8}, std::vector<float>(8)};
              }),
              HasSubstr("blocks.1.ln1.bias"));
  EXPECT_THAT(broken([](Parameters& p) {
                p["obs_proj.weight"].shape = {76, 8};
              }),
              HasSubstr("[76, 8], expected [8, 76]"));
  EXPECT_THAT(broken([](Parameters& p) { p["v.bias"].values.clear(); }), HasSubstr("0 values"));
  EXPECT_THAT(broken([](Parameters& p) { p["v.weight"].values[3] = NAN; }),
              HasSubstr("\"v.weight\" has nan at element 3"));
  EXPECT_THAT(broken([](Parameters& p) { p["pos_emb.weight"].values[0] = INFINITY; }),
              HasSubstr("pos_emb.weight"));
}

TEST(PolicyNetwork, BadShapesAreNamed) {
  const PolicyNetworkShape good{.hidden_size = 4, .actions = 3};
  EXPECT_NO_THROW(check_policy_network_shape(good));
  const auto broken = [&](const std::function<void(PolicyNetworkShape&)>& edit) {
    PolicyNetworkShape shape = good;
    edit(shape);
    return error_of([&] { check_policy_network_shape(shape); });
  };
  EXPECT_THAT(broken([](auto& s) { s.hidden_size = 0; }), HasSubstr("hidden_size"));
  EXPECT_THAT(broken([](auto& s) { s.actions = -1; }), HasSubstr("actions"));
  EXPECT_THAT(broken([](auto& s) { s.d_model = 2000000000; }), HasSubstr("d_model"));
  EXPECT_THAT(broken([](auto& s) { s.heads = 3; }), HasSubstr("multiple of heads"));
  EXPECT_THAT(broken([](auto& s) { s.layers = 2000000000; }), HasSubstr("layers"));
  EXPECT_THAT(broken([](auto& s) { s.mlp_ratio = NAN; }), HasSubstr("mlp_ratio"));
  EXPECT_THAT(broken([](auto& s) { s.mlp_ratio = 1e9; }), HasSubstr("mlp_ratio"));
  EXPECT_THAT(broken([](auto& s) { s.max_length = 0; }), HasSubstr("max_length"));
}

}  // namespace
}  // namespace sol
