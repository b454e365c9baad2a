#include "training/json_log.h"

#include <gmock/gmock.h>

#include "base/file_io.h"
#include "support.h"

namespace sol::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class JsonLogTest : public testing::Test {
 protected:
  // What is left of such a log, and the counters that begin() returns, where the checkpoint knows
  // of four lines.
  std::string resumed(const std::string& before) {
    write_file_atomically(path_, before);
    kept_ = JsonLog(path_).begin("n", 4);
    return read_file(path_);
  }
  TemporaryDirectory dir_;
  std::filesystem::path path_ = dir_.path() / "log.jsonl";
  std::vector<int64_t> kept_;
  const std::string one_ = "{\"n\":1}\n", two_ = "{\"n\":2}\n", three_ = "{\"n\":3}\n",
                    four_ = "{\"n\":4}\n", five_ = "{\"n\":5}\n";
};

TEST_F(JsonLogTest, LinesBeyondTheCheckpointAreMadeAgain) {
  EXPECT_EQ(resumed(one_ + two_ + three_ + four_ + five_), one_ + two_ + three_ + four_);
  EXPECT_THAT(kept_, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(resumed(one_ + two_ + "{\"n\":3"), one_ + two_);
  EXPECT_THAT(kept_, ElementsAre(1, 2));
}

TEST_F(JsonLogTest, ABadLineTakesNoOtherWithIt) {
  for (const char* bad : {"garbage\n", "\n", "{\"n\":1.5}\n", "{\"m\":2}\n", "[2]\n"}) {
    EXPECT_EQ(resumed(one_ + bad + three_ + four_), one_ + three_ + four_);
    EXPECT_THAT(kept_, ElementsAre(1, 3, 4));
  }
  const std::string zero = "{\"n\":0}\n";
  EXPECT_EQ(resumed(three_ + one_ + zero + "{\"n\":-1}\n"), zero + one_ + three_);
  EXPECT_THAT(kept_, ElementsAre(0, 1, 3));
}

TEST_F(JsonLogTest, CopiesAreDroppedAndLinesOfTheSameNumberStayInOrder) {
  EXPECT_EQ(resumed(one_ + two_ + one_ + two_), one_ + two_);
  const std::string other = "{\"n\":2,\"validation\":1}\n";
  EXPECT_EQ(resumed(one_ + two_ + other + three_), one_ + two_ + other + three_);
  EXPECT_THAT(kept_, ElementsAre(1, 2, 3));
  EXPECT_EQ(resumed(two_ + other + two_ + other), two_ + other);
}

TEST_F(JsonLogTest, ANewLogIsEmpty) {
  write_file_atomically(path_, one_);
  EXPECT_THAT(JsonLog(path_).begin("n", 0), IsEmpty());
  EXPECT_EQ(read_file(path_), "");
  std::filesystem::remove(path_);
  EXPECT_THAT(JsonLog(path_).begin("n", 4), IsEmpty());
  EXPECT_EQ(read_file(path_), "");
}

}  // namespace
}  // namespace sol::test
