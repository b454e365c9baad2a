#include "heuristics_golden.h"
#include "policy/policies.h"

namespace sol {
namespace {

using test::HeuristicRun;
using test::heuristics;

TEST(ReferenceFixedPolicy, PlaysTheReferencesRoundRobin) {
  std::vector<Json> runs = heuristics()["stub"]["fixed"];
  for (const Json& json : heuristics()["fixed"]) runs.push_back(json);
  int compared = 0;
  for (const Json& json : runs) {
    const HeuristicRun run(json);
    const auto policy = make_reference_fixed_policy(run.space, run.batch_sizes);
    uint64_t sequence = 0;
    for (size_t batch = 0; batch < run.batch_sizes.size(); ++batch)
      for (size_t i = 0; i < static_cast<size_t>(run.batch_sizes[batch]); ++i, ++sequence) {
        const auto state = policy->begin(run.target, run.horizon, {.sequence = sequence});
        for (int t = 0; t < run.horizon; ++t) {
          Observation seen;
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
  EXPECT_GE(compared, 2000);
}

TEST(ReferenceFixedPolicy, IsForEvaluationsOnly) {
  const auto policy = make_reference_fixed_policy(test::two_levels(), {8, 3});
  EXPECT_NO_THROW(policy->begin({}, 16, {.sequence = 10}));
  EXPECT_THAT(test::error_of([&] { policy->begin({}, 16, {.sequence = 11}); }),
              testing::HasSubstr("sequence 11"));
  EXPECT_THAT(test::error_of([&] { policy->begin({}, 16, {.single = true}); }),
              testing::HasSubstr("'fixed'"));
  EXPECT_THROW(make_reference_fixed_policy(test::two_levels(), {8, 0}), Error);
}

}  // namespace
}  // namespace sol
