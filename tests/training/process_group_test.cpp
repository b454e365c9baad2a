#include "training/process_group.h"

#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <numeric>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/fail.h"
#include "base/random.h"
#include "base/stopwatch.h"
#include "ranks.h"
#include "throws.h"

namespace sol::test {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<float> values_of(int rank, size_t count) {
  Random random({.seed = 7, .stream = RandomStream::test, .block = static_cast<uint64_t>(rank)});
  std::vector<float> out(count);
  for (float& x : out) x = static_cast<float>(random.uniform_double() - 0.5);
  return out;
}

TEST(ProcessGroupTest, AloneEverythingIsItsOwn) {
  const auto group = alone();
  EXPECT_EQ(group->size(), 1);
  EXPECT_TRUE(group->leads());
  EXPECT_EQ(group->all_gather("x"), std::vector<std::string>{"x"});
  std::vector<float> values{1, 2};
  group->sum(values);
  EXPECT_EQ(values, (std::vector<float>{1, 2}));
  EXPECT_TRUE(group->any(true));
  EXPECT_FALSE(group->any(false));
}

TEST(ProcessGroupTest, SumsInHalves) {
  // (a + b) + (c + d), which rounds otherwise than ((a + b) + c) + d.
  const std::vector<float> parts{1e8f, 1.0f, -1e8f, 1.0f};
  const float sum = sum_by_halves(
      0, 4, [&](int i) { return parts[static_cast<size_t>(i)]; },
      [](float& left, float right) { left += right; });
  EXPECT_EQ(sum, (1e8f + 1.0f) + (-1e8f + 1.0f));
  const std::string order = sum_by_halves(
      0, 5, [](int i) { return std::to_string(i); },
      [](std::string& left, const std::string& right) { left = "(" + left + right + ")"; });
  EXPECT_EQ(order, "((01)(2(34)))");
}

TEST(ProcessGroupTest, GathersBytesOfDifferentLengths) {
  EXPECT_THAT(run_ranks(3,
                        [](ConnectedGroup& group) {
                          const std::string mine(static_cast<size_t>(group.rank()) * 1000, 'a');
                          const auto all = group.all_gather(mine);
                          ASSERT_EQ(all.size(), 3u);
                          for (size_t r = 0; r < 3; ++r) EXPECT_EQ(all[r].size(), r * 1000);
                        }),
              Each(IsEmpty()));
}

TEST(ProcessGroupTest, SumsInAFixedOrderAndTheSameBitsEverywhere) {
  for (const int size : {2, 3, 4}) {
    for (const size_t count : {size_t{1}, size_t{5}, size_t{10007}}) {
      std::vector<float> expected(count);
      for (size_t i = 0; i < count; ++i)
        expected[i] = sum_by_halves(
            0, size, [&](int r) { return values_of(r, count)[i]; },
            [](float& left, float right) { left += right; });
      EXPECT_THAT(run_ranks(size,
                            [&](ConnectedGroup& group) {
                              std::vector<float> values = values_of(group.rank(), count);
                              group.sum(values);
                              EXPECT_EQ(values, expected);
                            }),
                  Each(IsEmpty()));
    }
  }
}

TEST(ProcessGroupTest, BroadcastsFromTheLeader) {
  EXPECT_THAT(run_ranks(2,
                        [](ConnectedGroup& group) {
                          std::vector<float> values(3, group.leads() ? 4.0f : 0.0f);
                          group.broadcast(values);
                          EXPECT_THAT(values, Each(4.0f));
                          std::string text = group.leads() ? "from the leader" : "";
                          group.broadcast(text);
                          EXPECT_EQ(text, "from the leader");
                          std::string empty = group.leads() ? "" : "not empty";
                          group.broadcast(empty);
                          EXPECT_EQ(empty, "");
                        }),
              Each(IsEmpty()));
}

TEST(ProcessGroupTest, AnyHoldsForAllWhereItHoldsForOne) {
  EXPECT_THAT(run_ranks(3,
                        [](ConnectedGroup& group) {
                          EXPECT_TRUE(group.any(group.rank() == 1));
                          EXPECT_FALSE(group.any(false));
                        }),
              Each(IsEmpty()));
}

TEST(ProcessGroupTest, AFailureIsToldToThoseWhoWaitAndThoseWhoWork) {
  std::atomic<double> noticed = 0;
  const auto errors = run_ranks(3, [&](ConnectedGroup& group) {
    if (group.rank() == 1) fail("disk full");
    if (group.rank() == 2) {  // busy: hears of it through failure()
      const Stopwatch time;
      while (!group.failure().stop_requested() && time.seconds() < 20)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      noticed = time.seconds();
    }
    group.any(false);
  });
  EXPECT_EQ(errors[1], "disk full");
  EXPECT_THAT(errors[0], HasSubstr("another process of the run has failed: rank 1: disk full"));
  EXPECT_THAT(errors[2], HasSubstr("rank 1: disk full"));
  EXPECT_LT(noticed, 10);
}

TEST(ProcessGroupTest, WhoComputesForLongIsWaitedFor) {
  EXPECT_THAT(run_ranks(2,
                        [](ConnectedGroup& group) {
                          if (!group.leads()) std::this_thread::sleep_for(std::chrono::seconds(3));
                          group.any(false);
                        },
                        {.connect_seconds = 2}),
              Each(IsEmpty()));
}

TEST(ProcessGroupTest, WhoNeverAppearsIsNamedInTime) {
  const auto connect = [](double seconds) {
    connect_processes({.rank = 0,
                       .size = 2,
                       .local_rank = 0,
                       .local_size = 2,
                       .address = "127.0.0.1",
                       .port = free_port()},
                      {.connect_seconds = seconds});
  };
  const Stopwatch time;
  EXPECT_THAT([&] { connect(2); },
              throws({"rank 0 of 2 cannot meet the other processes at 127.0.0.1:", "within 2 s",
                      "rank 1 has not come", "all of them started"}));
  EXPECT_LT(time.seconds(), 3.5);  // not as long again for each part of connecting
}

// Two processes, started as these ranks of so many; what each of them says.
std::vector<std::string> connect_two(std::array<int, 2> ranks, std::array<int, 2> sizes) {
  const int port = free_port();
  std::vector<std::string> errors(2);
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      try {
        connect_processes({.rank = ranks[i],
                           .size = sizes[i],
                           .local_rank = ranks[i],
                           .local_size = sizes[i],
                           .address = "127.0.0.1",
                           .port = port},
                          {.connect_seconds = 5});
      } catch (const Error& e) {
        errors[i] = e.what();
      }
    });
  threads.clear();
  return errors;
}

