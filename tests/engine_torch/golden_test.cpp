// What every engine has to show, on LibTorch devices: the golden models, the authors' decode steps,
// sequences. Without a GPU the GPU's cases are skipped, visibly.
#include "engine/golden_decode_cases.h"
#include "engine/golden_model_cases.h"
#include "engine/sequence_cases.h"
#include "torch_engines.h"

namespace sol::test {
namespace {

const auto devices = [] { return testing::Values(torch_engine("cpu"), torch_engine("cuda")); };

INSTANTIATE_TEST_SUITE_P(Torch, GoldenModels, testing::Combine(devices(), golden_model_names()),
                         golden_model_case);
INSTANTIATE_TEST_SUITE_P(Torch, GoldenBf16Model, devices(), engine_name);
INSTANTIATE_TEST_SUITE_P(Torch, GoldenDecode,
                         testing::Combine(devices(), testing::ValuesIn(decode_cases())),
                         golden_decode_case);
INSTANTIATE_TEST_SUITE_P(Torch, EverySequence, devices(), engine_name);

}  // namespace
}  // namespace sol::test
