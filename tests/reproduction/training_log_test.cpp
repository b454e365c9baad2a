#include "reproduction/training_log.h"

#include <cmath>
#include <fstream>

#include "support.h"
#include "throws.h"

namespace sol {
namespace {

using test::throws;

TrainingSummary example() {
  TrainingSummary summary;
  summary.updates = 3;
  summary.seconds = 4.5;
  summary.steps = 6000;
  summary.policy_parameters = 77;
  TrainingPoint point;
  point.update = 1;
  point.reward = std::nan("");
  point.perplexity = 12.25;
  point.gap = {0.1, 0.2, 0.3};
  summary.curve = {point};
  return summary;
}

TEST(TrainingSummary, ComesBackFromItsFile) {
  const Json json = training_summary_to_json(example());
  EXPECT_TRUE(json["curve"][0]["reward"].is_null());
  const TrainingSummary back = training_summary_from_json(parse_json(json.dump(), "x"), "x");
  EXPECT_EQ(training_summary_to_json(back), json);
  EXPECT_TRUE(std::isnan(back.curve[0].reward));
}

TEST(TrainingSummary, DamageIsNamed) {
  Json json = training_summary_to_json(example());
  json["curve"][0].erase("gap");
  EXPECT_THAT([&] { training_summary_from_json(json, "j.json"); }, throws({"j.json", "\"gap\""}));
  for (const char* field : {"perplexity", "update", "seconds"}) {
    Json negative = training_summary_to_json(example());
    negative["curve"][0][field] = -1;
    EXPECT_THAT([&] { training_summary_from_json(negative, "j.json"); },
                throws({"j.json", field, "negative"}));
  }
  json["curve"] = Json::array();
  EXPECT_THAT([&] { training_summary_from_json(json, "j.json"); }, throws({"\"curve\""}));
}

TEST(TrainingSummary, ALogWithoutACollectionIsAnError) {
  test::TemporaryDirectory dir;
  EXPECT_THAT([&] { training_summary(dir.path()); }, throws({"train.jsonl"}));
  std::ofstream(dir.path() / "train.jsonl") << "";
  EXPECT_THAT([&] { training_summary(dir.path()); }, throws({"no collection"}));
  std::ofstream(dir.path() / "train.jsonl") << "{\"collection\": 1, \"update\": \"one\"}\n";
  EXPECT_THAT([&] { training_summary(dir.path()); }, throws({"line 1", "update"}));
}

}  // namespace
}  // namespace sol
