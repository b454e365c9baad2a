#include "policy/import_checkpoint.h"

#include "base/json.h"
#include "support_policy.h"

namespace sol {
namespace {

using test::error_of;
using ::testing::HasSubstr;

class ImportCheckpoint : public testing::Test {
 protected:
  TorchCheckpoint checkpoint() const {
    return read_torch_checkpoint(test::test_data() / "golden/sol/policy_p1_nested.pt");
  }
  static ImportSettings settings() {
    ImportSettings s{ActionSpace({0.1f, 0.4f, 0.7f, 1.0f}, {0.6f, 0.8f, 1.0f}, {5, 16}), {}, 4, 32};
    s.controller.horizon = 16;
    s.controller.sequence = {.page_size = 16, .sinks = 4, .window = 2};
    s.controller.model_fingerprint = std::string(32, 'a');
    return s;
  }
  Controller import(const TorchCheckpoint& c, const ImportSettings& s = settings()) const {
    return import_controller(c, s, "policy.pt");
  }
};

TEST_F(ImportCheckpoint, ItsLogitsAreTheReferences) {
  const auto golden = test::golden("policy_p1.safetensors");
  const Json json = read_json(test::test_data() / "golden/sol/policy.json")["p1"];
  test::TemporaryDirectory dir;
  import(checkpoint()).save(dir.path() / "c");
  const Controller controller = Controller::load(dir.path() / "c");
  EXPECT_EQ(controller.network().parameter_count(), json["n_params"].get<int64_t>());
  EXPECT_EQ(controller.network().shape().max_length, json["max_len"].get<int>());
  EXPECT_EQ(controller.settings().sequence.page_size, 16);

  const auto steps = json["T"].get<size_t>(), batch = json["B"].get<size_t>();
  const auto h = golden.get("h").to_floats(), e = golden.get("e").to_floats(),
             scalars = golden.get("scalars").to_floats(),
             expected = golden.get("logits_step").to_floats();
  const auto previous = golden.get("prev_actions").to_ints();
  const auto temperature = json["temperature"].get<float>();
  std::vector<PolicyNetwork::State> states(batch);
  for (size_t t = 0; t < steps; ++t)
    for (size_t b = 0; b < batch; ++b) {
      const size_t at = t * batch + b;
      std::vector<float> logits(24);
      PolicyNetwork::Input in{&states[b], &h[at * 32], &e[at * 32], {}, 0, logits.data()};
      std::copy_n(&scalars[at * 8], 8, in.features.begin());
      in.previous_action = previous[at] == 24 ? -1 : static_cast<int>(previous[at]);
      controller.network().step({&in, 1});
      for (size_t i = 0; i < 24; ++i)
        ASSERT_NEAR(logits[i] / temperature, expected[at * 24 + i], 1e-4f) << t << " " << b;
    }
}

TEST_F(ImportCheckpoint, ContradictionsAreErrors) {
  ImportSettings s = settings();
  s.space = ActionSpace({0.1f, 0.4f, 0.8f, 1.0f}, {0.6f, 0.8f, 1.0f}, {5, 16});
  EXPECT_THAT(error_of([&] { import(checkpoint(), s); }),
              HasSubstr("policy.pt: was trained with keep_fracs = [0.1,0.4,0.7,1.0], but the "
                        "configuration says [0.1,0.4,0.8,1.0]"));
  s = settings();
  s.controller.sequence.page_size = 4;
  EXPECT_THAT(error_of([&] { import(checkpoint(), s); }),
              HasSubstr("quest_page_size = 16, but the configuration says 4"));
  // Levels in another order number the actions otherwise.
  TorchCheckpoint c = checkpoint();
  c.settings["keep_fracs"] = {1.0, 0.7, 0.4, 0.1};
  EXPECT_THAT(error_of([&] { import(c); }), HasSubstr("keep_fracs = [1.0,0.7,0.4,0.1]"));
  // Budgets, where the file has them: of a list, or between two limits.
  c = checkpoint();
  s = settings();
  s.controller.ranges = {{0.1, 1.0}, {0.6, 1.0}, {0.3125, 1.0}};
  c.settings.update(
      {{"budget_tok_list", nullptr}, {"budget_tok_min", 0.1}, {"budget_tok_max", 1.0}});
  import(c, s);
  c.settings["budget_prune_list"] = {0.9, 0.7, 0.8};
  EXPECT_THAT(error_of([&] { import(c, s); }),
              HasSubstr("budget_prune from 0.7 to 0.9, but the configuration says 0.6 to 1"));
  s.controller.ranges.rho = {0.7, 0.9};
  import(c, s);
  c.settings["budget_tok_min"] = 0.3;
  EXPECT_THAT(error_of([&] { import(c, s); }), HasSubstr("budget_tok from 0.3 to 1"));
  c = checkpoint();
  c.settings["sparsity_criteria"] = "recency";
  EXPECT_THAT(error_of([&] { import(c); }), HasSubstr("recency"));
}

TEST_F(ImportCheckpoint, OtherModelsActionsAndWeightsAreErrors) {
  TorchCheckpoint c = checkpoint();
  c.settings = Json::object();  // nothing to compare with but the weights
  ImportSettings s = settings();
  s.hidden_size = 64;
  EXPECT_THAT(error_of([&] { import(c, s); }), HasSubstr("model of width 32, but this one has 64"));
  s = settings();
  s.space = ActionSpace({0.1f, 1.0f}, {0.6f, 1.0f}, {5, 16});
  EXPECT_THAT(error_of([&] { import(c, s); }),
              HasSubstr("among 24 actions, but the configuration has 8"));
  s = settings();
  s.heads = 3;
  EXPECT_THAT(error_of([&] { import(c, s); }), HasSubstr("not a multiple of heads = 3"));
  s = settings();
  s.controller.horizon = 64;
  EXPECT_THAT(error_of([&] { import(c, s); }), HasSubstr("32 positions"));
  TorchCheckpoint less = c;
  less.state.erase("v.bias");
  EXPECT_THAT(error_of([&] { import(less); }), HasSubstr("\"v.bias\" [1] is missing"));
  less.state.erase("pos_emb.weight");
  EXPECT_THAT(error_of([&] { import(less); }), HasSubstr("pos_emb.weight is missing"));
  TorchCheckpoint more = c;
  more.state["extra"] = {{1}, {0.0f}};
  EXPECT_THAT(error_of([&] { import(more); }), HasSubstr("unknown parameter \"extra\""));
}

}  // namespace
}  // namespace sol
