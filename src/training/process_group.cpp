#include "training/process_group.h"

namespace sol {
namespace {

class Alone : public ProcessGroup {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::vector<std::string> all_gather(std::string_view mine) override {
    return {std::string(mine)};
  }
  void sum(std::span<float>) override {}
  void broadcast(std::span<float>) override {}
  void broadcast(std::string&) override {}
  std::stop_token failure() const override { return {}; }
};

}  // namespace

bool ProcessGroup::any(bool mine) {
  if (size() == 1) return mine;
  for (const std::string& flag : all_gather(mine ? "1" : "0"))
    if (flag == "1") return true;
  return false;
}

std::unique_ptr<ProcessGroup> alone() {
  return std::make_unique<Alone>();
}

}  // namespace sol
