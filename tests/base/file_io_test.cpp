#include "base/file_io.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/mapped_file.h"
#include "file_size_limit.h"
#include "sol/error.h"
#include "support.h"
#include "throws.h"

namespace sol {
namespace {

namespace fs = std::filesystem;
using test::FileSizeLimit;
using test::TemporaryDirectory;
using test::throws;

int files_in(const fs::path& dir) {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(dir)) ++count;
  return count;
}

TEST(FileIo, ReadsWhatWasWritten) {
  const TemporaryDirectory dir;
  const std::string content = std::string("a\0b\n", 4) + std::string(200000, 'x');
  write_file_atomically(dir.path() / "f", content);
  EXPECT_EQ(read_file(dir.path() / "f"), content);
  EXPECT_EQ(files_in(dir.path()), 1);
}

TEST(FileIo, AMissingFileIsNamed) {
  EXPECT_THAT([] { read_file("/nonexistent/name"); },
              throws({"/nonexistent/name", "No such file or directory"}));
  EXPECT_THAT([] { MappedFile("/nonexistent/name"); },
              throws({"/nonexistent/name", "No such file or directory"}));
}

TEST(FileIo, ADirectoryIsNotAFile) {
  const TemporaryDirectory dir;
  EXPECT_THAT([&] { read_file(dir.path()); }, throws({"is a directory"}));
  EXPECT_THAT([&] { MappedFile file(dir.path()); }, throws({"is a directory"}));
  EXPECT_THAT([&] { AtomicFile file(dir.path()); }, throws({"is a directory"}));
}

TEST(FileIo, APipeIsNotWaitedFor) {
  const TemporaryDirectory dir;
  const fs::path pipe = dir.path() / "pipe", link = dir.path() / "link";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  fs::create_symlink(pipe, link);
  for (const fs::path& path : {pipe, link}) {
    EXPECT_THAT([&] { read_file(path); }, throws({path.string(), "not a regular file"}));
    EXPECT_THAT([&] { MappedFile file(path); }, throws({path.string(), "not a regular file"}));
  }
}

TEST(FileIo, AFileBeyondTheLimitIsNotRead) {
  const TemporaryDirectory dir;
  write_file_atomically(dir.path() / "f", std::string(100, 'x'));
  EXPECT_EQ(read_file(dir.path() / "f", 100).size(), 100u);
  EXPECT_THAT([&] { read_file(dir.path() / "f", 99); }, throws({"f", "more than 99 bytes"}));
}

TEST(FileIo, EmptyNamesAndCircularLinksAreErrors) {
  const TemporaryDirectory dir;
  fs::create_symlink(dir.path() / "b", dir.path() / "a");
  fs::create_symlink(dir.path() / "a", dir.path() / "b");
  const std::string circle = (dir.path() / "a").string();
  EXPECT_THAT([&] { path_exists(circle); }, throws({circle, "symbolic links"}));
  EXPECT_THAT([&] { read_file(circle); }, throws({circle, "symbolic links"}));
  EXPECT_THAT([&] { AtomicFile file(circle); }, throws({circle, "symbolic links"}));
  EXPECT_THAT([] { read_file(""); }, throws({"is empty"}));
  EXPECT_THAT([] { AtomicFile file(""); }, throws({"is empty"}));
  EXPECT_THAT([] { ensure_writable_directory(""); }, throws({"is empty"}));
  EXPECT_FALSE(path_exists(dir.path() / "none"));
}

TEST(AtomicFile, ALinkStaysAndItsFileIsReplaced) {
  const TemporaryDirectory dir, other;
  const fs::path link = dir.path() / "link", target = other.path() / "target";
  write_file_atomically(target, "old");
  fs::create_symlink(target, link);
  write_file_atomically(link, "new");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(read_file(target), "new");
  EXPECT_EQ(files_in(other.path()), 1);
  fs::remove(target);
  EXPECT_THAT([&] { AtomicFile file(link); }, throws({"link", "does not exist"}));
}

TEST(AtomicFile, APipeIsWrittenToDirectly) {
  const TemporaryDirectory dir;
  const fs::path pipe = dir.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  ensure_writable_file(pipe);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  write_file_atomically(pipe, "text");
  char got[8];
  EXPECT_EQ(read(reader, got, sizeof(got)), 4);
  close(reader);
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(files_in(dir.path()), 1);
}

TEST(AtomicFile, APipeThatNobodyReadsIsNotWaitedFor) {
  const TemporaryDirectory dir;
  const fs::path pipe = dir.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT([&] { AtomicFile file(pipe); }, throws({pipe.string(), "nobody reads"}));
}

TEST(AtomicFile, PermissionsStay) {
  const TemporaryDirectory dir;
  const fs::path path = dir.path() / "f";
  write_file_atomically(path, "old");
  for (const fs::perms mode : {fs::perms(0400), fs::perms(0640), fs::perms(0755)}) {
    fs::permissions(path, mode);
    if (access(path.c_str(), W_OK) != 0) continue;  // nobody but root may write to the first
    write_file_atomically(path, "new");
    EXPECT_EQ(fs::status(path).permissions(), mode);
  }
}

TEST(AtomicFile, WhoMayNotWriteToAFileDoesNotReplaceIt) {
  const TemporaryDirectory dir;
  const fs::path path = dir.path() / "f";
  write_file_atomically(path, "old");
  fs::permissions(path, fs::perms(0444));
  if (access(path.c_str(), W_OK) == 0) GTEST_SKIP() << "root may write to any file";
  EXPECT_THAT([&] { AtomicFile file(path); }, throws({path.string(), "Permission denied"}));
}

TEST(AtomicFile, WhatDeadProcessesLeftIsRemoved) {
  const TemporaryDirectory dir;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    AtomicFile file(dir.path() / "other");
    file.write("x");
    kill(getpid(), SIGKILL);
  }
  waitpid(child, nullptr, 0);
  ASSERT_EQ(files_in(dir.path()), 1);
  write_file_atomically(dir.path() / "mine.sol-tmp-1-x", "not one of them");
  AtomicFile open_file(dir.path() / "open");
  EXPECT_EQ(files_in(dir.path()), 2);
  write_file_atomically(dir.path() / "f", "content");
  open_file.commit();
  EXPECT_EQ(files_in(dir.path()), 3);
}

