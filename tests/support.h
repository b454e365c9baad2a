// What tests of every folder share: where data lies, and how to skip visibly without it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace sol::test {

// tests/data: shipped with the repository.
inline std::filesystem::path test_data() {
  return SOL_TEST_DATA;
}
inline std::filesystem::path source_dir() {
  return SOL_SOURCE_DIR;
}

// Data that may not be shipped lies in shared/ beside the checkout, or where SOL_SHARED says.
inline std::filesystem::path shared_dir() {
  if (const char* dir = std::getenv("SOL_SHARED")) return dir;
  return source_dir().parent_path() / "shared";
}
inline bool have_shared() {
  return std::filesystem::exists(shared_dir() / "data");
}

// A fresh directory for one test, removed with it.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sol-test-XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace sol::test

#define SOL_SKIP_WITHOUT_SHARED() \
  if (!sol::test::have_shared()) GTEST_SKIP() << "needs shared/ beside the checkout"
