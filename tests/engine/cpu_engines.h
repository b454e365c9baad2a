// The CPU engine as the tests that hold for every backend want it.
#pragma once

#include <vector>

#include "base/cpu.h"
#include "engine/cpu_model.h"
#include "engines.h"

namespace sol::test {

// own_products: sums in one order (ModelOptions::deterministic), else through the library.
inline Engine cpu_engine(Isa isa, bool own_products) {
  return {.name = std::string(to_string(isa)) + (own_products ? "_own" : "_library"),
          .exact = own_products,
          .make =
              [own_products](LlamaConfig config, TensorStore store, Precision precision) {
                return std::make_unique<CpuModel>(std::move(config), std::move(store),
                                                  ModelOptions{precision, own_products});
              },
          .key =
              [](const Sequence& sequence, int layer, int head, int position) {
                const auto keys = dynamic_cast<const CpuSequence&>(sequence).keys(layer, head);
                const auto* first = reinterpret_cast<const float*>(
                                        keys.blocks[position / keys.block_tokens] + keys.offset) +
                                    (position % keys.block_tokens) * keys.dim;
                return std::vector<float>(first, first + keys.dim);
              },
          .prepare = [isa] { force_isa(isa); }};
}

inline Engine best_cpu_engine(bool own_products) {
  return cpu_engine(current_isa(), own_products);
}

inline std::vector<Engine> cpu_engines() {
  std::vector<Engine> engines;
  for (const Isa isa : supported_isas())
    for (const bool own_products : {false, true}) engines.push_back(cpu_engine(isa, own_products));
  return engines;
}

}  // namespace sol::test
