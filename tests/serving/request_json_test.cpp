// Whatever a request's JSON is, and wherever memory runs out, the program goes on.
#include "serving/request_json.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "serving/api_error.h"

namespace {

// Of this thread; from then on there is no memory.
thread_local size_t allocations_left = ~size_t{0};

void* allocate(size_t size) {
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left != ~size_t{0}) --allocations_left;
  if (void* memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// The program's own are replaced in this test.
void* operator new(size_t size) {
  return allocate(size);
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return allocations_left > 0 ? std::malloc(size > 0 ? size : 1) : nullptr;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace sol {
namespace {

class Memory {
 public:
  explicit Memory(size_t allocations) { allocations_left = allocations; }
  ~Memory() { allocations_left = ~size_t{0}; }
};

TEST(RequestJson, IsReadAsItStands) {
  const RequestJson json(
      R"( {"a": [1, -2, 3.5, "x\u0000y", [], {}, true, null], "b": {"c": {"d": 18446744073709551615}}} )");
  EXPECT_EQ(*json, Json::parse(R"({"a": [1, -2, 3.5, "x\u0000y", [], {}, true, null],
                                   "b": {"c": {"d": 18446744073709551615}}})"));
  EXPECT_EQ(*RequestJson("3"), Json(3));
  EXPECT_EQ((*RequestJson(R"({"b":1,"a":2})")).begin().key(), "b");
}

TEST(RequestJson, CanRunOutOfMemoryAnywhere) {
  const std::string body =
      R"({"prompt": [[1, 2, 3, 4, 5], ["a text that is longer than a string keeps in itself"]],
          "another name, longer than a string keeps in itself": {"a": {"b": [{"c": [[[]]]}]}}})";
  int failures = 0;
  for (size_t allocations = 0;; ++allocations) {
    ASSERT_LT(allocations, 1000u);
    bool failed = false;
    try {
      const Memory memory(allocations);
      const RequestJson json(body);
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    if (!failed) break;
    ++failures;
  }
  EXPECT_GT(failures, 20);
}

TEST(RequestJson, IsDestroyedWithoutMemory) {
  auto json = std::make_unique<RequestJson>(
      R"({"prompt": [[1, 2, 3], [4]], "sol": {"a": {"b": [{"c": [1]}]}}})");
  const Memory none(0);
  json.reset();
}

TEST(RequestJson, HasALimitedShape) {
  const auto refused = [](const std::string& body) {
    try {
      (void)RequestJson(body);
      return std::string();
    } catch (const ApiError& error) {
      EXPECT_EQ(error.status(), 400);
      return std::string(error.what());
    }
  };
  const auto nested = [](size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  EXPECT_EQ(refused(nested(32)), "");
  EXPECT_NE(refused(nested(33)), "");
  const auto list = [](const std::string& item, size_t n) {
    std::string text = "[" + item;
    for (size_t i = 1; i < n; ++i) text += "," + item;
    return text + "]";
  };
  EXPECT_EQ(refused(list("1", (1 << 20) - 1)), "");  // and the list
  EXPECT_NE(refused(list("1", 1 << 20)), "");
  EXPECT_EQ(refused(list("{}", 10000)), "");
  EXPECT_NE(refused(list("{}", 10001)), "");
  const auto fields = [](int n) {
    std::string text = "{";
    for (int i = 0; i < n; ++i) text += (i ? ",\"a" : "\"a") + std::to_string(i) + "\":0";
    return text + "}";
  };
  EXPECT_EQ(refused(fields(256)), "");
  EXPECT_NE(refused(fields(257)), "");
  EXPECT_NE(refused(R"({"a":1,"\u0061":2})"), "");
  // However long what is wrong is, the answer is not.
  EXPECT_LT(refused("[\"" + std::string(1 << 20, 'x')).size(), 1000u);
  EXPECT_LT(
      refused("{\"" + std::string(1 << 20, 'x') + "\":1,\"" + std::string(1 << 20, 'x') + "\":1}")
          .size(),
      1000u);
}

}  // namespace
}  // namespace sol
