// Which instruction sets this build and this machine have, and which one is in use.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sol {

// reference: plain C++, the arithmetic's readable definition; the others are built from one source
// each with their own compiler flags (avx512: F, BW, DQ, VL; avx512_vnni: VNNI and VBMI
// besides). Ascending order of preference.
enum class Isa { reference, avx2, avx512, avx512_vnni };

std::string_view to_string(Isa isa);
constexpr bool has_avx512(Isa isa) {
  return isa >= Isa::avx512;
}
Isa parse_isa(std::string_view name);  // throws Error listing the names

std::span<const Isa> supported_isas();  // on this machine, ascending; reference is always there

// The best supported one, or the one that the environment variable SOL_ISA names. Throws Error when
// that is unknown or not supported here. Decided once per process unless force_isa is called.
Isa current_isa();
void force_isa(Isa isa);  // for tests and benchmarks; throws Error when not supported

// Whether the processor multiplies bf16 in tiles and the system lets this process do so, which it
// is asked at the first call.
bool enable_amx_bf16();
bool cpu_has_avx512_bf16();
bool cpu_multiplies_bf16();     // AVX512_BF16 or AMX-BF16
std::string cpu_description();  // model name and features, for results

}  // namespace sol
