// Short ways to make a sequence longer, for tests.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sol/error.h"
#include "sol/frozen_model.h"

namespace sol::test {

inline std::vector<int32_t> tokens(int n, int seed) {
  std::vector<int32_t> ids;
  for (int i = 0; i < n; ++i) ids.push_back((i * 37 + seed * 101 + i * i) % 320);
  return ids;
}

inline void extend(FrozenModel& model, Sequence& sequence, std::span<const int32_t> ids) {
  ExtendItem item{&sequence, ids, {}};
  model.extend({&item, 1});
}

inline std::vector<float> decode(FrozenModel& model, Sequence& sequence, int32_t token,
                                 Action action = {}, StepCost* cost = nullptr) {
  std::vector<float> logits(static_cast<size_t>(model.config().vocab_size));
  DecodeItem item{&sequence, token, action, {.logits = logits.data()}, cost};
  model.decode({&item, 1});
  return logits;
}

inline constexpr Action harsh{0.2f, 0.4f, 4};

// What `call` throws says; empty where it throws nothing.
template <typename Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace sol::test
