#include "reproduction/study.h"

#include <algorithm>
#include <fstream>

#include "support.h"
#include "throws.h"
#include "training/config.h"

namespace sol {
namespace {

using test::throws;

class StudyFile : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(dir.path() / "made");
    write("t.txt", "text");
    write("a.yaml", "name: a");
    write("made/controller.json", "{}");
  }
  void write(const std::string& name, const std::string& content) {
    std::ofstream(dir.path() / name) << content;
  }
  Study load(const std::string& text) {
    std::ofstream(path) << text;
    return load_study(path);
  }
  test::TemporaryDirectory dir;
  std::filesystem::path path = dir.path() / "study.yaml";
};

const std::string small =
    "name: small\n"
    "data:\n"
    "  test: {files: [t.txt], format: wikitext}\n"
    "set: {policy.d_model: 64, optimisation.entropy: 0.1}\n"
    "families:\n"
    "  mild:\n"
    "    title: Mild\n"
    "    set: {penalty.keep: 3}\n"
    "    controllers:\n"
    "      2l: {config: a.yaml, updates: 7, set: {actions.keep: [0.5, 1.0]}}\n"
    "      fl: {ready: made}\n";

TEST_F(StudyFile, ReadsPathsBesideItselfAndOverridesFromWideToNarrow) {
  const Study study = load(small);
  EXPECT_EQ(study.name, "small");
  EXPECT_EQ(study.test.files, (std::vector{dir.path() / "t.txt"}));
  EXPECT_EQ(study.test.format, TextOptions::Format::wikitext);
  EXPECT_TRUE(study.train.files.empty());
  ASSERT_EQ(study.families.size(), 1u);
  const StudyFamily& family = study.families[0];
  EXPECT_EQ(family.title, "Mild");
  const StudyController* controller = family.find("2l");
  ASSERT_TRUE(controller);
  EXPECT_EQ(controller->configuration, dir.path() / "a.yaml");
  EXPECT_EQ(controller->updates, 7);
  EXPECT_EQ(controller->overrides, (Overrides{{"policy.d_model", "64"},
                                              {"optimisation.entropy", "0.1"},
                                              {"penalty.keep", "3"},
                                              {"actions.keep", "[0.5, 1.0]"}}));
  EXPECT_EQ(family.find("fl")->ready, dir.path() / "made");
  EXPECT_EQ(family.find("fl")->updates, 0);
  EXPECT_EQ(family.find("3l"), nullptr);
}

