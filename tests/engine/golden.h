// Golden models and their values, made by other people's implementations
// (tests/data/golden/README.md).
#pragma once

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "base/file_io.h"
#include "base/json.h"
#include "model/safetensors.h"
#include "sol/error.h"
#include "sol/frozen_model.h"
#include "support.h"

namespace sol::test {

inline std::filesystem::path golden_dir() {
  return test_data() / "golden";
}

inline std::vector<float> read_floats(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  std::vector<float> values(bytes.size() / 4);
  std::memcpy(values.data(), bytes.data(), values.size() * 4);
  return values;
}

// Restores the instruction set when a test that forces others is done.
class IsaGuard {
 public:
  IsaGuard() : before_(current_isa()) {}
  ~IsaGuard() { force_isa(before_); }

 private:
  Isa before_;
};

inline double max_difference(const float* a, const float* b, size_t n) {
  double worst = 0;
  for (size_t i = 0; i < n; ++i) {
    const double difference = std::fabs(static_cast<double>(a[i]) - b[i]);
    worst = std::isnan(difference) ? INFINITY : std::max(worst, difference);
  }
  return worst;
}

}  // namespace sol::test