TEST(ProcessGroupTest, ProcessesMustMeanARunOfTheSameSize) {
  const auto errors = connect_two({0, 1}, {2, 3});
  EXPECT_THAT(errors[0],
              HasSubstr("rank 0 was started as one of 2 processes and rank 1 as one of 3"));
  // Rank 0, where they meet, may be gone before rank 1 has seen its number.
  EXPECT_THAT(errors[1], testing::AnyOf(HasSubstr("rank 0 as one of 2"), HasSubstr("cannot meet")));
}

TEST(ProcessGroupTest, OnlyOneProcessMayBeRankZero) {
  const auto errors = connect_two({0, 0}, {2, 2});
  // Whoever came second; the other one waits in vain.
  EXPECT_THAT(errors, testing::UnorderedElementsAre(
                          testing::AllOf(HasSubstr("Address already in use"),
                                         HasSubstr("started as rank 0, too (RANK)")),
                          HasSubstr("rank 1 has not come")));
}

// As torchrun's own process does with --master_addr; what one attempt leaves there is not the next
// one's.
TEST(ProcessGroupTest, MeetsWhereTheLauncherListens) {
  const int port = free_port();
  c10d::TCPStoreOptions store;
  store.port = static_cast<uint16_t>(port);
  store.isServer = true;
  store.waitWorkers = false;
  // PyTorch from 2.4 on may ask for what it was not built with.
  [](auto& options) {
    if constexpr (requires { options.useLibUV; }) options.useLibUV = false;
  }(store);
  const c10d::TCPStore launcher("127.0.0.1", store);
  const auto run = [&](int attempt, const std::function<void(ConnectedGroup&)>& body) {
    return run_ranks(
        2, body, {.connect_seconds = 60},
        {.address = "127.0.0.1", .port = port, .launcher_listens = true, .attempt = attempt});
  };
  const auto failed = run(0, [](ConnectedGroup& group) {
    if (!group.leads()) fail("disk full");
    group.any(false);
  });
  EXPECT_THAT(failed[0], HasSubstr("rank 1: disk full"));
  EXPECT_THAT(run(1, [](ConnectedGroup& group) { EXPECT_TRUE(group.any(group.leads())); }),
              Each(IsEmpty()));
}

TEST(ProcessGroupTest, AnUnknownAddressIsAnErrorAtOnce) {
  const Stopwatch time;
  EXPECT_THAT(
      [] {
        connect_processes({.rank = 1, .size = 2, .address = "no-such-host.invalid", .port = 1});
      },
      throws({"MASTER_ADDR = no-such-host.invalid", "rank 0"}));
  EXPECT_LT(time.seconds(), 60);
}

}  // namespace
}  // namespace sol::test