TEST_F(StudyFile, ErrorsNameFileLineAndKey) {
  EXPECT_THAT([&] { load(small + "blocks: 3\n"); }, throws({"study.yaml", "unknown key blocks"}));
  EXPECT_THAT([&] { load(small + "evaluation: {blocks: -1}\n"); },
              throws({"line 12", "blocks is -1", "from 0"}));
  EXPECT_THAT([&] { load(small + "experiments: {spaces: {controllers: [4l]}}\n"); },
              throws({"no family has a controller \"4l\""}));
  EXPECT_THAT(
      [&] { load(small + "experiments: {spaces: {controllers: [2l], baselines: [emc]}}\n"); },
      throws({"\"fixed\" must be the first baseline"}));
  EXPECT_THAT(
      [&] {
        load(small + "experiments: {spaces: {controllers: [2l], baselines: [fixed, emcc]}}\n");
      },
      throws({"line 12", "\"emcc\" is no policy"}));
  EXPECT_THAT(
      [&] {
        load(small +
             "evaluation: {blocks: 1}\n"
             "experiments: {spaces: {controllers: [2l], baselines: [fixed, elsewhere]}}\n");
      },
      throws({"line 13", "\"elsewhere\" needs a second block"}));
  EXPECT_THAT([&] { load("name: x\nfamilies: {a: {controllers: {b: {redy: d}}}}\n"); },
              throws({"unknown key", "redy"}));
  EXPECT_THAT([&] { load(small + "experiments: {seeds: {controller: 2l, seeds: [1.5]}}\n"); },
              throws({"1.5 is no seed"}));
  EXPECT_THAT([&] { load(small + "experiments: {seeds: {controller: 2l, seeds: [5, 5]}}\n"); },
              throws({"line 12", "the seed 5 is used already"}));
  EXPECT_THAT([&] { load(small + "experiments: {seeds: {controller: 2l, seeds: [1234]}}\n"); },
              throws({"the seed 1234 is used already"}));
  EXPECT_THAT([&] { load(small + "experiments: {seeds: {controller: fl, seeds: [5]}}\n"); },
              throws({"fl is ready"}));
  EXPECT_THAT(
      [&] {
        load(small +
             "      2l-seed5: {config: a.yaml}\n"
             "experiments: {seeds: {controller: 2l, seeds: [5]}}\n");
      },
      throws({"2l with the seed 5", "2l-seed5"}));
  EXPECT_THAT(
      [&] {
        load(small +
             "experiments: {transfer: {controller: 2l, contexts: [256], texts: {context-256: "
             "{files: [t.txt]}}}}\n");
      },
      throws({"a text called context-256"}));
  EXPECT_THAT(
      [&] {
        load(small + "experiments: {transfer: {controller: 2l, texts: {other: {label: seen}}}}\n");
      },
      throws({"line 12", "other names no files"}));
  EXPECT_THAT(
      [&] { load("name: x\nfamilies: {a: {controllers: {b: {ready: made, updates: 3}}}}\n"); },
      throws({"line 2", "ready is not trained"}));
  EXPECT_THAT([&] { load("name: x\nfamilies: {a: {controllers: {b: {}}}}\n"); },
              throws({"line 2", "either config", "or ready"}));
  EXPECT_THAT([&] { load("name: x\nfamilies: {a: {controllers: {b/c: {config: d}}}}\n"); },
              throws({"\"b/c\" becomes a file's name"}));
  EXPECT_THAT([&] { load("name: x\nfamilies: {}\n"); }, throws({"no family"}));
  EXPECT_THAT([&] { load(small + "model: 3\nseed: -2\n"); }, throws({"seed is -2"}));
  EXPECT_THAT(
      [&] { load("name: x\ndata: {test: {files: [a], format: pdf}}\n" + small.substr(12)); },
      throws({"study.yaml"}));
}

TEST_F(StudyFile, AQuickStudyIsSmallAndSaysSo) {
  Study study = load(small + "experiments: {seeds: {controller: 2l, seeds: [1, 2]}}\n");
  make_quick(study);
  EXPECT_LE(study.blocks, 8);
  EXPECT_LE(study.budgets, 8);
  EXPECT_EQ(study.families[0].find("2l")->updates, 2);
  EXPECT_EQ(study.families[0].find("2l")->overrides.back().first, "optimisation.grad_accum");
  EXPECT_EQ(study.families[0].find("fl")->updates, 0);  // ready: nothing to train
  EXPECT_EQ(study.experiments.seeds.seeds, (std::vector<uint64_t>{1}));
  EXPECT_EQ(study.to_json()["quick"], true);
}

TEST_F(StudyFile, SweepsMayHaveBlocksOfTheirOwn) {
  const Study without = load(small + "evaluation: {blocks: 5}\n");
  EXPECT_EQ(without.blocks_of_sweeps(), 5);
  EXPECT_FALSE(without.to_json().contains("sweep_blocks"));  // directories of before go on
  Study study = load(small + "evaluation: {blocks: 5, sweep_blocks: 0}\n");
  EXPECT_EQ(study.blocks, 5);
  EXPECT_EQ(study.blocks_of_sweeps(), 0);
  EXPECT_EQ(study.to_json()["sweep_blocks"], 0);
  make_quick(study);
  EXPECT_EQ(study.blocks_of_sweeps(), 5);
  EXPECT_THAT([&] { load(small + "evaluation: {sweep_blocks: -1}\n"); },
              throws({"line 12", "sweep_blocks is -1"}));
}

