// The frozen model of several processes, once per machine.
#pragma once

#include <filesystem>
#include <memory>

#include "sol/frozen_model.h"
#include "training/process_group.h"

namespace sol {

// load_model on every process of the group: the first one of each machine makes what weights
// loading has to make in memory that the others then open. Throws what load_model throws, and Error
// when processes that were started as of one machine cannot open each other's memory.
std::unique_ptr<FrozenModel> load_shared_model(const std::filesystem::path& dir,
                                               ModelOptions options,
                                               const RankEnvironment& environment,
                                               ProcessGroup& group);

}  // namespace sol
