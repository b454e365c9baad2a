#include "base/cpu.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "base/fail.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#define SOL_X86 1
#endif

namespace sol {
namespace {

constexpr std::array all_isas{Isa::reference, Isa::avx2, Isa::avx512, Isa::avx512_vnni};

struct Features {
  bool avx2 = false;         // with FMA and F16C, which every processor with AVX2 has
  bool avx512 = false;       // F, BW, DQ, VL
  bool avx512_vnni = false;  // and VBMI
  bool avx512_bf16 = false;
  bool amx_bf16 = false;
};

#ifdef SOL_X86
// What the operating system saves on a context switch: a register set that it does not know must
// not be used, whatever the processor can do.
uint64_t enabled_states() {
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 27))) return 0;  // OSXSAVE
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

Features detect() {
  Features features;
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return features;
  const bool fma_f16c = (c & (1u << 12)) && (c & (1u << 29));
  const uint64_t states = enabled_states();
  const bool ymm = (states & 0x6) == 0x6;
  const bool zmm = (states & 0xe6) == 0xe6;
  const bool tiles = (states & 0x60000) == 0x60000;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return features;
  const uint32_t subleaves = a;
  features.avx2 = ymm && fma_f16c && (b & (1u << 5));
  const uint32_t f_dq_bw_vl = (1u << 16) | (1u << 17) | (1u << 30) | (1u << 31);
  features.avx512 = features.avx2 && zmm && (b & f_dq_bw_vl) == f_dq_bw_vl;
  const uint32_t vbmi_vnni = (1u << 1) | (1u << 11);
  features.avx512_vnni = features.avx512 && (c & vbmi_vnni) == vbmi_vnni;
  features.amx_bf16 = tiles && (d & (1u << 22)) && (d & (1u << 24));
  if (subleaves >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d))
    features.avx512_bf16 = features.avx512 && (a & (1u << 5));
  return features;
}
#else
Features detect() {
  return {};
}
#endif

const Features& features() {
  static const Features detected = detect();
  return detected;
}

std::string isa_names(std::span<const Isa> isas) {
  std::string names;
  for (const Isa isa : isas) {
    if (!names.empty()) names += ", ";
    names += to_string(isa);
  }
  return names;
}

void check_supported(Isa isa) {
  for (const Isa supported : supported_isas())
    if (supported == isa) return;
  fail("instruction set {} is not supported by this machine, which has {}", to_string(isa),
       isa_names(supported_isas()));
}

Isa initial_isa() {
  const char* wanted = std::getenv("SOL_ISA");
  if (!wanted || !*wanted) return supported_isas().back();
  try {
    const Isa isa = parse_isa(wanted);
    check_supported(isa);
    return isa;
  } catch (const Error& error) {
    fail("environment variable SOL_ISA: {}", error.what());
  }
}

// A forced choice comes first and never looks at SOL_ISA; -1 means none.
std::atomic<int> forced{-1};

std::string model_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t start = line.find_first_not_of(" \t", line.find(':') + 1);
    if (start != std::string::npos) return line.substr(start);
  }
  return "unknown processor";
}

}  // namespace

std::string_view to_string(Isa isa) {
  switch (isa) {
    case Isa::reference:
      return "reference";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
    case Isa::avx512_vnni:
      return "avx512_vnni";
  }
  fail("unknown instruction set number {}", static_cast<int>(isa));
}

Isa parse_isa(std::string_view name) {
  for (const Isa isa : all_isas)
    if (to_string(isa) == name) return isa;
  fail("unknown instruction set \"{}\"; known are {}", name, isa_names(all_isas));
}

std::span<const Isa> supported_isas() {
  static const std::vector<Isa> isas = [] {
    std::vector<Isa> found{Isa::reference};
    if (features().avx2) found.push_back(Isa::avx2);
    if (features().avx512) found.push_back(Isa::avx512);
    if (features().avx512_vnni) found.push_back(Isa::avx512_vnni);
    return found;
  }();
  return isas;
}

Isa current_isa() {
  const int choice = forced.load(std::memory_order_relaxed);
  if (choice >= 0) return static_cast<Isa>(choice);
  static const Isa isa = initial_isa();
  return isa;
}

void force_isa(Isa isa) {
  check_supported(isa);
  forced.store(static_cast<int>(isa), std::memory_order_relaxed);
}

bool enable_amx_bf16() {
#if defined(SOL_X86) && defined(__linux__)
  static const bool enabled = [] {
    constexpr int kRequestPermission = 0x1023, kTileData = 18;  // asm/prctl.h of newer systems
    return features().amx_bf16 && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return enabled;
#else
  return false;
#endif
}

bool cpu_has_avx512_bf16() {
  return features().avx512_bf16;
}

bool cpu_multiplies_bf16() {
  return features().avx512_bf16 || features().amx_bf16;
}

std::string cpu_description() {
  std::string text = model_name() + " (";
  text += isa_names(supported_isas().subspan(supported_isas().size() > 1 ? 1 : 0));
  if (features().avx512_bf16) text += ", avx512_bf16";
  if (features().amx_bf16) text += ", amx_bf16";
  return text + ")";
}

}  // namespace sol
