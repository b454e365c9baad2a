// The plan: every job once, behind those it needs; sections bring what they need.
#include "reproduction/jobs.h"

#include <algorithm>
#include <set>

#include "reproduction/run.h"
#include "support.h"
#include "throws.h"

namespace sol {
namespace {

Study shipped() {
  return load_study(test::source_dir() / "configs/studies/default.yaml");
}

std::set<std::string> names(const std::vector<Job>& jobs) {
  std::set<std::string> result;
  for (const Job& job : jobs) result.insert(job.name);
  return result;
}

void expect_runnable(const std::vector<Job>& jobs) {
  std::set<std::string> before;
  for (const Job& job : jobs) {
    for (const std::string& needed : job.after)
      EXPECT_TRUE(before.contains(needed)) << job.name << " needs " << needed;
    EXPECT_TRUE(before.insert(job.name).second) << job.name << " twice";
    EXPECT_GT(job.work, 0) << job.name;
    EXPECT_TRUE(job.run);
    ASSERT_FALSE(job.sections.empty()) << job.name;
    for (const std::string& section : job.sections)
      EXPECT_NE(std::ranges::find(section_names(), section), section_names().end()) << job.name;
  }
}

TEST(StudyJobs, StandBehindThoseTheyNeed) {
  const Study study = shipped();
  const std::vector<Job> jobs = plan_jobs(study);
  expect_runnable(jobs);
  const auto planned = names(jobs);
  for (const char* job :
       {"train/paper/2l", "frontier/harsh/t64", "sweep/paper/fl", "landscape/harsh/3l",
        "search/paper/2l-4", "single/harsh/quant-5-10", "pollution", "static", "timed/paper/2l",
        "behaviour/harsh/2l", "transfer/paper/2l-novels", "transfer/harsh/2l-context-256",
        "sweep/paper/2l-seed5", "sweep/harsh/keep-01", "heuristics/harsh/3l"})
    EXPECT_TRUE(planned.contains(job)) << job;
}

TEST(StudyJobs, OnlyFixedIsPlayedAtTheRequestedBudgetsToo) {
  Study study = shipped();
  const auto work = [&](const std::vector<std::string>& baselines) {
    study.experiments.spaces.baselines = baselines;
    const auto jobs = plan_jobs(study);
    return std::ranges::find(jobs, "sweep/harsh/2l", &Job::name)->work;
  };
  const double pass = work({"fixed"}) / 3;  // the policy; fixed at realised and requested averages
  EXPECT_DOUBLE_EQ(work({"fixed", "elsewhere"}), 4 * pass);
  EXPECT_DOUBLE_EQ(work({"fixed", "emc", "elsewhere"}), 5 * pass);
  study.sweep_blocks = 3 * study.blocks;
  EXPECT_DOUBLE_EQ(work({"fixed"}), 9 * pass);
}

TEST(StudyJobs, HeuristicsAreComparedAtWhatTheySpend) {
  Study study = shipped();
  const auto work = [&] {
    const auto jobs = plan_jobs(study);
    const auto job = std::ranges::find(jobs, "heuristics/harsh/2l", &Job::name);
    return job == jobs.end() ? 0.0 : job->work;
  };
  const double two = work();  // EMC and DAC
  EXPECT_GT(two, 0);
  study.experiments.spaces.baselines = {"fixed", "dac", "elsewhere"};
  EXPECT_DOUBLE_EQ(work(), two / 2);
  study.experiments.spaces.baselines = {"fixed", "elsewhere"};
  EXPECT_EQ(work(), 0);
}

TEST(StudyJobs, ASectionBringsWhatItNeedsAndNoMore) {
  const Study study = shipped();
  const auto pollution = wanted_jobs(study, {"pollution"});
  EXPECT_EQ(names(pollution), (std::set<std::string>{"pollution"}));
  const auto horizons = wanted_jobs(study, {"horizons"});
  expect_runnable(horizons);
  EXPECT_EQ(names(horizons),
            (std::set<std::string>{"train/paper/t4", "train/paper/t16", "train/paper/t64",
                                   "train/harsh/t4", "train/harsh/t16", "train/harsh/t64",
                                   "frontier/paper/t4", "frontier/paper/t16", "frontier/paper/t64",
                                   "frontier/harsh/t4", "frontier/harsh/t16", "frontier/harsh/t64",
                                   "sweep/paper/t4", "sweep/paper/t16", "sweep/paper/t64",
                                   "sweep/harsh/t4", "sweep/harsh/t16", "sweep/harsh/t64"}));
  // The frontiers that static methods are drawn over.
  EXPECT_EQ(
      names(wanted_jobs(study, {"scaling"})),
      (std::set<std::string>{"train/paper/fl", "frontier/paper/fl", "sweep/paper/fl",
                             "train/harsh/fl", "frontier/harsh/fl", "sweep/harsh/fl", "static"}));
  EXPECT_THAT([&] { wanted_jobs(study, {"horizon"}); },
              test::throws({"no section \"horizon\"", "horizons"}));
}

TEST(StudyJobs, WhatTwoSectionsShowIsOfBoth) {
  Study study = shipped();
  study.experiments.horizons.controllers = {"2l"};
  EXPECT_TRUE(names(wanted_jobs(study, {"horizons"})).contains("sweep/paper/2l"));
  EXPECT_TRUE(names(wanted_jobs(study, {"spaces"})).contains("sweep/paper/2l"));
}

TEST(StudyJobs, SayWhichTextTheyRead) {
  Study study = shipped();
  for (StudyController& controller : study.families[1].controllers) {
    if (controller.name != "2l") continue;
    controller.configuration.clear();
    controller.ready = "made";
  }
  const auto jobs = plan_jobs(study);
  const auto reads = [&](const std::string& name) {
    const auto job = std::ranges::find(jobs, name, &Job::name);
    EXPECT_NE(job, jobs.end()) << name;
    return job == jobs.end() ? nullptr : job->reads;
  };
  for (const char* job : {"train/paper/2l", "train/paper/2l-seed5"})
    EXPECT_EQ(reads(job), &study.train) << job;
  EXPECT_EQ(reads("train/harsh/2l"), nullptr);  // it is ready
  EXPECT_EQ(reads("frontier/harsh/2l"), &study.valid);
  for (const char* job :
       {"sweep/paper/2l", "sweep/paper/2l-seed5", "heuristics/harsh/3l", "landscape/harsh/3l",
        "search/paper/2l-4", "single/harsh/quant-5-10", "pollution", "static", "timed/paper/2l",
        "behaviour/harsh/2l", "free/paper/2l", "transfer/harsh/2l-context-256"})
    EXPECT_EQ(reads(job), &study.test) << job;
  EXPECT_EQ(reads("transfer/paper/2l-novels")->name, "novels");
}

TEST(StudyJobs, AFamilyWithoutAControllerIsLeftOutThere) {
  Study study = shipped();
  std::erase_if(study.families[1].controllers,
                [](const StudyController& controller) { return controller.name != "2l"; });
  const auto jobs = plan_jobs(study);
  expect_runnable(jobs);
  const auto planned = names(jobs);
  EXPECT_TRUE(planned.contains("sweep/harsh/2l"));
  EXPECT_FALSE(planned.contains("sweep/harsh/3l"));
  EXPECT_TRUE(planned.contains("sweep/paper/3l"));
}

}  // namespace
}  // namespace sol
