#include "training/torch_network.h"

#include <cmath>
#include <set>

#include "base/threads.h"
#include "golden_schedules.h"
#include "sol/error.h"
#include "training/initialisation.h"

namespace sol::test {
namespace {

PolicyNetworkShape shape_of(const Json& description) {
  PolicyNetworkShape shape;
  shape.hidden_size = description.at("h").get<int>();
  shape.actions = description.at("n_actions").get<int>();
  shape.d_model = description.at("d_model").get<int>();
  shape.heads = description.at("heads").get<int>();
  shape.layers = description.at("layers").get<int>();
  shape.action_dim = description.at("action_dim").get<int>();
  shape.max_length = description.at("max_len").get<int>();
  return shape;
}

class GoldenNetwork : public testing::TestWithParam<const char*> {};

TEST_P(GoldenNetwork, LogitsAndLogProbabilitiesOfWholeSchedules) {
  const std::string name = GetParam();
  const Json description = read_json(golden_sol() / "policy.json").at(name);
  const TensorStore store =
      TensorStore::open_file(golden_sol() / ("policy_" + name + ".safetensors"));
  const PolicyNetworkShape shape = shape_of(description);
  const double temperature = description.at("temperature").get<double>();
  const TorchNetwork network(shape, read_parameters(store, "param."));
  const std::vector<Schedule> schedules = read_schedules(store, {}, shape.actions);
  const size_t count = schedules.size(), steps = static_cast<size_t>(schedules[0].steps());
  const size_t actions = static_cast<size_t>(shape.actions);

  const std::vector<float> logits = network.logits(pointers(schedules));
  const std::vector<float> log_probs = network.log_probs(pointers(schedules), temperature);
  const auto expected = store.get("logits_seq").to_floats();
  const auto expected_log_probs = store.get("logp_actions").to_floats();
  for (size_t n = 0; n < count; ++n) {
    std::vector<float> mine(
        logits.begin() + static_cast<std::ptrdiff_t>(n * steps * actions),
        logits.begin() + static_cast<std::ptrdiff_t>((n + 1) * steps * actions));
    for (float& v : mine) v /= static_cast<float>(temperature);  // the reference's forward divides
    EXPECT_LE(largest_difference(mine, column(expected, steps, n, count, actions)), 5e-5) << n;
    EXPECT_LE(largest_difference(std::span(log_probs).subspan(n * steps, steps),
                                 column(expected_log_probs, steps, n, count)),
              5e-5)
        << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, GoldenNetwork, testing::Values("p1", "p2"));

TEST(TorchNetwork, LeavesTheProgramItsThreads) {
  const int before = thread_count();
  set_thread_count(3);
  // Large enough for LibTorch to work in parallel.
  const PolicyNetworkShape shape{
      .hidden_size = 256, .actions = 64, .d_model = 256, .max_length = 4};
  const TorchNetwork network(shape, initial_parameters(shape, 1));
  Schedule s;
  s.hidden.assign(256, 0.1f);
  s.embedding.assign(256, 0.2f);
  s.features.resize(1);
  s.previous_actions = {-1};
  s.actions = {3};
  const std::vector<const Schedule*> many(512, &s);
  network.logits(many);
  EXPECT_EQ(thread_count(), 3);
  set_thread_count(before);
}

TEST(TorchNetwork, RefusesForeignParameters) {
  PolicyNetworkShape shape{
      .hidden_size = 8, .actions = 4, .d_model = 8, .heads = 2, .max_length = 4};
  Parameters parameters = initial_parameters(shape, 1);
  Parameters missing = parameters;
  missing.erase("pi.weight");
  EXPECT_THROW(TorchNetwork(shape, missing), Error);
  Parameters more = parameters;
  more["extra"] = {{1}, {0.0f}};
  EXPECT_THROW(TorchNetwork(shape, more), Error);
  Parameters misshapen = parameters;
  misshapen["pi.weight"].shape = {8, 4};
  EXPECT_THROW(TorchNetwork(shape, misshapen), Error);
}

TEST(TorchNetwork, RefusesSchedulesThatDoNotFit) {
  PolicyNetworkShape shape{
      .hidden_size = 8, .actions = 4, .d_model = 8, .heads = 2, .max_length = 2};
  const TorchNetwork network(shape, initial_parameters(shape, 1));
  Schedule s;
  s.hidden.assign(16, 0.1f);
  s.embedding.assign(16, 0.2f);
  s.features.resize(2);
  s.previous_actions = {-1, 3};
  s.actions = {3, 0};
  const Schedule* const fine = &s;
  EXPECT_EQ(network.log_probs({&fine, 1}, 1.0).size(), 2u);
  Schedule wrong = s;
  wrong.actions[1] = 4;
  const Schedule* pointer = &wrong;
  EXPECT_THROW(network.logits({&pointer, 1}), Error);
  wrong = s;
  wrong.hidden.resize(24);
  EXPECT_THROW(network.logits({&pointer, 1}), Error);
  wrong = s;
  wrong.actions.push_back(0);  // three steps, two positions
  EXPECT_THROW(network.logits({&pointer, 1}), Error);
}

TEST(Initialisation, CountsAndDistributionsFollowPyTorchsDefaults) {
  const Json counts = read_json(golden_sol() / "policy.json").at("param_counts");
  const PolicyNetworkShape shape{.hidden_size = 4096, .actions = 1560, .max_length = 512};
  int64_t total = 0;
  for (const auto& entry : policy_parameter_shapes(shape)) {
    int64_t n = 1;
    for (int64_t d : entry.second) n *= d;
    total += n;
  }
  EXPECT_EQ(
      total,
      counts.at("h=e=4096,A=1560,d=512,heads=4,layers=1,max_len=512").at("total").get<int64_t>());

  const PolicyNetworkShape small{.hidden_size = 64, .actions = 24, .d_model = 64, .max_length = 64};
  const Parameters p = initial_parameters(small, 5);
  const auto extremes = [&](const char* name) {
    const auto [low, high] =
        std::minmax_element(p.at(name).values.begin(), p.at(name).values.end());
    return std::pair<float, float>(*low, *high);
  };
  const float bound = 1.0f / std::sqrt(224.0f);
  EXPECT_GE(extremes("obs_proj.weight").first, -bound);
  EXPECT_LE(extremes("obs_proj.weight").second, bound);
  EXPECT_GT(extremes("obs_proj.weight").second, 0.98f * bound);
  EXPECT_LE(extremes("obs_proj.bias").second, bound);
  EXPECT_NE(extremes("obs_proj.bias").second, 0.0f);
  EXPECT_EQ(extremes("pi.bias"), std::pair(0.0f, 0.0f));
  EXPECT_EQ(extremes("v.bias"), std::pair(0.0f, 0.0f));
  EXPECT_EQ(extremes("blocks.0.ln1.weight"), std::pair(1.0f, 1.0f));
  EXPECT_EQ(extremes("scalar_proj.2.bias"), std::pair(0.0f, 0.0f));
  double squares = 0;
  for (float v : p.at("pos_emb.weight").values) squares += static_cast<double>(v) * v;
  EXPECT_NEAR(squares / 4096.0, 1.0, 0.1);
  EXPECT_NE(p.at("pi.weight").values, initial_parameters(small, 6).at("pi.weight").values);
  EXPECT_EQ(p.at("pi.weight").values, initial_parameters(small, 5).at("pi.weight").values);
}

}  // namespace
}  // namespace sol::test
