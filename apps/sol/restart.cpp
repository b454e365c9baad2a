#include "restart.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace sol::app {
std::vector<std::string> process_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> out;
  for (std::string argument; std::getline(file, argument, '\0');) out.push_back(argument);
  return out;
}

void restart_with(const char* name, const char* value) {
  std::vector<std::string> words = process_arguments();
  if (words.empty() || setenv(name, value, 1) != 0) return;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  // By its own path, which names the process.
  std::error_code unknown;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (!unknown) execv(self.c_str(), argv.data());
  execv("/proc/self/exe", argv.data());
  unsetenv(name);  // still here: it could not be started again
}

void choose_short_spin() {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
  restart_with("GOMP_SPINCOUNT", "2000");
}

void keep_planned_threads() {
  const char* dynamic = std::getenv("OMP_DYNAMIC");
  if (dynamic && std::string(dynamic) != "false") restart_with("OMP_DYNAMIC", "false");
}

}  // namespace sol::app
