#include "training/schedule_exchange.h"

#include <cstring>
#include <string>

#include "base/fail.h"

namespace sol {
namespace {

// Processes of one run are one program on one kind of processor, so values travel as they lie in
// memory.
template <typename T>
void write(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}
template <typename T>
void write(std::string& out, const std::vector<T>& values) {
  out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

class Reader {
 public:
  explicit Reader(std::string_view text) : left_(text) {}
  template <typename T>
  void read(T& value) {
    take(&value, sizeof(T));
  }
  template <typename T>
  void read(std::vector<T>& values, size_t count) {
    values.resize(count);
    take(values.data(), count * sizeof(T));
  }
  bool empty() const { return left_.empty(); }

 private:
  void take(void* out, size_t bytes) {
    if (left_.size() < bytes)
      fail("a process of the run sent fewer schedules than its share: do all run one version?");
    std::memcpy(out, left_.data(), bytes);
    left_.remove_prefix(bytes);
  }
  std::string_view left_;
};

}  // namespace

bool exchange_schedules(std::span<Schedule> batch, int horizon, const Lanes& lanes, bool stopped,
                        ProcessGroup& group) {
  if (group.size() == 1) return !stopped;
  std::string mine;
  if (!stopped) {
    for (size_t i = 0; i < batch.size(); ++i) {
      if (!lanes.owns_schedule(i)) continue;
      const Schedule& s = batch[i];
      write(mine, s.budget);
      write(mine, s.realised);
      write(mine, s.realised_time);
      write(mine, s.actions);
      write(mine, s.effective);
      write(mine, s.rewards);
      write(mine, s.log_likelihood);
    }
  }
  const std::vector<std::string> all = group.all_gather(mine);
  for (const std::string& part : all)
    if (part.empty()) return false;
  const size_t steps = static_cast<size_t>(horizon);
  std::vector<Reader> readers(all.begin(), all.end());
  for (size_t i = 0; i < batch.size(); ++i) {
    if (lanes.owns_schedule(i)) continue;
    Reader& reader = readers[static_cast<size_t>(lanes.of_schedule(i) / lanes.own)];
    Schedule& s = batch[i];
    reader.read(s.budget);
    reader.read(s.realised);
    reader.read(s.realised_time);
    reader.read(s.actions, steps);
    reader.read(s.effective, steps);
    reader.read(s.rewards, steps);
    reader.read(s.log_likelihood, steps);
  }
  for (size_t r = 0; r < readers.size(); ++r)
    if (static_cast<int>(r) != group.rank() && !readers[r].empty())
      fail("a process of the run sent more schedules than its share: do all run one version?");
  return true;
}

}  // namespace sol
