#include "evaluation/schedule_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_io.h"
#include "base/json.h"
#include "evaluation/named_policy.h"
#include "fake_model.h"
#include "policy/policies.h"
#include "sol/error.h"
#include "support.h"

namespace sol {
namespace {

using test::evaluate_arms;
using test::fake_blocks;
using test::FakeModel;
using test::first_blocks;
using test::small_protocol;

struct ScheduleFile : testing::Test {
  FakeModel model;
  ProtocolOptions options = small_protocol();
  BlockDataset data = fake_blocks(5, options);
  test::TemporaryDirectory directory;
  std::filesystem::path path = directory.path() / "schedules.json";

  // Fixed: every block has a schedule of its own.
  ScheduleRecord record() {
    const auto policy = make_fixed_policy(ActionSpace({0.02f, 1.0f}, {0.3f, 1.0f}, {3, 16}));
    const Budget budget{0.4f, 0.6f, 0.5f};
    BlockEvaluator evaluator(model, data, {4, 1, 2}, options);
    const Arm arm{policy.get(), budget, 0};
    const auto results = evaluator.run(std::span(&arm, 1), true);
    return make_schedule_record(*policy, budget, model, data, evaluator, results[0]);
  }

  std::string error_for(const std::string& field, const Json& value) {
    write_schedules(path, record());
    Json json = read_json(path);
    if (value.is_discarded())
      json.erase(field);
    else
      json[field] = value;
    write_file_atomically(path, json.dump());
    try {
      read_schedules(path);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("schedules.json"));
      return error.what();
    }
    return "";
  }
};

TEST_F(ScheduleFile, ReplaysToTheSameLogProbabilities) {
  const ScheduleRecord before = record();
  write_schedules(path, before);
  const ScheduleRecord after = read_schedules(path);
  EXPECT_EQ(after.policy, "fixed");
  EXPECT_EQ(after.budget, before.budget);
  EXPECT_EQ(after.space, before.space);
  EXPECT_EQ(after.context, 20);
  EXPECT_EQ(after.horizon, 8);
  ASSERT_EQ(after.blocks.size(), 3u);
  EXPECT_EQ(after.blocks[0].block, 4);
  EXPECT_NE(after.blocks[0].actions, after.blocks[1].actions);
  require_same_source(after, model, data);

  const auto policy = make_recorded_policy(after);
  const Arm arm{policy.get(), after.budget, 0};
  const std::vector<int64_t> blocks{4, 1, 2};
  const auto results = evaluate_arms(model, data, blocks, std::span(&arm, 1), options, true);
  EXPECT_EQ(largest_difference(after, results[0]), 0.0);
  for (size_t b = 0; b < 3; ++b) EXPECT_EQ(results[0][b].actions, before.blocks[b].actions);
}

TEST_F(ScheduleFile, RefusesOtherModelsTextsAndBlocks) {
  ScheduleRecord other = record();
  const auto policy = make_recorded_policy(other);
  EXPECT_THROW(policy->begin({}, 8, {.sequence = 0}), Error);
  EXPECT_THROW(policy->begin({}, 9, {.sequence = 4}), Error);
  other.model_fingerprint = "another";
  EXPECT_THROW(require_same_source(other, model, data), Error);
  other = record();
  std::swap(other.blocks[0].tokens, other.blocks[1].tokens);
  EXPECT_THROW(require_same_source(other, model, data), Error);
  EXPECT_THROW(require_same_source(record(), model, fake_blocks(4, options)), Error);
}

TEST_F(ScheduleFile, NamesWhatIsMalformed) {
  EXPECT_EQ(error_for("policy", "fixed"), "");  // unchanged
  EXPECT_THAT(error_for("format", "other"), testing::HasSubstr("recorded schedules"));
  EXPECT_THAT(error_for("format_version", 1), testing::HasSubstr("version 1"));
  EXPECT_NE(error_for("blocks", Json::array()), "");
  EXPECT_NE(error_for("blocks", Json::array({1})), "");
  EXPECT_NE(error_for("blocks", Json(Json::value_t::discarded)), "");
  EXPECT_NE(error_for("budget", 3), "");
  EXPECT_NE(error_for("kappa_levels", Json::array({"a"})), "");
  EXPECT_NE(error_for("bits_levels", Json::array({3.5, 16})), "");
  EXPECT_THAT(error_for("horizon", 9), testing::HasSubstr("blocks[0]"));
  EXPECT_NE(error_for("context", 0), "");
  EXPECT_THAT(error_for("window", 2147483647), testing::HasSubstr("window = 2147483647"));
  EXPECT_THAT(error_for("page_size", 0), testing::HasSubstr("page_size = 0"));
  EXPECT_THAT(error_for("bits_levels", Json::array({4294967299, 16})),
              testing::HasSubstr("4294967299"));
  EXPECT_THAT(error_for("rho_levels", Json::array({1.0})), testing::HasSubstr("action"));
  write_file_atomically(path, "{\"format\": ");
  EXPECT_THROW(read_schedules(path), Error);
  EXPECT_THROW(read_schedules(directory.path() / "missing.json"), Error);
}

TEST(NamedPolicy, KnowsItsNames) {
  PolicyParts parts;
  parts.space = ActionSpace({0.02f, 1.0f}, {0.3f, 1.0f}, {3, 16});
  parts.vocab_size = 300;
  parts.sequences = 9;
  for (const std::string& name : policy_names())
    if (mixes_levels(name)) {
      EXPECT_EQ(make_named_policy(name, parts)->name(), name);
    }
  EXPECT_EQ(make_named_policy("fixed", parts)->name(), "fixed");
  EXPECT_EQ(make_named_policy("random-matched", parts)->name(), "random-matched");
  EXPECT_EQ(make_named_policy("random-uniform", parts)->name(), "random-uniform");
  EXPECT_EQ(make_named_policy("k050-s070-q8", parts)->name(), "k050-s070-q8");
  EXPECT_TRUE(make_named_policy("dense", parts)->space().action(0).dense());
  EXPECT_EQ(make_named_policy("fixed@1000", parts)->name(), "fixed@1000");
  EXPECT_TRUE(mixes_levels("fixed@1000"));
  for (const char* bad : {"", "learnt", "keep", "k050", "learned", "fixed@", "fixed@0", "fixed@-1",
                          "fixed@1x", "fixed@99999999999999999999"})
    EXPECT_THROW(make_named_policy(bad, parts), Error) << bad;
  EXPECT_THROW(make_named_policy("emc", PolicyParts{}), Error);
  EXPECT_THROW(make_named_policy("fixed-reference", PolicyParts{}), Error);
}

}  // namespace
}  // namespace sol
