#include <filesystem>

#include "../model/llama2c_files.h"
#include "base/file_io.h"
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

TEST_F(ConvertCommand, ALlama2cModelRuns) {
  const std::string model = (dir_.path() / "m.bin").string(),
                    tokenizer = (dir_.path() / "t.bin").string();
  write_file_atomically(model, test::llama2c_checkpoint());
  write_file_atomically(tokenizer, test::llama2c_tokenizer(test::llama2c_pieces()));
  const auto converted =
      run_sol({"convert", "--from", "llama2c", "--tokenizer", tokenizer, model, "-o", out()});
  ASSERT_EQ(converted.code, 0) << converted.err;
  EXPECT_EQ(inspect(out())["parameters_by_dtype"]["F32"], inspect(out())["parameters"]);
  EXPECT_NE(run_sol({"inspect", out()}).out.find("can run       yes"), std::string::npos);
  const auto text = run_sol({"generate", "-m", out(), "-n", "5", "--temperature", "0", "ab"});
  EXPECT_EQ(text.code, 0) << text.err;
}

TEST_F(ConvertCommand, APublishedPolicyBecomesAController) {
  // A model of the policy's width.
  const std::string model = (dir_.path() / "m.bin").string(),
                    tokenizer = (dir_.path() / "t.bin").string(), base = out() + "-model",
                    config = (dir_.path() / "c.yaml").string(),
                    policy = golden("sol/policy_p1_nested.pt");
  write_file_atomically(model, test::llama2c_checkpoint());
  write_file_atomically(tokenizer, test::llama2c_tokenizer(test::llama2c_pieces()));
  ASSERT_EQ(
      run_sol({"convert", "--from", "llama2c", "--tokenizer", tokenizer, model, "-o", base}).code,
      0);
  const std::string yaml =
      "name: p1\nactions:\n  keep: [0.1, 0.4, 0.7, 1.0]\n  prune: [s60, s80, s100]\n"
      "  quant: [q5, q16]\nbudgets:\n  keep: [0.1, 1.0]\n  prune: [0.6, 1.0]\n"
      "  quant: [0.3125, 1.0]\nquest:\n  page_size: 16\npolicy:\n  heads: 4\n";
  write_file_atomically(config, yaml);
  const std::vector<std::string> arguments{"convert", "--from", "sol-pt", "--config", config,
                                           "-m",      base,     policy,   "-o",       out()};
  const auto converted = run_sol(arguments);
  ASSERT_EQ(converted.code, 0) << converted.err;
  EXPECT_NE(converted.out.find("9185 parameters for 24 actions"), std::string::npos)
      << converted.out;
  const auto text = run_sol({"generate", "-m", base, "-c", out(), "--keep", "0.5", "--prune", "0.8",
                             "--bits", "10", "-n", "4", "ab"});
  EXPECT_EQ(text.code, 0) << text.err;
  expect_error(run_sol(arguments), {"not empty"});
  std::filesystem::remove_all(out());
  expect_error(run_sol({"convert", "--from", "sol-pt", "--config", config, "-m",
                        golden("tiny_tied_f32"), policy, "-o", out()}),
               {"model of width 32, but this one has 64"});

  // Options of this program, with which no such policy was trained.
  std::string enforced = yaml, shown = yaml + "  surprisal: true\n";
  enforced.insert(enforced.find("quest:"), "  enforced: true\n");
  write_file_atomically(config, enforced);
  expect_error(run_sol(arguments), {"budgets.enforced", "c.yaml"});
  write_file_atomically(config, shown);
  expect_error(run_sol(arguments), {"policy.surprisal"});
}

TEST_F(ConvertCommand, ADirectorysNameMayEndInASlash) {
  fs::create_directory(out());
  const auto converted =
      run_sol({"convert", "-m", golden("tiny_tied_f32"), "--weights", "int8", "-o", out() + "/"});
  ASSERT_EQ(converted.code, 0) << converted.err;
  EXPECT_EQ(inspect(out())["weights"], "int8");
}

TEST_F(ConvertCommand, AShapeIsNotWrittenOverSomething) {
  fs::create_directory(out());
  write_file_atomically(fs::path(out()) / "notes.txt", "somebody's");
  expect_error(run_sol({"convert", "--from", "shape", "llama-3.2-1b", "--tokenizer",
                        (test::source_dir() / "models/default").string(), "-o", out()}),
               {"not empty"});
}

TEST_F(ConvertCommand, OptionsOfOtherSourcesAreRefused) {
  expect_error(run_sol({"convert", "-o", out()}), {"--weights is required"});
  expect_error(run_sol({"convert", "--from", "llama2c", "-o", out()}), {"needs the file"});
  expect_error(run_sol({"convert", "--from", "llama2c", "x.bin", "-o", out()}),
               {"needs the model's --tokenizer"});
  expect_error(run_sol({"convert", "--from", "sol-pt", "x.pt", "-o", out()}),
               {"needs the --config"});
  expect_error(run_sol({"convert", "--from", "sol-pt", "--weights", "int8", "x.pt", "-o", out()}),
               {"takes no --weights"});
  expect_error(run_sol({"convert", "--from", "llama2c", "--threads", "1", "x.bin", "-o", out()}),
               {"--threads"});
  expect_error(run_sol({"convert", "--weights", "int8", "x.pt", "-o", out()}), {"named with -m"});
  expect_error(run_sol({"convert", "--weights", "int8", "--config", "x.yaml", "-o", out()}),
               {"goes with --from sol-pt"});
}

}  // namespace
}  // namespace sol
