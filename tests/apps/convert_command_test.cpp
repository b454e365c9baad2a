#include <filesystem>

#include "base/json.h"
#include "run_program.h"

namespace sol {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::run_sol;

std::string golden(const char* name) {
  return (test::test_data() / "golden" / name).string();
}

class ConvertCommand : public testing::Test {
 protected:
  std::string out() const { return (dir_.path() / "converted").string(); }
  Json inspect(const std::string& model) {
    const auto result = run_sol({"inspect", "--json", model});
    EXPECT_EQ(result.code, 0) << result.err;
    return parse_json(result.out, "output");
  }
  test::TemporaryDirectory dir_;
};

TEST_F(ConvertCommand, TheEmbeddedModelGeneratesTheSameText) {
  const auto converted = run_sol({"convert", "--weights", "int8", "-o", out()});
  ASSERT_EQ(converted.code, 0) << converted.err;
  EXPECT_NE(converted.out.find("int8 weights"), std::string::npos) << converted.out;
  EXPECT_TRUE(fs::exists(fs::path(out()) / "tokenizer.json"));
  const std::vector<std::string> rest{"-n", "8", "--temperature", "0", "The old house"};
  const auto generate = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "generate");
    arguments.insert(arguments.end(), rest.begin(), rest.end());
    const auto result = run_sol(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  };
  EXPECT_EQ(generate({"-m", out()}), generate({"--weights", "int8"}));
}

TEST_F(ConvertCommand, InspectSaysWhatItIs) {
  ASSERT_EQ(
      run_sol({"convert", "-m", golden("tiny_untied_f32"), "--weights", "int4", "-o", out()}).code,
      0);
  const Json before = inspect(golden("tiny_untied_f32")), after = inspect(out());
  EXPECT_EQ(after["weights"], "int4");
  EXPECT_EQ(before["weights"], nullptr);
  EXPECT_EQ(after["parameters"], before["parameters"]);
  EXPECT_EQ(after["fingerprint"], before["fingerprint"]);
  EXPECT_LT(after["bytes"].get<int64_t>(), before["bytes"].get<int64_t>() / 3);
  const auto table = run_sol({"inspect", out()});
  EXPECT_NE(table.out.find("to int4 weights, from F32"), std::string::npos) << table.out;
}

TEST_F(ConvertCommand, AFullDiskLeavesNothing) {
  const auto result =
      run_sol({"convert", "--weights", "int8", "-o", out()}, {.file_size_limit = 1 << 20});
  expect_error(result, {"converted", "cannot write"});
  EXPECT_TRUE(fs::is_empty(dir_.path()));
}

TEST_F(ConvertCommand, RefusesAConvertedModel) {
  ASSERT_EQ(
      run_sol({"convert", "-m", golden("tiny_tied_bf16"), "--weights", "bf16", "-o", out()}).code,
      0);
  expect_error(run_sol({"convert", "-m", out(), "--weights", "int8", "-o", out() + "2"}),
               {"converted to bf16 weights already"});
  expect_error(
      run_sol({"convert", "-m", golden("tiny_tied_bf16"), "--weights", "int8", "-o", out()}),
      {"not empty"});
}

}  // namespace
}  // namespace sol
