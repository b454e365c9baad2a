// Decode steps against the authors' code, on every instruction set that the machine has.
#include "cpu_engines.h"
#include "golden_decode_cases.h"

namespace sol::test {
namespace {

INSTANTIATE_TEST_SUITE_P(EveryIsa, GoldenDecode,
                         testing::Combine(testing::ValuesIn(cpu_engines()),
                                          testing::ValuesIn(decode_cases())),
                         golden_decode_case);

}  // namespace
}  // namespace sol::test
