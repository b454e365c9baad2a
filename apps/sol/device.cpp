#include "device.h"

#include <string_view>

#include "base/fail.h"

namespace sol::app {
namespace {

DeviceLoader torch_loader = nullptr;

bool is_device(std::string_view name) {
  constexpr std::string_view numbered = "cuda:";
  if (name == native_device || name == "cpu" || name == "cuda") return true;
  if (!name.starts_with(numbered)) return false;
  name.remove_prefix(numbered.size());
  return !name.empty() && name.size() <= 3 &&
         name.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

CLI::Validator device_name() {
  return {[](std::string& name) {
            return is_device(name) ? std::string()
                                   : name + " is no device; native, cpu, cuda and cuda:N are";
          },
          "DEVICE"};
}

bool wants_torch_device(int argc, char** argv) {
  constexpr std::string_view option = "--device", assigned = "--device=";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    std::string_view value;
    if (argument == "--") return false;
    if (argument == option && i + 1 < argc) value = argv[i + 1];
    if (argument.starts_with(assigned)) value = argument.substr(assigned.size());
    if (is_device(value) && value != native_device) return true;
  }
  return false;
}

void set_device_loader(DeviceLoader loader) {
  torch_loader = loader;
}

std::unique_ptr<FrozenModel> load_on_device(const std::filesystem::path& dir,
                                            const std::string& device,
                                            const ModelOptions& options) {
  if (device == native_device) return load_model(dir, options);
  if (!torch_loader)
    fail(
        "--device {}: this program was built without LibTorch (-DSOL_TRAINING=OFF); build with it, "
        "or leave the option out",
        device);
  return torch_loader(dir, device, options);
}

}  // namespace sol::app