TEST_F(StudyFile, SweepsMayGoOverThePapersGrid) {
  const Study usual = load(small);
  EXPECT_EQ(usual.grid, GridRequest::Kind::automatic);
  EXPECT_FALSE(usual.to_json().contains("grid"));  // directories of before go on
  Study study = load(small + "evaluation: {grid: paper}\n");
  EXPECT_EQ(study.grid, GridRequest::Kind::paper);
  EXPECT_EQ(study.budgets, 9 * 7 * 9);
  EXPECT_EQ(study.to_json()["grid"], "paper");
  make_quick(study);
  EXPECT_EQ(study.grid, GridRequest::Kind::automatic);
  EXPECT_THAT([&] { load(small + "evaluation: {grid: fine}\n"); },
              throws({"line 12", "fine", "automatic or paper"}));
  EXPECT_THAT([&] { load(small + "evaluation: {grid: paper, budgets: 9}\n"); },
              throws({"line 12", "567", "leave out budgets"}));
}

TEST_F(StudyFile, KnobsMayHaveOtherLevelsThanThePaper) {
  const Study usual = load(small);
  EXPECT_EQ(usual.experiments.static_methods.bits, (std::vector<int>{8, 5}));
  EXPECT_FALSE(usual.to_json().contains("static"));  // directories of before go on
  EXPECT_FALSE(usual.to_json()["pollution"].contains("keep"));
  const Study study = load(small +
                           "experiments:\n"
                           "  pollution: {keep: [0.05], bits: [3, 4]}\n"
                           "  static: {prune: [0.3]}\n");
  const StudyExperiments& experiments = study.experiments;
  EXPECT_EQ(experiments.pollution.kappa, (std::vector<float>{0.05f}));
  EXPECT_EQ(experiments.pollution.bits, (std::vector<int>{3, 4}));
  EXPECT_EQ(experiments.pollution.rho, PollutionOptions().rho);
  EXPECT_EQ(experiments.static_methods.rho, (std::vector<float>{0.3f}));
  EXPECT_EQ(study.to_json()["pollution"]["bits"], Json({3, 4}));
  EXPECT_TRUE(study.to_json().contains("static"));
  const auto levels = [&](const std::string& text) {
    load(small + "experiments: {static: {" + text + "}}\n");
  };
  for (const char* wrong : {"keep: [0]", "prune: [1.5]", "bits: [1]", "bits: [1e300]"})
    EXPECT_THAT([&] { levels(wrong); }, throws({"line 12", "out of range"})) << wrong;
  EXPECT_THAT([&] { levels("bits: [4.5]"); }, throws({"line 12", "4.5 bits"}));
}

TEST_F(StudyFile, SingleAxesMayBeSweptOverBudgets) {
  const std::string single = small + "experiments: {spaces: {controllers: [fl]}, ";
  const Study without = load(single + "single: {controllers: [2l]}}\n");
  EXPECT_FALSE(without.to_json()["single"].contains("budgets"));
  const auto swept = [](const Study& study) {
    const auto names = swept_controllers(study);
    return std::ranges::find(names, "2l") != names.end();
  };
  EXPECT_FALSE(swept(without));
  const Study study = load(single + "single: {controllers: [2l], budgets: 24}}\n");
  EXPECT_TRUE(swept(study));
  EXPECT_EQ(budgets_of_sweep(study, "2l"), 24);
  EXPECT_EQ(budgets_of_sweep(study, "fl"), study.budgets);
  EXPECT_EQ(study.to_json()["single"]["budgets"], 24);
}

TEST_F(StudyFile, ATextMayBeALabelWhoseFilesComeWithTheCommand) {
  const Study study = load(
      "name: n\ndata: {test: {label: seen text}}\nfamilies: {f: {controllers: {2l: {config: "
      "a.yaml}}}}\n");
  EXPECT_TRUE(study.test.files.empty());
  EXPECT_EQ(study.test.label, "seen text");
  EXPECT_THAT(
      [&] {
        load(
            "name: n\ndata: {test: {format: documents}}\nfamilies: {f: {controllers: {2l: "
            "{config: a.yaml}}}}\n");
      },
      throws({"study.yaml", "files"}));
}

