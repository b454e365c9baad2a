// The authors' published policies (policy_*.pt) as controllers.
#pragma once

#include "model/torch_checkpoint.h"
#include "sol/controller.h"

namespace sol {

// What a checkpoint does not hold, or may not.
struct ImportSettings {
  ActionSpace space;
  ControllerSettings controller;  // its training record is written here
  int heads = 4;                  // of the policy network: no weight's shape tells
  int hidden_size = 0;            // of the frozen model
};

// All other sizes of the network come from the weights. Throws Error for weights of another
// network, for a policy of a model of another width or another number of actions, and where the
// checkpoint's own settings contradict `settings`, naming the field and both values. `where` is
// what messages call the checkpoint.
Controller import_controller(TorchCheckpoint checkpoint, ImportSettings settings,
                             const std::string& where);

}  // namespace sol
