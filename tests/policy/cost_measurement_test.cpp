#include "policy/cost_measurement.h"

#include "support.h"
#include "throws.h"

namespace sol {
namespace {

using test::throws;

TEST(CostMeasurement, MeasuresAModel) {
  const auto model =
      load_model(test::test_data() / "golden/tiny_tied_f32", {.precision = Precision::f32});
  CostMeasurement options;
  options.lengths = {8, 24};
  options.repetitions = 3;
  options.horizon = 4;
  double last = 0;
  const MeasuredCosts measured = measure_costs(*model, options, [&](double done) {
    EXPECT_GE(done, last);
    last = done;
  });
  EXPECT_DOUBLE_EQ(last, 1.0);
  EXPECT_GE(measured.busyness, 1.0);
  const CostTable& costs = measured.table;
  // Whatever else the machine does, a longer context is never taken for a cheaper one.
  EXPECT_LE(costs.lengths()[0].dense_ms, costs.lengths()[1].dense_ms);
  EXPECT_LE(costs.lengths()[0].refresh_ms, costs.lengths()[1].refresh_ms);
  ASSERT_EQ(costs.lengths().size(), 2u);
  EXPECT_EQ(costs.lengths()[1].keys, 24);
  EXPECT_GT(costs.step_ms(1, 1, 8), 0);
  EXPECT_EQ(model->cache_use().blocks, 0u);
  // Told before anything is measured.
  const auto refused = [&](std::vector<int> lengths, int horizon, const char* why) {
    options.lengths = std::move(lengths);
    options.horizon = horizon;
    const auto unmeasured = [](double) { ADD_FAILURE() << "measured"; };
    EXPECT_THAT([&] { measure_costs(*model, options, unmeasured); }, throws({why}));
  };
  refused({8, 1 << 20}, 4, "1048576");
  refused({24, 8}, 4, "8 follows 24");
  refused({8, 8}, 4, "8 follows 8");
  refused({8}, 1 << 30, "1073741824 steps");
  refused({}, 4, "a length");
}

}  // namespace
}  // namespace sol
