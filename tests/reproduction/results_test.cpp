#include "reproduction/results.h"

#include "base/file_io.h"
#include "support.h"
#include "throws.h"

namespace sol {
namespace {

using test::throws;

struct StudyResultsTest : testing::Test {
  test::TemporaryDirectory dir;
  Json identity = {{"name", "s"}, {"blocks", 3}, {"families", {{{"name", "a"}}}}};
};

TEST_F(StudyResultsTest, KeepsWhatJobsFound) {
  StudyResults results = StudyResults::open(dir.path(), identity);
  EXPECT_FALSE(results.has("sweep/a/2l"));
  EXPECT_FALSE(results.find("sweep/a/2l"));
  RunInfo run;
  run.commit = "abc";
  results.store("sweep/a/2l", {{"x", 0.1}}, 2.5, run);
  EXPECT_TRUE(results.has("sweep/a/2l"));
  EXPECT_EQ(results.find("sweep/a/2l"), Json({{"x", 0.1}}));
  EXPECT_EQ(results.seconds("sweep/a/2l"), 2.5);
  EXPECT_THAT(results.runs(), testing::HasSubstr("commit abc"));
  // Again, and only to read.
  EXPECT_TRUE(StudyResults::open(dir.path(), identity).has("sweep/a/2l"));
  EXPECT_EQ(StudyResults::read(dir.path()).identity(), identity);
}

TEST_F(StudyResultsTest, KeepsWhyAJobFailedUntilItHasAResult) {
  StudyResults results = StudyResults::open(dir.path(), identity);
  EXPECT_FALSE(results.failure("sweep/a/2l"));
  results.store_failure("sweep/a/2l", "no <text>");
  EXPECT_EQ(StudyResults::read(dir.path()).failure("sweep/a/2l"), "no <text>");
  EXPECT_FALSE(results.has("sweep/a/2l"));
  EXPECT_EQ(results.runs(), "");
  results.store("sweep/a/2l", {{"x", 1}}, 1, {});
  EXPECT_FALSE(results.failure("sweep/a/2l"));
}

TEST_F(StudyResultsTest, AResumedTrainingTookAllOfItsTime) {
  StudyResults results = StudyResults::open(dir.path(), identity);
  results.store("train/a/2l", {{"seconds", 7200.0}}, 30, {});
  EXPECT_EQ(results.seconds("train/a/2l"), 7200);
  results.store("train/a/3l", {{"seconds", 20.0}}, 30, {});
  EXPECT_EQ(results.seconds("train/a/3l"), 30);
}

TEST_F(StudyResultsTest, FailuresAreNothingThatHasComeOfAStudy) {
  StudyResults::open(dir.path(), identity).store_failure("train/a/2l", "no memory");
  Json mended = identity;
  mended["blocks"] = 4;
  EXPECT_EQ(StudyResults::open(dir.path(), mended).identity(), mended);
}

TEST_F(StudyResultsTest, TheDeviceIsPartOfWhatMadeThem) {
  StudyResults results = StudyResults::open(dir.path(), identity);
  RunInfo run;
  run.device = "cuda:0";
  results.store("sweep/a/2l", {{"x", 1}}, 1, run);
  EXPECT_THAT(results.runs(), testing::HasSubstr("; cuda:0"));
  run.device = "native";
  results.store("sweep/a/2l", {{"x", 1}}, 1, run);
  EXPECT_THAT(results.runs(), testing::Not(testing::HasSubstr("native")));
}

TEST_F(StudyResultsTest, ADirectoryHoldsOneStudy) {
  Json other = identity;
  other["families"][0]["name"] = "b";
  // Until something has come of it, another may take its place.
  StudyResults::open(dir.path(), other);
  StudyResults::open(dir.path(), identity).store("static", {{"x", 1}}, 1, {});
  EXPECT_EQ(StudyResults::read(dir.path()).identity(), identity);
  EXPECT_THAT([&] { StudyResults::open(dir.path(), other); },
              throws({dir.path().string(), "another study", "families[0].name"}));
  other = identity;
  other["extra"] = 1;
  EXPECT_THAT([&] { StudyResults::open(dir.path(), other); }, throws({"another study", "extra"}));
}

TEST_F(StudyResultsTest, AReportIsOfTheStudyThatWasRun) {
  identity["model"] = "m";  // what the run adds
  identity["sweep_blocks"] = 0;
  StudyResults::open(dir.path(), identity);
  const StudyResults results = StudyResults::read(dir.path());
  Json study = identity;
  study.erase("model");
  EXPECT_NO_THROW(results.require_study(study));
  study["blocks"] = 4;
  EXPECT_THAT([&] { results.require_study(study); }, throws({"another study", "blocks"}));
  study["blocks"] = 3;
  study.erase("sweep_blocks");
  EXPECT_THAT([&] { results.require_study(study); }, throws({"another study", "sweep_blocks"}));
}

TEST_F(StudyResultsTest, DamageIsAnErrorThatNamesTheFile) {
  EXPECT_THAT([&] { StudyResults::read(dir.path()); }, throws({"holds no study", "study.json"}));
  StudyResults results = StudyResults::open(dir.path(), identity);
  results.store("static", {{"points", 1}}, 1, {});
  write_file_atomically(dir.path() / "jobs/static.json", "{\"result\": {\"po");
  EXPECT_THAT([&] { results.find("static"); }, throws({"static.json", "delete the file"}));
  write_file_atomically(dir.path() / "jobs/static.json", "{}");
  EXPECT_THAT([&] { results.find("static"); }, throws({"static.json", "\"result\" is missing"}));
  write_file_atomically(dir.path() / "study.json", "{\"format_version\": 9}");
  EXPECT_THAT([&] { StudyResults::read(dir.path()); }, throws({"format version 9", "newer"}));
  // Results without what says of what they are.
  std::filesystem::remove(dir.path() / "study.json");
  EXPECT_THAT([&] { StudyResults::open(dir.path(), identity); }, throws({"study.json", "missing"}));
}

TEST_F(StudyResultsTest, AModelsDirectoryIsNotForResults) {
  write_file_atomically(dir.path() / "config.json", "{}");
  EXPECT_THAT([&] { StudyResults::open(dir.path(), identity); }, throws({"holds a model"}));
  EXPECT_FALSE(std::filesystem::exists(dir.path() / "jobs"));
}

}  // namespace
}  // namespace sol
