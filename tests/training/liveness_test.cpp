#include "training/liveness.h"

#include <gmock/gmock.h>

#include <chrono>
#include <map>

#include "base/fail.h"
#include "base/stopwatch.h"

namespace sol::test {
namespace {

// What processes share, and can lose.
struct Store {
  std::mutex mutex;
  std::map<std::string, std::string> values;
  bool gone = false;
};

class Board : public SharedBoard {
 public:
  explicit Board(std::shared_ptr<Store> store) : store_(std::move(store)) {}
  void set(const std::string& key, const std::string& value) override {
    const auto lock = enter();
    store_->values[key] = value;
  }
  bool has(const std::string& key) override {
    const auto lock = enter();
    return store_->values.contains(key);
  }
  std::string get(const std::string& key) override {
    const auto lock = enter();
    return store_->values.at(key);
  }

 private:
  std::unique_lock<std::mutex> enter() {
    std::unique_lock lock(store_->mutex);
    if (store_->gone) fail("gone");
    return lock;
  }
  std::shared_ptr<Store> store_;
};

class LivenessTest : public testing::Test {
 protected:
  std::unique_ptr<Liveness> start(int rank, double silence = 60) {
    return std::make_unique<Liveness>(
        std::make_unique<Board>(store_), rank, 2,
        LivenessOptions{.interval_seconds = 0.01, .silence_seconds = silence});
  }
  static bool fails_soon(const Liveness& liveness) {
    const Stopwatch time;
    while (!liveness.failure().stop_requested() && time.seconds() < 20)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return liveness.failure().stop_requested();
  }
  std::shared_ptr<Store> store_ = std::make_shared<Store>();
};

TEST_F(LivenessTest, WhoEndsInOrderIsNoFailure) {
  auto leader = start(0, 0.5), other = start(1, 0.5);
  other.reset();
  std::this_thread::sleep_for(std::chrono::milliseconds(800));
  EXPECT_FALSE(leader->failure().stop_requested());
  leader.reset();
}

TEST_F(LivenessTest, TheLeaderWaitsForTheOthersToEnd) {
  auto leader = start(0), other = start(1);
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    other.reset();
  });
  leader.reset();
  EXPECT_EQ(store_->values.at("alive/1"), "done");
}

TEST_F(LivenessTest, SilenceIsAFailure) {
  const auto leader = start(0, 0.2);  // and no rank 1
  EXPECT_TRUE(fails_soon(*leader));
  EXPECT_THAT(leader->why(), testing::HasSubstr("rank 1 has given no sign of life"));
}

TEST_F(LivenessTest, AReportReachesTheOthers) {
  const auto leader = start(0), other = start(1);
  const Stopwatch time;
  other->report("out of memory");
  EXPECT_LT(time.seconds(), 1.9);  // it does not wait longer than for them to have read it
  EXPECT_TRUE(fails_soon(*leader));
  EXPECT_EQ(leader->why(), "rank 1: out of memory");
  leader->report("too late");  // an effect of the first
  EXPECT_EQ(store_->values.at("failure"), "rank 1: out of memory");
}

// The board is in the leader's process: who has not read yet why all must end could not any more.
TEST_F(LivenessTest, TheLeaderWaitsUntilTheOthersHaveReadAReport) {
  auto leader = std::make_unique<Liveness>(std::make_unique<Board>(store_), 0, 3,
                                           LivenessOptions{.silence_seconds = 60});
  const auto set = [&](const std::string& key, const std::string& value) {
    const std::lock_guard lock(store_->mutex);
    store_->values[key] = value;
  };
  set("failure", "rank 1: disk full");
  set("read/1", "1");
  leader->look_for_report(30);
  EXPECT_EQ(leader->why(), "rank 1: disk full");
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    set("read/2", "1");
  });
  leader.reset();
  EXPECT_TRUE(store_->values.contains("read/2"));
  // A process that is gone reads nothing, and is not waited for for long.
  store_->values.erase("read/2");
  leader = std::make_unique<Liveness>(std::make_unique<Board>(store_), 0, 3,
                                      LivenessOptions{.silence_seconds = 60});
  leader->look_for_report(30);
  const Stopwatch time;
  leader.reset();
  EXPECT_LT(time.seconds(), 10);
}

// Who has lost a connection need not wait for the next look around.
TEST_F(LivenessTest, AReportIsFoundWhenItIsLookedFor) {
  Liveness leader(std::make_unique<Board>(store_), 0, 2,
                  {.interval_seconds = 60, .silence_seconds = 60, .news_seconds = 60});
  EXPECT_EQ(leader.why(), "");
  leader.look_for_report(0.01);
  EXPECT_EQ(leader.why(), "");
  {
    const std::lock_guard lock(store_->mutex);
    store_->values["failure"] = "rank 1: disk full";
    store_->values["alive/1"] = "done";
  }
  const Stopwatch time;
  leader.look_for_report(30);
  EXPECT_LT(time.seconds(), 10);
  EXPECT_EQ(leader.why(), "rank 1: disk full");
}

// A board whose answers do not come: rank 0's process is stopped.
class SilentBoard : public SharedBoard {
 public:
  explicit SilentBoard(double patience) : patience_(patience) {}
  void set(const std::string&, const std::string&) override { wait(); }
  bool has(const std::string&) override { return wait(); }
  std::string get(const std::string&) override { return wait() ? "" : ""; }

 private:
  bool wait() {
    std::this_thread::sleep_for(std::chrono::duration<double>(patience_));
    fail("no answer");
  }
  double patience_;
};

TEST_F(LivenessTest, ABoardThatDoesNotAnswerIsTheLeadersSilence) {
  const Liveness other(std::make_unique<SilentBoard>(0.2), 1, 2,
                       {.interval_seconds = 0.01, .silence_seconds = 0.2});
  EXPECT_TRUE(fails_soon(other));
  EXPECT_THAT(other.why(), testing::HasSubstr("rank 0 has given no sign of life"));
}

TEST_F(LivenessTest, LosingTheBoardIsAFailure) {
  const auto other = start(1);
  {
    const std::lock_guard lock(store_->mutex);
    store_->gone = true;
  }
  EXPECT_TRUE(fails_soon(*other));
  EXPECT_THAT(other->why(), testing::HasSubstr("rank 0"));
}

}  // namespace
}  // namespace sol::test
