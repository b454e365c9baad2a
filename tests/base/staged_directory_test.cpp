#include "base/staged_directory.h"

#include <gtest/gtest.h>

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
