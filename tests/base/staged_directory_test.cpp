#include "base/staged_directory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "base/file_io.h"
#include "sol/error.h"
#include "support.h"

namespace sol {
namespace {

namespace fs = std::filesystem;

// However the name is written, files are written beside it, and it appears when it is placed.
TEST(StagedDirectory, AppearsUnderItsName) {
  for (const char* name : {"out", "out/", "out/.", "over/../out/"}) {
    const test::TemporaryDirectory dir;
    fs::create_directory(dir.path() / "out");  // an empty one is replaced
    {
      StagedDirectory staged(dir.path() / name);
      EXPECT_EQ(fs::canonical(staged.path()).parent_path(), fs::canonical(dir.path())) << name;
      write_file_atomically(staged.path() / "file", "text");
      EXPECT_TRUE(fs::is_empty(dir.path() / "out")) << name;
      staged.place();
    }
    EXPECT_EQ(read_file(dir.path() / "out" / "file"), "text") << name;
  }
}

TEST(StagedDirectory, LeavesNothingUnlessPlaced) {
  const test::TemporaryDirectory dir;
  {
    StagedDirectory staged(dir.path() / "out");
    write_file_atomically(staged.path() / "file", "text");
  }
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST(StagedDirectory, WhatDeadProcessesLeftIsRemoved) {
  const test::TemporaryDirectory dir;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    StagedDirectory staged(dir.path() / "out");
    write_file_atomically(staged.path() / "file", "text");
    kill(getpid(), SIGKILL);
  }
  waitpid(child, nullptr, 0);
  const std::string end = ".tmp-" + std::to_string(child);
  const fs::path left = dir.path() / ("out" + end);
  ASSERT_TRUE(fs::exists(left / "file"));
  // Of the process that is always there, of another name, of no process.
  const std::vector<std::string> others{"out.tmp-1", "other" + end, "out.tmp-", "out" + end + "x"};
  for (const std::string& name : others) fs::create_directory(dir.path() / name);
  {
    const DirectoryLock used(left);  // as by a process of another container
    const StagedDirectory staged(dir.path() / "out");
    EXPECT_TRUE(fs::exists(left / "file"));
  }
  const StagedDirectory staged(dir.path() / "out");
  EXPECT_FALSE(fs::exists(left));
  for (const std::string& name : others) EXPECT_TRUE(fs::exists(dir.path() / name)) << name;
}

TEST(StagedDirectory, DoesNotReplaceFiles) {
  const test::TemporaryDirectory dir;
  StagedDirectory staged(dir.path() / "out");
  fs::create_directory(dir.path() / "out");
  write_file_atomically(dir.path() / "out" / "file", "somebody's");
  EXPECT_THROW(staged.place(), Error);
  EXPECT_EQ(read_file(dir.path() / "out" / "file"), "somebody's");
}

}  // namespace
}  // namespace sol
