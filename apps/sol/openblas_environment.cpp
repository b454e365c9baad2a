#include "openblas_environment.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/cpu.h"
#include "restart.h"

namespace sol::app {
namespace {

// Kernels without AVX2, as OpenBLAS names them.
constexpr std::array<std::string_view, 14> old_cores{
    "Katmai", "Coppermine", "Northwood", "Prescott", "Banias",      "Atom",      "Core2",
    "Penryn", "Dunnington", "Nehalem",   "Athlon",   "Sandybridge", "Barcelona", "Generic"};

bool chose_old_core() {
  // Looked up at run time: another BLAS may stand behind the same interface.
  using CoreName = char* (*)();
  const auto core_name = reinterpret_cast<CoreName>(dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  if (!core_name) return false;
  const std::string_view name = core_name();
  return std::any_of(old_cores.begin(), old_cores.end(), [&](std::string_view old) {
    return name.size() == old.size() &&
           std::equal(name.begin(), name.end(), old.begin(),
                      [](char a, char b) { return std::tolower(a) == std::tolower(b); });
  });
}

}  // namespace

void choose_openblas_kernels() {
  if (std::getenv("OPENBLAS_CORETYPE") || !chose_old_core()) return;
  const auto isas = supported_isas();
  const bool avx512 = std::find(isas.begin(), isas.end(), Isa::avx512) != isas.end();
  const bool avx2 = std::find(isas.begin(), isas.end(), Isa::avx2) != isas.end();
  if (!avx2) return;
  restart_with("OPENBLAS_CORETYPE", avx512 ? "SkylakeX" : "Haswell");
}

}  // namespace sol::app
