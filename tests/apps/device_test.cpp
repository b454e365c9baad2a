// --device: the frozen model through LibTorch, in the commands that run one.
#include <fstream>

#include "base/file_io.h"
#include "base/json.h"
#include "made_controller.h"

namespace sol::test {
namespace {

const std::string prompt = "The old man looked out of the window and";

RunResult generate(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"generate", "-n", "16", "--precision", "f32"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  arguments.push_back(prompt);
  return run_sol(arguments);
}

TEST(Device, NamesThatAreNoneAreWrongUsage) {
  for (const char* device : {"gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1000"}) {
    const RunResult result = generate({"--device", device});
    EXPECT_EQ(result.code, 2);
    expect_error(result, {"--device", device, "native"});
  }
}

TEST(Device, BenchMeasuresOurOwnKernelsOnly) {
  expect_error(run_sol({"bench", "--device", "cpu", "--ceilings-only"}), {"no option --device"});
}

TEST(Device, NativeIsTheDefault) {
  const RunResult result = generate({"--device", "native"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out, generate({}).out);
}

#ifdef SOL_TRAINING

TEST(Device, TheCpuThroughLibTorchWritesTheSameText) {
  // Greedy text: without actions, and where κ and ρ choose.
  for (const std::vector<std::string>& action :
       {std::vector<std::string>{}, std::vector<std::string>{"--fixed", "k050-s070-q16"}}) {
    std::vector<std::string> on_torch = action;
    on_torch.insert(on_torch.end(), {"--device", "cpu"});
    const RunResult native = generate(action), torch = generate(on_torch);
    ASSERT_EQ(torch.code, 0) << testing::PrintToString(torch);
    EXPECT_EQ(torch.out, native.out);
  }
}

TEST(Device, WhatItDoesNotOfferIsAnError) {
  for (const std::vector<std::string>& option :
       std::vector<std::vector<std::string>>{{"--deterministic"},
                                             {"--weights", "int8"},
                                             {"--prune-down"},
                                             {"--page-scores", "moments"},
                                             {"--channel-scores", "wina"}}) {
    std::vector<std::string> arguments = option;
    arguments.push_back("--device=cpu");
    const RunResult result = generate(arguments);
    EXPECT_EQ(result.code, 1);
    expect_error(result, {option[0], "not offered", "--device native"});
  }
}

TEST(Device, AGpuThatIsNotThereIsAnError) {
  expect_error(generate({"--device", "cuda:99"}), {"device cuda:99", "this "});
}

TEST(Device, TrainsAndSaysSo) {
  TemporaryDirectory dir;
  std::string prose;
  for (int i = 0; i < 400; ++i)
    prose += "In the year " + std::to_string(1500 + i) + " there were as many houses.\n";
  std::ofstream(dir.path() / "text.txt") << prose;
  const auto out = dir.path() / "out";
  const auto train = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{
        "train",     (source_dir() / "configs/default-demo.yaml").string(),
        "--data",    (dir.path() / "text.txt").string(),
        "-o",        out.string(),
        "--updates", "2"};
    for (const char* setting :
         {"rollout.context=64", "rollout.horizon=4", "rollout.schedules=3", "rollout.batch=2",
          "policy.d_model=16", "optimisation.target_steps=16", "optimisation.minibatch=8",
          "optimisation.grad_accum=1"})
      arguments.insert(arguments.end(), {"--set", setting});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_sol(arguments);
  };
  expect_error(train({"--device", "cpu", "--deterministic"}), {"--deterministic", "not offered"});
  const RunResult result = train({"--device", "cpu"});
  ASSERT_EQ(result.code, 0) << testing::PrintToString(result);
  const Json training = read_json(out / "controller.json")["training"];
  EXPECT_EQ(training["run"]["device"], "cpu") << training;
  const RunResult text = generate({"-c", out.string(), "--keep", "0.5", "--device", "cpu"});
  EXPECT_EQ(text.code, 0) << testing::PrintToString(text);
}

#else

TEST(Device, WithoutLibTorchItSaysSo) {
  expect_error(generate({"--device", "cuda"}), {"--device cuda", "without LibTorch"});
}

#endif

}  // namespace
}  // namespace sol::test
