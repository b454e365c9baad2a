#include "model/model_directory.h"

#include "base/file_io.h"

namespace sol {

std::string model_file_in(const std::filesystem::path& dir) {
  for (const char* name : {"config.json", "model.safetensors", "model.safetensors.index.json"})
    if (path_exists(dir / name)) return name;
  return "";
}

}  // namespace sol
