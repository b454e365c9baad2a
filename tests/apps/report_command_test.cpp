// sol report.
#include <fstream>

#include "base/file_io.h"
#include "run_program.h"
#include "training/metrics.h"

namespace sol::test {
namespace {

namespace fs = std::filesystem;

void write_run(const fs::path& dir) {
  fs::create_directories(dir);
  std::ofstream log(dir / "train.jsonl");
  for (int64_t i = 1; i <= 3; ++i) {
    CollectionMetrics m;
    m.collection = m.update = i;
    m.updates = 10;
    m.steps = 8;
    log << to_text(to_json(m)) << '\n';
  }
}

TEST(ReportCommand, DrawsOneRunOrSeveral) {
  TemporaryDirectory dir;
  const fs::path a = dir.path() / "a", b = dir.path() / "b";
  write_run(a);
  write_run(b);
  const RunResult one = run_sol({"report", a.string()});
  ASSERT_EQ(one.code, 0) << testing::PrintToString(one);
  EXPECT_EQ(one.out, (a / "report.html").string() + "\n");
  EXPECT_NE(read_file(a / "report.html").find("3 of 10"), std::string::npos);
  const fs::path page = dir.path() / "both.html";
  const RunResult both = run_sol({"report", a.string(), b.string(), "-o", page.string()});
  ASSERT_EQ(both.code, 0) << testing::PrintToString(both);
  EXPECT_NE(read_file(page).find("2 runs"), std::string::npos);
}

// A run's files cannot be made again.
TEST(ReportCommand, WritesOverNothingButAnOlderPage) {
  TemporaryDirectory dir;
  const fs::path run = dir.path() / "run", log = run / "train.jsonl";
  write_run(run);
  const std::string before = read_file(log);
  const fs::path weights = run / "policy.safetensors", notes = dir.path() / "notes.html";
  std::ofstream(weights) << "weights";
  std::ofstream(notes) << "<!DOCTYPE html>\n<html lang=\"en\">\n";
  fs::create_symlink(log, dir.path() / "link");
  const auto report = [&](const fs::path& out) {
    return run_sol({"report", run.string(), "-o", out.string()});
  };
  for (const fs::path& out :
       {log, run / ".." / "run" / "train.jsonl", dir.path() / "link", weights})
    expect_error(report(out),
                 {out.string(), "belongs to the input " + run.string(), "overwritten"});
  expect_error(report(notes), {"notes.html", "is there already", "`sol report`"});
  EXPECT_EQ(read_file(log), before);
  EXPECT_EQ(read_file(weights), "weights");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(report(run / "report.html").code, 0);
}

TEST(ReportCommand, BadInputIsNamed) {
  TemporaryDirectory dir;
  expect_error(run_sol({"report"}), {"run"});
  const fs::path text = dir.path() / "text.txt";
  std::ofstream(text) << "x";
  expect_error(run_sol({"report", text.string()}), {"text.txt: is no run's directory"});
  expect_error(run_sol({"report", (dir.path() / "none").string()}), {"none: no such directory"});
  expect_error(run_sol({"report", dir.path().string()}), {"train.jsonl is missing"});
  write_run(dir.path());
  std::ofstream(dir.path() / "train.jsonl", std::ios::app) << "nonsense\n";
  expect_error(run_sol({"report", dir.path().string()}), {"train.jsonl, line 4"});
  EXPECT_FALSE(fs::exists(dir.path() / "report.html"));
}

}  // namespace
}  // namespace sol::test
