// --device: what executes the frozen model. "native" is the CPU by our own kernels; cpu, cuda and
// cuda:N are LibTorch's, which only sol-train is linked with.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "sol/frozen_model.h"

namespace sol::app {

// A name that --device takes.
CLI::Validator device_name();

// Whether the command line names a LibTorch device. Asked before it is parsed: the program to parse
// it is then the one with LibTorch.
bool wants_torch_device(int argc, char** argv);

// The program with LibTorch says how to load onto its devices.
using DeviceLoader = std::unique_ptr<FrozenModel> (*)(const std::filesystem::path& dir,
                                                      const std::string& device,
                                                      const ModelOptions& options);
void set_device_loader(DeviceLoader loader);

// Throws Error, beside what loading throws, for a LibTorch device in a program built without it.
std::unique_ptr<FrozenModel> load_on_device(const std::filesystem::path& dir,
                                            const std::string& device, const ModelOptions& options);

}  // namespace sol::app
