#include "training/shared_model.h"

#include <fstream>
#include <string>

#include "base/fail.h"
#include "base/json.h"
#include "base/shared_memory.h"

namespace sol {
namespace {

// What processes have in common that can open each other's memory: the running system and its view
// of processes.
std::string machine_identity() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::error_code unknown;
  return boot + " " + std::filesystem::read_symlink("/proc/self/ns/pid", unknown).string();
}

// Where the process of this machine that made the weights has them.
std::filesystem::path find_weights(const std::vector<std::string>& all, const std::string& machine,
                                   const RankEnvironment& environment) {
  for (const std::string& text : all) {
    const Json other = parse_json(text, "another process");
    auto path = json_get<std::string>(other, "path", "another process");
    if (!path.empty() && json_get<std::string>(other, "machine", "another process") == machine)
      return path;
  }
  fail(
      "this is process {} of {} on its machine (LOCAL_RANK, LOCAL_WORLD_SIZE), but the first one "
      "is not there: processes in different containers are started as on different machines",
      environment.local_rank, environment.local_size);
}

}  // namespace

std::unique_ptr<FrozenModel> load_shared_model(const std::filesystem::path& dir,
                                               ModelOptions options,
                                               const RankEnvironment& environment,
                                               ProcessGroup& group) {
  if (group.size() == 1) return load_model(dir, options);
  const bool makes = environment.local_rank == 0;
  std::unique_ptr<FrozenModel> model;
  std::string path;
  if (makes) {
    options.shared_weights = SharedMemory::create();
    path = options.shared_weights->path().string();
    model = load_model(dir, options);
  }
  const std::string machine = machine_identity();
  const auto all = group.all_gather(to_text(Json{{"machine", machine}, {"path", path}}));
  if (!makes) {
    options.shared_weights = SharedMemory::open(find_weights(all, machine, environment));
    model = load_model(dir, options);
  }
  group.any(false);  // until everybody has opened it, nobody may end
  return model;
}

}  // namespace sol
