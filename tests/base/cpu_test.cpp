#include "base/cpu.h"

#include <algorithm>
#include <cstdlib>

#include "support.h"
#include "throws.h"

namespace sol {
namespace {

using test::throws;

// Runs `check` in a process of its own: the choice is made once per process.
template <typename Check>
void in_child(const char* sol_isa, Check check) {
  ASSERT_EXIT(
      {
        setenv("SOL_ISA", sol_isa, 1);
        std::exit(check() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Cpu, NamesRoundTrip) {
  for (const Isa isa : {Isa::reference, Isa::avx2, Isa::avx512, Isa::avx512_vnni})
    EXPECT_EQ(parse_isa(to_string(isa)), isa);
  EXPECT_THAT([] { parse_isa("neon"); }, throws({"neon", "reference, avx2, avx512, avx512_vnni"}));
}

TEST(Cpu, ReferenceIsAlwaysSupportedAndTheListAscends) {
  const auto isas = supported_isas();
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(isas.front(), Isa::reference);
  EXPECT_TRUE(std::ranges::is_sorted(isas));
}

// The compiler's own detection, an independent reading of the same registers.
TEST(Cpu, AgreesWithTheCompiler) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const auto has = [](Isa isa) { return std::ranges::count(supported_isas(), isa) == 1; };
  EXPECT_EQ(has(Isa::avx2), __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
  EXPECT_EQ(has(Isa::avx512),
            __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"));
  EXPECT_EQ(has(Isa::avx512_vnni),
            __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi"));
#else
  EXPECT_EQ(supported_isas().size(), 1u);
#endif
}

TEST(Cpu, ForcingAnIsa) {
  for (const Isa isa : supported_isas()) {
    force_isa(isa);
    EXPECT_EQ(current_isa(), isa);
  }
  for (const Isa isa : {Isa::avx2, Isa::avx512, Isa::avx512_vnni})
    if (std::ranges::count(supported_isas(), isa) == 0) {
      EXPECT_THAT([&] { force_isa(isa); }, throws({std::string(to_string(isa)), "not supported"}));
    }
}

TEST(CpuDeathTest, TheEnvironmentChooses) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  in_child("reference", [] { return current_isa() == Isa::reference; });
  in_child("", [] { return current_isa() == supported_isas().back(); });
  in_child("neon", [] {
    try {
      current_isa();
    } catch (const Error& error) {
      return std::string(error.what()).find("SOL_ISA") != std::string::npos;
    }
    return false;
  });
}

TEST(Cpu, DescriptionNamesTheSets) {
  const std::string text = cpu_description();
  EXPECT_NE(text.find(to_string(supported_isas().back())), std::string::npos) << text;
}

}  // namespace
}  // namespace sol
