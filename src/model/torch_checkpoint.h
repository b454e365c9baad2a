// Checkpoints that torch.save wrote (PyTorch 1.6 and later), read without running anything.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"

namespace sol {

struct TorchCheckpoint {
  struct Tensor {
    std::vector<int64_t> shape;
    std::vector<float> values;  // row-major, whatever the strides were
  };
  std::map<std::string, Tensor> state;  // the state_dict
  Json settings = Json::object();       // the "cfg" beside it, where there is one
};

// A state_dict, or a dictionary that holds one as "policy_state_dict" or "state_dict". Throws Error
// naming the file, and the tensor, for anything else, see ZipArchive and Pickle.
TorchCheckpoint read_torch_checkpoint(const std::filesystem::path& path);

}  // namespace sol
