#include "base/json.h"
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

TEST(InspectCommand, TheEmbeddedModelIsTheDefault) {
  const RunResult result = run_sol({"inspect"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("5,770,496"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("none in this directory"), std::string::npos) << result.out;
}

}  // namespace
}  // namespace sol
