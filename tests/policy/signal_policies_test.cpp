// EMC and DAC: selections from recorded signals, signals and likelihoods on a model, budgets met.
#include <cmath>

#include "heuristics_golden.h"
#include "policy/controlled.h"
#include "policy/policies.h"
#include "sol/frozen_model.h"

namespace sol {
namespace {

using test::HeuristicRun;
using test::heuristics;

constexpr int stub_vocabulary = 1000;

std::unique_ptr<Policy> make_policy(const std::string& kind, const HeuristicRun& run,
                                    int vocabulary) {
  if (kind == "emc") return make_entropy_policy(run.space, vocabulary, run.gamma());
  return make_drift_policy(run.space, run.gamma(), true);
}

// The observation whose signal is `u`.
Observation showing(const std::string& kind, float u) {
  Observation seen;
  if (kind == "emc") seen.previous_entropy = u * std::log(static_cast<float>(stub_vocabulary));
  if (kind == "dac") seen.drift = u;
  return seen;
}

TEST(SignalPolicies, ChooseAsTheReferenceFromItsSignals) {
  int compared = 0;
  for (const std::string kind : {"emc", "dac"}) {
    std::vector<Json> runs = heuristics()["stub"][kind];
    for (const Json& json : heuristics()[kind]) runs.push_back(json);
    for (const Json& json : runs) {
      const HeuristicRun run(json);
      const auto policy = make_policy(kind, run, stub_vocabulary);
      for (size_t batch = 0; batch < run.batch_sizes.size(); ++batch)
        for (size_t i = 0; i < static_cast<size_t>(run.batch_sizes[batch]); ++i) {
          const auto state = policy->begin(run.target, run.horizon, {});
          for (int t = 0; t < run.horizon; ++t) {
            Observation seen =
                showing(kind, json["signal"][batch][static_cast<size_t>(t)][i].get<float>());
            seen.step = t + 1;
            seen.effective = run.effective(t);
            PolicyStep step{state.get(), &seen};
            policy->next({&step, 1});
            EXPECT_EQ(step.action, run.action(batch, t, i))
                << run.name() << " batch " << batch << " sequence " << i << " step " << t + 1;
            ++compared;
          }
        }
    }
  }
  EXPECT_GE(compared, 3000);
}

// The whole loop on a model: what decode_step shows the policy is the reference's signal, and the
// likelihoods under its choices are the reference's.
class SignalPoliciesOnAModel : public testing::TestWithParam<std::string> {};

TEST_P(SignalPoliciesOnAModel, AgreeWithTheReference) {
  const std::string kind = GetParam();
  double worst_nll = 0, sum_nll = 0;
  int compared = 0, others = 0;
  for (const Json& json : heuristics()[kind]) {
    const HeuristicRun run(json);
    const auto model = load_model(test::test_data() / "golden" / json["model"].get<std::string>(),
                                  {.precision = Precision::f32});
    const auto policy = make_policy(kind, run, model->config().vocab_size);
    for (size_t batch = 0; batch < run.batch_sizes.size(); ++batch)
      for (size_t i = 0; i < static_cast<size_t>(run.batch_sizes[batch]); ++i) {
        const auto ids = heuristics()["seqs"][json["batches"][batch][i].get<size_t>()]
                             .get<std::vector<int32_t>>();
        const auto context = static_cast<size_t>(run.context);
        auto sequence = model->create({.page_size = heuristics()["page_size"].get<int>(),
                                       .sinks = run.sinks,
                                       .window = run.window,
                                       .force_sinks = false});
        std::vector<float> hidden(static_cast<size_t>(model->config().hidden_size));
        float entropy = -1;
        ExtendItem item{sequence.get(), std::span(ids).first(context), {}};
        item.wanted.push_back({context - 1, {.hidden = hidden.data(), .entropy = &entropy}});
        model->extend({&item, 1});
        Controlled controlled =
            begin_controlled(std::move(sequence), *policy, run.target, run.horizon, {},
                             {.hidden = hidden, .entropy = entropy}, ids[context - 1]);
        for (int t = 0; t < run.horizon; ++t) {
          const auto at = static_cast<size_t>(t);
          float log_prob = 0;
          ControlledStep step{&controlled, ids[context + at], {}, nullptr, nullptr};
          step.out.target = ids[context + at + 1];
          step.out.log_prob = &log_prob;
          decode_step(*model, {&step, 1});
          // A signal that differs in its last bits may choose another level where two are equally
          // far, and all that follows is another run.
          if (controlled.episode.previous_action() != run.action(batch, t, i)) {
            ++others;
            break;
          }
          const double difference =
              std::abs(-static_cast<double>(log_prob) - json["nll"][batch][at][i].get<double>());
          worst_nll = std::max(worst_nll, difference);
          sum_nll += difference;
          ++compared;
        }
      }
  }
  // Values on a rounding tie of the quantiser may flip by a quantum (golden/README.md).
  EXPECT_LE(worst_nll, 5e-2);
  EXPECT_LE(sum_nll / compared, 1e-4);
  EXPECT_GE(compared, 900);
  EXPECT_LE(others, 1);
}

INSTANTIATE_TEST_SUITE_P(Both, SignalPoliciesOnAModel, testing::Values("emc", "dac"),
                         [](const auto& kind) { return kind.param; });

// Plays an episode with signals drawn at random; the realised averages over effective steps.
Budget play(const Policy& policy, const Budget& target, int horizon, int ineffective,
            const std::string& kind, uint64_t seed) {
  Random random({seed, RandomStream::test, 0, 0, 0});
  Episode episode(policy.space(), target, {horizon, 0, 0});
  const auto state = policy.begin(target, horizon, {});
  BudgetAverage<float> average;
  for (int t = 1; t <= horizon; ++t) {
    Observation seen = showing(kind, static_cast<float>(random.uniform_double()));
    seen.step = t;
    seen.effective = t > ineffective;
    PolicyStep step{state.get(), &seen};
    policy.next({&step, 1});
    if (seen.effective)
      average.add(policy.space().action(step.action));
    else
      EXPECT_EQ(step.action, policy.space().dense_index());
  }
  return average.mean_or(target);
}

TEST(SignalPolicies, MeetEveryAxisOfTheBudgetWhateverTheSignal) {
  const ActionSpace space = HeuristicRun::space_of("3L");
  for (const std::string kind : {"emc", "dac"}) {
    const auto policy =
        kind == "emc" ? make_entropy_policy(space, stub_vocabulary) : make_drift_policy(space);
    for (uint64_t seed = 0; seed < 20; ++seed)
      for (const int ineffective : {0, 5})
        for (const Budget& target : {Budget{0.1f, 0.4f, 0.3125f}, Budget{0.3f, 0.55f, 0.4f},
                                     Budget{0.6f, 0.9f, 0.7f}, Budget{1.0f, 1.0f, 1.0f}}) {
          const Budget met = play(*policy, target, 64, ineffective, kind, seed);
          // Half of the widest gap between levels, over the steps that count.
          EXPECT_NEAR(met.kappa, target.kappa, 0.5 / 59 + 1e-3) << kind << " seed " << seed;
          EXPECT_NEAR(met.rho, target.rho, 0.4 / 59 + 1e-3) << kind << " seed " << seed;
          EXPECT_NEAR(met.eta, target.eta, 0.57 / 59 + 1e-3) << kind << " seed " << seed;
        }
  }
}

TEST(SignalPolicies, SpendWhereTheSignalIsHigh) {
  const ActionSpace space = test::two_levels();
  const auto policy = make_entropy_policy(space, stub_vocabulary);
  const auto first_action = [&](float u) {
    const auto state = policy->begin({0.55f, 0.8f, 0.65f}, 16, {});
    const Observation seen = showing("emc", u);
    PolicyStep step{state.get(), &seen};
    policy->next({&step, 1});
    return space.action(step.action);
  };
  EXPECT_EQ(first_action(1.0f), space.action(space.dense_index()));
  EXPECT_EQ(first_action(0.0f), space.action(0));
}

TEST(SignalPolicies, DriftMayExceedAHalfUnlessAsTheReference) {
  const ActionSpace space = test::two_levels();
  const std::array<float, 3> gamma{1.0f, 1.0f, 1.0f};
  const auto first_kappa = [&](bool reference) {
    const auto policy = make_drift_policy(space, gamma, reference);
    const auto state = policy->begin({0.3f, 0.8f, 0.65f}, 16, {});
    const Observation seen = showing("dac", 1.0f);
    PolicyStep step{state.get(), &seen};
    policy->next({&step, 1});
    return space.action(step.action).kappa;
  };
  EXPECT_EQ(first_kappa(false), 1.0f);
  EXPECT_EQ(first_kappa(true), 0.1f);
}

TEST(SignalPolicies, WithoutASignalAskForNeither) {
  const ActionSpace space = test::two_levels();
  for (const auto& policy : {make_entropy_policy(space, 300), make_drift_policy(space)}) {
    const auto state = policy->begin({0.5f, 0.85f, 0.7f}, 16, {});
    const Observation seen;
    PolicyStep step{state.get(), &seen};
    policy->next({&step, 1});
    const Action action = space.action(step.action);
    EXPECT_EQ(action.kappa, 0.1f);  // share 0.44 of the steps
    EXPECT_EQ(action.rho, 1.0f);    // share 0.625
  }
}

TEST(SignalPolicies, RefuseAVocabularyWithoutEntropy) {
  EXPECT_THAT(test::error_of([] { make_entropy_policy(test::two_levels(), 1); }),
              testing::HasSubstr("vocabulary of 1"));
}

}  // namespace
}  // namespace sol
