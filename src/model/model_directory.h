// Directories that hold a model, which other files are not written among.
#pragma once

#include <filesystem>
#include <string>

namespace sol {

// The name of a file in `dir` that makes it a model's (configuration, weights, index of shards); ""
// where there is none.
std::string model_file_in(const std::filesystem::path& dir);

}  // namespace sol