TEST(Studies, EveryControllerOfOursCanBeTrainedInSmallToo) {
  int controllers = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(test::source_dir() / "configs/studies")) {
    const Study full = load_study(entry.path());
    Study quick = full;
    make_quick(quick);
    for (const Study& study : {full, quick})
      for (const StudyFamily& family : study.families)
        for (const StudyController& controller : family.controllers) {
          if (controller.configuration.empty()) continue;
          ++controllers;
          EXPECT_NO_THROW(load_training_config(controller.configuration, controller.overrides))
              << entry.path() << " " << family.name << "/" << controller.name;
        }
  }
  EXPECT_GT(controllers, 100);
}

TEST_F(StudyFile, ItsJsonTellsStudiesApart) {
  const Json first = load(small).to_json();
  EXPECT_EQ(load(small).to_json(), first);
  EXPECT_NE(load(small + "seed: 5\n").to_json(), first);
  EXPECT_NE(load(small + "experiments: {pollution: {tail: 9}}\n").to_json(), first);
  // By what the files hold, not only by their names.
  for (const char* file : {"t.txt", "a.yaml", "made/controller.json"}) {
    write(file, "other");
    EXPECT_NE(load(small).to_json(), first) << file;
    std::filesystem::remove(dir.path() / file);
    EXPECT_THAT([&] { load(small).to_json(); }, throws({file, "cannot open"}));
    SetUp();
    EXPECT_EQ(load(small).to_json(), first);
  }
}

TEST(ShippedStudies, LoadAndNameFilesAndConfigurationsThatAreGood) {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(test::source_dir() / "configs/studies")) {
    const Study study = load_study(entry.path());
    ++count;
    for (const StudyFamily& family : study.families)
      for (const StudyController& controller : family.controllers) {
        const std::string where = entry.path().string() + " " + controller.name;
        if (controller.ready.empty())
          EXPECT_NO_THROW(load_training_config(controller.configuration, controller.overrides))
              << where;
        else
          EXPECT_TRUE(std::filesystem::exists(controller.ready)) << where;
      }
    for (const StudyText* text : {&study.train, &study.valid, &study.test})
      for (const auto& file : text->files)
        EXPECT_TRUE(std::filesystem::exists(file)) << entry.path() << " " << file;
  }
  EXPECT_GE(count, 1);
}

// Remedies differ from "none" by themselves alone, and that from the study whose controller they
// are for by nothing: what else is the same may not drift apart.
TEST(ShippedStudies, RemediesDifferFromTheControllersOfTheDefaultStudyByThemselvesAlone) {
  const auto settings = [](const Study& study, const std::string& of, const std::string& name) {
    const StudyFamily& family = *std::ranges::find(study.families, of, &StudyFamily::name);
    const StudyController& one = *family.find(name);
    return load_training_config(one.configuration, one.overrides).to_json();
  };
  const std::filesystem::path studies = test::source_dir() / "configs/studies";
  const Study remedies = load_study(studies / "remedies.yaml");
  const Study standard = load_study(studies / "default.yaml");
  EXPECT_EQ(settings(remedies, "harsh", "none"), settings(standard, "harsh", "2l"));
  EXPECT_EQ(settings(remedies, "paper", "none"), settings(standard, "paper", "2l"));
  EXPECT_EQ(settings(remedies, "keep", "none"), settings(standard, "harsh", "keep-01"));
  for (const StudyFamily& family : remedies.families) {
    const StudyController& none = *family.find("none");
    for (const StudyController& remedy : family.controllers) {
      const std::string where = family.name + " " + remedy.name;
      EXPECT_THAT(remedies.experiments.spaces.controllers, testing::Contains(remedy.name)) << where;
      EXPECT_EQ(remedy.updates, none.updates) << where;
      if (remedy.name == "none") continue;
      const Json changes = Json::diff(settings(remedies, family.name, "none"),
                                      settings(remedies, family.name, remedy.name));
      EXPECT_GE(changes.size(), 1u) << where;
      // The paper's way, where one thing is changed at a time; elsewhere they build on each other.
      if (family.name == "harsh") {
        EXPECT_LE(changes.size(), 2u) << where << changes;
      }
    }
  }
}

}  // namespace
}  // namespace sol
