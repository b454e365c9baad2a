#include "base/ordered_pipeline.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support.h"

namespace sol {
namespace {

using Pipeline = OrderedPipeline<int, std::string>;

std::string slowly_to_text(int&& i) {
  // Later items of a group of eight are done earlier.
  std::this_thread::sleep_for(std::chrono::microseconds(50 * (8 - i % 8)));
  return std::to_string(i);
}

TEST(OrderedPipeline, KeepsTheOrderWithAnyNumberOfThreads) {
  for (const int threads : {1, 4}) {
    std::vector<std::string> seen;
    Pipeline(threads, 20)
        .run(
            [](const auto& emit) {
              for (int i = 0; i < 200; ++i) emit(int{i}, 1);
            },
            slowly_to_text, [&](std::string&& text) { seen.push_back(text); });
    ASSERT_EQ(seen.size(), 200u);
    for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], std::to_string(i));
  }
}

TEST(OrderedPipeline, HoldsNoMoreThanItsCapacity) {
  std::atomic<int> on_the_way{0}, most{0};
  Pipeline(3, 10).run(
      [&](const auto& emit) {
        for (int i = 0; i < 100; ++i) {
          emit(int{i}, 4);
          most = std::max(most.load(), ++on_the_way);
        }
      },
      [](int&& i) { return std::to_string(i); },
      [&](std::string&&) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        --on_the_way;
      });
  // Two of 4 fit 10; the consumer's count lags by the one that it has just consumed.
  EXPECT_LE(most.load(), 3);
  int consumed = 0;
  Pipeline(2, 10).run([](const auto& emit) { emit(1, 1000); },
                      [](int&& i) { return std::to_string(i); },
                      [&](std::string&&) { ++consumed; });
  EXPECT_EQ(consumed, 1);
}

TEST(OrderedPipeline, AFailureComesAtItsPlaceInTheOrder) {
  std::vector<std::string> seen;
  const auto consume = [&](std::string&& text) { seen.push_back(text); };
  const auto count_to = [](int n) {
    return [n](const auto& emit) {
      for (int i = 0; i < n; ++i) emit(int{i}, 1);
    };
  };
  // An endless producer is told to end as well.
  EXPECT_THROW(Pipeline(4, 8).run(
                   count_to(1 << 30),
                   [](int&& i) {
                     if (i == 20 || i == 22) throw std::out_of_range("20");
                     return slowly_to_text(std::move(i));
                   },
                   consume),
               std::out_of_range);
  EXPECT_EQ(seen.size(), 20u);
  seen.clear();
  EXPECT_THROW(Pipeline(4, 8).run(
                   [&](const auto& emit) {
                     count_to(10)(emit);
                     throw std::length_error("x");
                   },
                   slowly_to_text, consume),
               std::length_error);
  EXPECT_EQ(seen.size(), 10u);
  int left = 5;
  EXPECT_THROW(Pipeline(4, 8).run(count_to(1 << 30), slowly_to_text,
                                  [&](std::string&&) {
                                    if (--left == 0) throw std::domain_error("x");
                                  }),
               std::domain_error);
}

TEST(OrderedPipeline, NothingIsFineToo) {
  Pipeline(2, 8).run([](const auto&) {}, slowly_to_text, [](std::string&&) { FAIL(); });
}

}  // namespace
}  // namespace sol
