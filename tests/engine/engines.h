// What tests that hold for every backend of FrozenModel know of one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "golden.h"

namespace sol::test {

struct Engine {
  std::string name;
  // Sums do not depend on who else is in the batch: results are the same bits.
  bool exact = false;
  // Distance of logits from the golden ones (float32; an independent float64 pass agrees within
  // 4e-5), and with q < 16, where a value on a rounding tie can fall to the other side and moves
  // the logits of that row and, through the cache, of later ones: of the worst row and of nine in
  // ten (tests/data/golden/README.md).
  double tolerance = 5e-5, worst_quantised = 1e-2, most_quantised = 1e-3;
  std::function<std::unique_ptr<FrozenModel>(LlamaConfig, TensorStore, Precision)> make;
  // One cached key [head_dim] of a sequence.
  std::function<std::vector<float>(const Sequence&, int layer, int head, int position)> key;
  std::function<void()> prepare = [] {};  // before a test
  std::string unavailable = {};           // why it cannot run here

  std::unique_ptr<FrozenModel> load(const std::filesystem::path& dir,
                                    Precision precision = Precision::f32) const {
    return make(load_config(dir), TensorStore::open_directory(dir), precision);
  }
};

inline void PrintTo(const Engine& engine, std::ostream* out) {
  *out << engine.name;
}

inline std::string engine_name(const testing::TestParamInfo<Engine>& param_info) {
  return param_info.param.name;
}

// Skips, visibly, where the engine cannot run.
#define SOL_PREPARE_ENGINE(engine)                                           \
  do {                                                                       \
    if (!(engine).unavailable.empty()) GTEST_SKIP() << (engine).unavailable; \
    (engine).prepare();                                                      \
  } while (false)

}  // namespace sol::test
