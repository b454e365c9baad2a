#include "reproduction/report.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "base/file_io.h"
#include "reproduction/experiment_json.h"
#include "support.h"
#include "throws.h"

namespace sol {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(StudyReport, TextsStandWithTheLabelsThatTheStudyGivesThem) {
  test::TemporaryDirectory dir;
  Study study;
  study.name = "s";
  study.train.files = {"texts/a.txt"};
  study.valid.files = {"texts/b.txt"};
  study.valid.label = "valid";  // of a study that gives none
  study.test.files = {"texts/c.txt", "texts/d.txt"};
  study.test.label = "seen text";
  const StudyResults results =
      StudyResults::open(dir.path(), {{"name", "s"}, {"context", study.context}});
  write_study_report(study, results, {});
  const std::string shown = read_file(dir.path() / "report.md");
  EXPECT_THAT(shown, HasSubstr("- Training text: a.txt\n"));
  EXPECT_THAT(shown, HasSubstr("- Validation text: b.txt\n"));
  EXPECT_THAT(shown, HasSubstr("- Test text: seen text (c.txt, d.txt)\n"));
}

TEST(StudyReport, PlotsAreFilesAndThoseOfAnEarlierReportGo) {
  test::TemporaryDirectory dir;
  Study study;
  study.name = "s";
  StudyResults results =
      StudyResults::open(dir.path(), {{"name", "s"}, {"context", study.context}});
  Pollution pollution;
  pollution.windows = {0};
  PollutionSetting setting;
  setting.axis = Axis::rho;
  setting.action = {1.0f, 0.4f, 16};
  pollution.settings = {setting};
  results.store("pollution", pollution_to_json(pollution), 1, {});
  const std::filesystem::path plots = dir.path() / "plots";
  std::filesystem::create_directories(plots);
  write_file_atomically(plots / "mine.svg", "<svg/>");
  write_file_atomically(plots / "search-1.svg", "<svg/>");
  write_file_atomically(plots / "search-2.svg", "<svg/>");
  write_file_atomically(dir.path() / "report.md",
                        "# Study: s\n![x](plots/search-1.svg)\n![y](plots/search-2.svg)\n");
  write_file_atomically(plots / "training-1.svg", "<svg/>");  // no report's
  write_study_report(study, results, {});
  EXPECT_THAT(read_file(plots / "pollution-1.svg"), StartsWith("<svg xmlns="));
  EXPECT_THAT(read_file(dir.path() / "report.md"), HasSubstr("](plots/pollution-1.svg)"));
  EXPECT_FALSE(path_exists(plots / "search-1.svg"));
  EXPECT_FALSE(path_exists(plots / "search-2.svg"));
  EXPECT_TRUE(path_exists(plots / "training-1.svg"));
  EXPECT_TRUE(path_exists(plots / "mine.svg"));
}

TEST(StudyReport, NothingOutsideOfItsTablesIsRemoved) {
  test::TemporaryDirectory dir;
  Study study;
  study.name = "s";
  const StudyResults results =
      StudyResults::open(dir.path() / "R", {{"name", "s"}, {"context", study.context}});
  write_file_atomically(dir.path() / "victim.csv", "mine");
  write_file_atomically(dir.path() / "R/figures.jsonl", "{\"table\":\"../../victim\"}\n");
  EXPECT_THAT([&] { write_study_report(study, results, {}); },
              test::throws({"figures.jsonl", "../../victim"}));
  EXPECT_EQ(read_file(dir.path() / "victim.csv"), "mine");
}

}  // namespace
}  // namespace sol
