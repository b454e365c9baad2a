// The library's errors as ours.
#include "engine_torch/torch_device.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include "base/threads.h"
#include "engine/steps.h"

namespace sol::test {
namespace {

const at::Device cpu(at::kCPU);

TEST(TorchDevice, MemoryThatRunsOutSaysWhatToLower) {
  const std::string error =
      error_of([] { torch_call(cpu, [] { return at::empty({int64_t{1} << 50}); }); });
  for (const char* words :
       {"device cpu: out of memory", "rollout.batch", "rollout.schedules", "--precision bf16"})
    EXPECT_THAT(error, testing::HasSubstr(words));
}

TEST(TorchDevice, OtherErrorsKeepTheirWords) {
  const std::string error = error_of([] {
    torch_call(cpu, [] { return at::zeros({2, 3}).mm(at::zeros({2, 3})); });
  });
  EXPECT_THAT(error, testing::AllOf(testing::HasSubstr("device cpu: "), testing::HasSubstr("2x3"),
                                    testing::Not(testing::HasSubstr("memory"))));
}

TEST(TorchDevice, CallsLeaveTheProgramItsThreads) {
  const int before = thread_count();
  set_thread_count(3);
  torch_call(cpu, [] { return at::ones({512, 512}).mm(at::ones({512, 512})); });
  EXPECT_EQ(thread_count(), 3);
  set_thread_count(before);
}

}  // namespace
}  // namespace sol::test
