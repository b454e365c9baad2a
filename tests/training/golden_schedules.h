// Schedules and parameters from the reference implementation's recordings (tests/data/golden/sol).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/safetensors.h"
#include "policy/network.h"
#include "support.h"
#include "training/schedule.h"

namespace sol::test {

inline std::filesystem::path golden_sol() {
  return test_data() / "golden" / "sol";
}

inline Parameters read_parameters(const TensorStore& store, const std::string& prefix) {
  Parameters out;
  for (const auto& [name, view] : store.tensors()) {
    if (name.starts_with(prefix)) out[name.substr(prefix.size())] = {view.shape, view.to_floats()};
  }
  return out;
}

// The recordings are time-major, [T][N] and [T][N][width]; a schedule is one column.
template <typename T>
std::vector<T> column(const std::vector<T>& values, size_t steps, size_t n, size_t count,
                      size_t width = 1) {
  std::vector<T> out;
  for (size_t t = 0; t < steps; ++t) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>((t * count + n) * width);
    out.insert(out.end(), begin, begin + static_cast<std::ptrdiff_t>(width));
  }
  return out;
}

struct RecordingNames {
  std::string hidden = "h", embedding = "e", scalars = "scalars", previous = "prev_actions",
              actions = "actions";
};

inline std::vector<Schedule> read_schedules(const TensorStore& store, const RecordingNames& names,
                                            int actions) {
  const std::vector<int64_t> shape = store.get(names.hidden).shape;
  const size_t steps = static_cast<size_t>(shape[0]), count = static_cast<size_t>(shape[1]);
  const size_t width = static_cast<size_t>(shape[2]);
  const auto hidden = store.get(names.hidden).to_floats(),
             embedding = store.get(names.embedding).to_floats();
  const auto scalars = store.get(names.scalars).to_floats();
  const auto previous = store.get(names.previous).to_ints(),
             chosen = store.get(names.actions).to_ints();
  std::vector<Schedule> out(count);
  for (size_t n = 0; n < count; ++n) {
    Schedule& s = out[n];
    s.hidden = column(hidden, steps, n, count, width);
    s.embedding = column(embedding, steps, n, count, width);
    s.effective.assign(steps, 1);
    for (size_t t = 0; t < steps; ++t) {
      Features f;
      std::copy_n(scalars.begin() + static_cast<std::ptrdiff_t>((t * count + n) * feature_count),
                  feature_count, f.begin());
      s.features.push_back(f);
      const int64_t p = previous[t * count + n];
      s.previous_actions.push_back(p == actions ? -1 : static_cast<int>(p));
      s.actions.push_back(static_cast<int>(chosen[t * count + n]));
    }
  }
  return out;
}

inline std::vector<const Schedule*> pointers(const std::vector<Schedule>& schedules) {
  std::vector<const Schedule*> out;
  for (const Schedule& s : schedules) out.push_back(&s);
  return out;
}

inline double largest_difference(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double difference = std::fabs(static_cast<double>(a[i]) - b[i]);
    worst = std::isnan(difference) ? INFINITY : std::max(worst, difference);
  }
  return worst;
}

}  // namespace sol::test
