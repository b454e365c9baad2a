// The forward pass against Hugging Face's, on every instruction set that the machine has.
#include "cpu_engines.h"
#include "golden_model_cases.h"

namespace sol::test {
namespace {

INSTANTIATE_TEST_SUITE_P(EveryIsa, GoldenModels,
                         testing::Combine(testing::ValuesIn(cpu_engines()), golden_model_names()),
                         golden_model_case);
INSTANTIATE_TEST_SUITE_P(BestIsa, GoldenBf16Model, testing::Values(best_cpu_engine(false)),
                         engine_name);

}  // namespace
}  // namespace sol::test
