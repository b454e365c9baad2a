#include "base/output_file.h"

#include <sys/stat.h>

#include "base/file_io.h"
#include "support.h"
#include "throws.h"

namespace sol {
namespace {

namespace fs = std::filesystem;
using test::throws;

class OutputFile : public testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& content) const {
    fs::create_directories((dir_.path() / name).parent_path());
    write_file_atomically(dir_.path() / name, content);
    return dir_.path() / name;
  }
  void check(const fs::path& out, const std::vector<fs::path>& inputs = {}) const {
    ensure_writable_output(out, {"a table of figures", "a,b\n"}, inputs);
  }
  test::TemporaryDirectory dir_;
};

TEST_F(OutputFile, NothingIsThereOrAnOlderOneOfTheKind) {
  EXPECT_NO_THROW(check(dir_.path() / "new"));
  EXPECT_NO_THROW(check(write("old", "a,b\n1,2\n")));
  EXPECT_NO_THROW(check(write("begun", "a,b\n")));
  EXPECT_NO_THROW(check(write("empty", "")));  // as mktemp leaves it
  EXPECT_NO_THROW(check("/dev/null"));
  const fs::path pipe = dir_.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NO_THROW(check(pipe));
  EXPECT_FALSE(fs::exists(dir_.path() / "new"));
}

TEST_F(OutputFile, AnythingElseThatIsThereStays) {
  for (const std::string content : {"b,a\n1,2\n", "a,b", "\n", "A,B\n1,2\n"}) {
    const fs::path other = write("other", content);
    EXPECT_THAT([&] { check(other); },
                throws({"other: is there already", "not a table of figures", "another output"}));
    EXPECT_EQ(read_file(other), content);
  }
  fs::create_symlink("other", dir_.path() / "link");
  EXPECT_THAT([&] { check(dir_.path() / "link"); }, throws({"link", "is there already"}));
  EXPECT_THAT([&] { check(dir_.path()); }, throws({"is a directory"}));
  EXPECT_THAT([&] { check(dir_.path() / "none" / "x"); }, throws({"none", "No such file"}));
}

TEST_F(OutputFile, AnInputIsFoundUnderEveryName) {
  const fs::path input = write("deep/input", "a,b\n1,2\n");  // of the kind, too
  fs::create_symlink("deep/input", dir_.path() / "link");
  fs::create_hard_link(input, dir_.path() / "hard");
  for (const fs::path& name : {input, dir_.path() / "deep" / ".." / "deep" / "input",
                               dir_.path() / "link", dir_.path() / "hard"}) {
    EXPECT_THAT(
        [&] {
          check(name, {"", write("first", "x"), input});
        },
        throws({name.string() + ": is the input " + input.string(), "another output"}));
    EXPECT_NO_THROW(check(name, {"", dir_.path() / "first", dir_.path() / "absent"}));
  }
}

TEST_F(OutputFile, AnInputDirectoryKeepsItsFiles) {
  const fs::path weights = write("model/deep/weights", "0123456789");
  fs::create_directory_symlink("model", dir_.path() / "link");
  for (const fs::path& name : {weights, dir_.path() / "link" / "deep" / "weights"})
    EXPECT_THAT([&] { check(name, {dir_.path() / "model"}); },
                throws({"belongs to the input " + (dir_.path() / "model").string(),
                        "not a table of figures"}));
  EXPECT_NO_THROW(check(dir_.path() / "model" / "figures.csv", {dir_.path() / "model"}));
  EXPECT_NO_THROW(check(write("model/figures.csv", "a,b\n1,2\n"), {dir_.path() / "model"}));
}

}  // namespace
}  // namespace sol