TEST(DirectoryLock, IsHeldOnceAndLetGo) {
  const TemporaryDirectory dir;
  {
    const DirectoryLock lock(dir.path());
    EXPECT_THAT([&] { DirectoryLock second(dir.path()); }, throws({dir.path(), "another process"}));
  }
  const DirectoryLock again(dir.path());
  EXPECT_EQ(files_in(dir.path()), 0);
  EXPECT_THAT([&] { DirectoryLock none(dir.path() / "none"); }, throws({"none"}));
}

TEST(EnsureWritableFile, MakesNoDirectoryAndLeavesNothing) {
  const TemporaryDirectory dir;
  ensure_writable_file(dir.path() / "f");
  EXPECT_EQ(files_in(dir.path()), 0);
  EXPECT_THAT([&] { ensure_writable_file(dir.path() / "none" / "f"); },
              throws({"none", "No such file or directory"}));
  EXPECT_FALSE(fs::exists(dir.path() / "none"));
  EXPECT_THAT([&] { ensure_writable_file(dir.path()); }, throws({"is a directory"}));
}

TEST(AtomicFile, NothingAppearsBeforeCommit) {
  const TemporaryDirectory dir;
  const fs::path path = dir.path() / "f";
  write_file_atomically(path, "old");
  {
    AtomicFile file(path);
    file.write("new");
    EXPECT_EQ(read_file(path), "old");
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(files_in(dir.path()), 1);
  AtomicFile file(path);
  file.write("new");
  file.commit();
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(files_in(dir.path()), 1);
  EXPECT_THAT([&] { file.write("more"); }, throws({"after it was flushed"}));
  EXPECT_THAT([&] { file.commit(); }, throws({"twice"}));
}

TEST(AtomicFile, FlushingTellsOfAFullDiskBeforeAnythingIsReplaced) {
  const TemporaryDirectory dir;
  write_file_atomically(dir.path() / "small", "old");
  AtomicFile small(dir.path() / "small"), large(dir.path() / "large");
  const FileSizeLimit limit(10);
  small.write("new");
  large.write("more than ten bytes");  // stays in the buffer
  small.flush();
  EXPECT_THAT([&] { small.write("more"); }, throws({"after it was flushed"}));
  EXPECT_THAT([&] { large.flush(); }, throws({"large", "cannot write"}));
  EXPECT_EQ(read_file(dir.path() / "small"), "old");
  small.commit();
  EXPECT_EQ(read_file(dir.path() / "small"), "new");
}

TEST(AtomicFile, AFullDiskLeavesTheOldFileAndNothingElse) {
  const TemporaryDirectory dir;
  const fs::path path = dir.path() / "f";
  write_file_atomically(path, "old");
  {
    const FileSizeLimit limit(1 << 16);
    EXPECT_THAT([&] { write_file_atomically(path, std::string(1 << 20, 'x')); },
                throws({path.string(), "cannot write"}));
    // Small enough to stay in the buffer until commit.
    const FileSizeLimit smaller(10);
    EXPECT_THAT([&] { write_file_atomically(path, "more than ten bytes"); },
                throws({path.string(), "cannot write"}));
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(files_in(dir.path()), 1);
}

TEST(WriteFilesTogether, AFullDiskLeavesAllTheOldFilesAndNothingElse) {
  const TemporaryDirectory dir;
  const std::pair<const char*, std::string> before[] = {{"small", "old"}, {"large", "older"}};
  write_files_together(dir.path(), before);
  const auto expect_before = [&] {
    for (const auto& [name, content] : before) EXPECT_EQ(read_file(dir.path() / name), content);
    EXPECT_EQ(files_in(dir.path()), 2);
  };
  expect_before();
  const std::pair<const char*, std::string> after[] = {{"small", "new"},
                                                       {"large", "more than ten bytes"}};
  {
    const FileSizeLimit limit(10);
    EXPECT_THAT([&] { write_files_together(dir.path(), after); },
                throws({"large", "cannot write"}));
  }
  expect_before();
  write_files_together(dir.path(), after);
  for (const auto& [name, content] : after) EXPECT_EQ(read_file(dir.path() / name), content);
}

TEST(AtomicFile, AMissingDirectoryIsNamed) {
  EXPECT_THAT([] { AtomicFile file("/nonexistent/f"); },
              throws({"/nonexistent", "No such file or directory"}));
}

TEST(AtomicFile, ARelativeNameWithoutADirectoryWorks) {
  const TemporaryDirectory dir;
  const fs::path before = fs::current_path();
  fs::current_path(dir.path());
  write_file_atomically("plain", "x");
  fs::current_path(before);
  EXPECT_EQ(read_file(dir.path() / "plain"), "x");
}

TEST(EnsureWritableDirectory, CreatesParents) {
  const TemporaryDirectory dir;
  ensure_writable_directory(dir.path() / "a" / "b");
  EXPECT_TRUE(fs::is_directory(dir.path() / "a" / "b"));
  EXPECT_EQ(files_in(dir.path() / "a" / "b"), 0);
  ensure_writable_directory(dir.path() / "a" / "b");
}

TEST(EnsureWritableDirectory, AFileInTheWayIsAnError) {
  const TemporaryDirectory dir;
  write_file_atomically(dir.path() / "f", "x");
  EXPECT_THAT([&] { ensure_writable_directory(dir.path() / "f"); }, throws({"f"}));
  EXPECT_THAT([&] { ensure_writable_directory(dir.path() / "f" / "sub"); }, throws({"f/sub"}));
}

TEST(EnsureWritableDirectory, AnUnwritableDirectoryIsAnError) {
  // Root may write anywhere but in /proc, which takes no files from anybody.
  EXPECT_THAT([] { ensure_writable_directory("/proc"); }, throws({"/proc", "cannot write"}));
}

TEST(MappedFile, MapsContentAndMoves) {
  const TemporaryDirectory dir;
  write_file_atomically(dir.path() / "f", "content");
  MappedFile file(dir.path() / "f");
  MappedFile moved(std::move(file));
  ASSERT_EQ(moved.bytes().size(), 7u);
  EXPECT_EQ(static_cast<char>(moved.bytes()[0]), 'c');
  EXPECT_TRUE(file.bytes().empty());  // NOLINT: what moving leaves behind is the point
  write_file_atomically(dir.path() / "g", "");
  moved = MappedFile(dir.path() / "g");
  EXPECT_TRUE(moved.bytes().empty());
}

}  // namespace
}  // namespace sol
