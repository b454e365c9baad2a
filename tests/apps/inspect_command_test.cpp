#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "base/file_io.h"
#include "base/json.h"
#include "model/safetensors.h"
#include "run_program.h"

namespace sol {
namespace {

using test::run_sol;
using test::RunResult;

std::string golden(const char* name) {
  return (test::test_data() / "golden" / name).string();
}

TEST(InspectCommand, PrintsATable) {
  const RunResult result = run_sol({"inspect", golden("tiny_sharded_f32")});
  ASSERT_EQ(result.code, 0) << result.err;
  for (const char* part : {"4 query, 2 key/value, 16 wide", "llama3 scaling: factor 8", "its own",
                           "152,000", "608,000 in 3 files", "none in this directory",
                           "0dcb64bfe920dbbda2dd42a2a231301b", "model.layers.*.mlp.up_proj.weight"})
    EXPECT_NE(result.out.find(part), std::string::npos) << part << " in\n" << result.out;
}

TEST(InspectCommand, PrintsJson) {
  const RunResult result = run_sol({"inspect", "--json", golden("tiny_tied_bf16")});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json json = parse_json(result.out, "output");
  EXPECT_EQ(json["parameters"], 131520);
  EXPECT_EQ(json["bytes"], 263040);
  EXPECT_EQ(json["parameters_by_dtype"]["BF16"], 131520);
  EXPECT_EQ(json["tokenizer"], nullptr);
  EXPECT_EQ(json["tensors"].size(), 29u);
  EXPECT_EQ(json["files"], Json::array({"model.safetensors"}));
}

TEST(InspectCommand, NamesWhatKeepsAModelFromRunning) {
  const test::TemporaryDirectory dir;
  // Neither a path nor a name need be UTF-8.
  const std::filesystem::path model = dir.path() / "model\xff";
  std::filesystem::copy(golden("tiny_tied_f32"), model);
  const auto problems = [&] {
    const RunResult result = run_sol({"inspect", "--json", model.string()});
    EXPECT_EQ(result.code, 0) << result.err;
    return parse_json(result.out, "output").at("problems");
  };
  EXPECT_EQ(problems().size(), 1u) << problems();  // no tokenizer
  std::filesystem::copy(test::source_dir() / "models/default/tokenizer.json", model);
  EXPECT_NE(problems()[0].get<std::string>().find("the model only 320"), std::string::npos);
  std::string bytes = read_file(model / "model.safetensors");
  bytes.replace(bytes.size() - 4, 4, "\xff\xff\xff\xff");
  std::ofstream(model / "model.safetensors", std::ios::binary) << bytes;
  EXPECT_NE(problems()[0].get<std::string>().find("cannot run: tensor model."), std::string::npos);
  EXPECT_NE(run_sol({"inspect", model.string()}).out.find("not finite"), std::string::npos);
}

// What loading refuses of codes and scales.
TEST(InspectCommand, NamesWhatKeepsAConvertedModelFromRunning) {
  const test::TemporaryDirectory dir;
  const std::filesystem::path model = dir.path() / "model";
  ASSERT_EQ(
      run_sol({"convert", "-m", golden("tiny_tied_f32"), "--weights", "int8", "-o", model.string()})
          .code,
      0);
  const std::string changed = "model.layers.0.self_attn.q_proj.weight";
  const TensorStore store = TensorStore::open_directory(model);
  const std::span<const std::byte> old = store.get(changed).bytes;
  std::vector<std::byte> bytes(old.begin(), old.end());
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, view] : store.tensors())
    tensors.push_back({name, view.type, view.shape,
                       name == changed ? std::span<const std::byte>(bytes) : view.bytes});
  const auto problems = [&] {
    write_safetensors(model / "model.safetensors", tensors, store.metadata());
    const RunResult result = run_sol({"inspect", "--json", model.string()});
    EXPECT_EQ(result.code, 0) << result.err;
    return parse_json(result.out, "output").at("problems");
  };
  EXPECT_EQ(problems().size(), 1u) << problems();  // no tokenizer
  bytes[0] = std::byte{0x80};
  const std::string problem = problems()[0];
  EXPECT_NE(problem.find("cannot run: tensor " + changed), std::string::npos) << problem;
  EXPECT_NE(problem.find("a code of -128"), std::string::npos) << problem;
}

TEST(InspectCommand, SaysThatAModelCanRun) {
  EXPECT_NE(run_sol({"inspect"}).out.find("can run       yes"), std::string::npos)
      << run_sol({"inspect"}).out;
  EXPECT_EQ(run_sol({"inspect", golden("tiny_sharded_f32")}).out.find("can run "),
            std::string::npos);  // it has no tokenizer
}

TEST(InspectCommand, TheEmbeddedModelIsTheDefault) {
  const RunResult result = run_sol({"inspect"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("5,770,496"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("none in this directory"), std::string::npos) << result.out;
}

}  // namespace
}  // namespace sol
