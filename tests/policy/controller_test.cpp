#include "sol/controller.h"

#include <fstream>

#include "base/file_io.h"
#include "base/hash.h"
#include "base/json.h"
#include "file_size_limit.h"
#include "policy/cost_table.h"
#include "support_policy.h"

namespace sol {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::FileSizeLimit;
using test::TemporaryDirectory;
using ::testing::HasSubstr;

PolicyNetworkShape shape() {
  return {.hidden_size = 12,
          .actions = 8,
          .d_model = 16,
          .heads = 2,
          .layers = 2,
          .mlp_ratio = 1.5,
          .action_dim = 4,
          .max_length = 16};
}

ControllerSettings settings() {
  ControllerSettings s;
  s.horizon = 16;
  s.sequence.page_size = 8;
  s.sequence.sinks = 3;
  s.sequence.window = 5;
  s.ranges.kappa = {0.1, 1.0};
  s.ranges.rho = {0.6, 1.0};
  s.ranges.eta = {0.3125, 1.0};
  s.frontier = {{0.4, {0.1f, 0.6f, 0.3125f}, 30.5},
                {0.6, {0.3f, 0.8f, 0.7f}, 22.25},
                {1.0, {1.0f, 1.0f, 1.0f}, 20.0}};
  s.model_fingerprint = "0123456789abcdef0123456789abcdef";
  s.training_json = R"({"updates":1560,"note":"é"})";
  return s;
}

Controller controller(uint64_t seed = 5, const ControllerSettings& given = settings()) {
  return Controller(
      test::two_levels(), given,
      std::make_shared<const PolicyNetwork>(shape(), test::random_parameters(shape(), seed)));
}

// Not the library's atomic writing: these tests damage files thousands of times, without flushing.
void overwrite(const fs::path& path, std::string_view content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  ASSERT_TRUE(file.flush());
}

fs::path weights_of(const fs::path& dir) {
  return dir / json_get<std::string>(read_json(dir / "controller.json"), "weights", "test");
}

bool same_parameters(const Controller& a, const Controller& b) {
  const Parameters &left = a.network().parameters(), &right = b.network().parameters();
  if (left.size() != right.size()) return false;
  for (const auto& [name, parameter] : left)
    if (right.at(name).shape != parameter.shape || right.at(name).values != parameter.values)
      return false;
  return true;
}

TEST(Controller, SavesAndLoadsEverything) {
  const TemporaryDirectory dir;
  const fs::path path = dir.path() / "new" / "controller";
  const Controller saved = controller();
  saved.save(path);
  const Controller loaded = Controller::load(path);
  EXPECT_EQ(loaded.space(), saved.space());
  EXPECT_EQ(loaded.network().shape(), saved.network().shape());
  EXPECT_TRUE(same_parameters(loaded, saved));
  const ControllerSettings &a = loaded.settings(), &b = saved.settings();
  EXPECT_EQ(a.horizon, b.horizon);
  EXPECT_EQ(a.sequence.page_size, b.sequence.page_size);
  EXPECT_EQ(a.sequence.sinks, b.sequence.sinks);
  EXPECT_EQ(a.sequence.window, b.sequence.window);
  EXPECT_EQ(a.ranges.kappa.low, b.ranges.kappa.low);
  EXPECT_EQ(a.ranges.rho.high, b.ranges.rho.high);
  EXPECT_EQ(a.ranges.eta.low, b.ranges.eta.low);
  EXPECT_EQ(a.model_fingerprint, b.model_fingerprint);
  EXPECT_EQ(a.training_json, b.training_json);
  ASSERT_EQ(a.frontier.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(a.frontier[i].net_keep, b.frontier[i].net_keep);
    EXPECT_EQ(a.frontier[i].budget, b.frontier[i].budget);
    EXPECT_EQ(a.frontier[i].perplexity, b.frontier[i].perplexity);
  }
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(path)) files.push_back(entry.path().filename());
  EXPECT_THAT(files, testing::UnorderedElementsAre("controller.json",
                                                   weights_of(path).filename().string()));
  EXPECT_EQ(loaded.greedy_policy()->name(), "learned");
}

TEST(Controller, ASecondSaveReplacesTheFirstAndLeavesOtherFilesAlone) {
  const TemporaryDirectory dir;
  controller(5).save(dir.path());
  write_file_atomically(dir.path() / "notes.txt", "mine");
  controller(6).save(dir.path());
  EXPECT_TRUE(same_parameters(Controller::load(dir.path()), controller(6)));
  EXPECT_EQ(read_file(dir.path() / "notes.txt"), "mine");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), {}), 3);
}

TEST(Controller, ACrashAtAnyMomentOfASaveLeavesTheOldOneOrTheNewOne) {
  const TemporaryDirectory dir, other;
  controller(5).save(dir.path());
  controller(6).save(other.path());
  const fs::path old_weights = weights_of(dir.path()), new_weights = weights_of(other.path());
  // The new weights are there, controller.json is still the old one.
  fs::copy_file(new_weights, dir.path() / new_weights.filename());
  EXPECT_TRUE(same_parameters(Controller::load(dir.path()), controller(5)));
  // controller.json is the new one, the old weights have not been removed yet.
  fs::copy_file(other.path() / "controller.json", dir.path() / "controller.json",
                fs::copy_options::overwrite_existing);
  EXPECT_TRUE(same_parameters(Controller::load(dir.path()), controller(6)));
  EXPECT_TRUE(fs::exists(old_weights));
  controller(6).save(dir.path());
  EXPECT_FALSE(fs::exists(old_weights));
}

TEST(Controller, AFullDiskLeavesTheOldOneAndNothingElse) {
  const TemporaryDirectory dir;
  const fs::path old = dir.path() / "old", fresh = dir.path() / "fresh";
  controller(5).save(old);
  const auto weights = fs::file_size(weights_of(old));
  const auto text = fs::file_size(old / "controller.json");
  ASSERT_GT(weights, text);
  ControllerSettings long_record = settings();
  long_record.training_json = "\"" + std::string(weights, 'x') + "\"";
  const Controller longer = controller(6, long_record);
  for (const auto& [limit, what] : {std::pair{weights / 2, "weights"}, {weights, "settings"}}) {
    const FileSizeLimit full(limit);
    EXPECT_THAT(error_of([&] { longer.save(old); }), HasSubstr("cannot write")) << what;
    EXPECT_THAT(error_of([&] { longer.save(fresh); }), HasSubstr("cannot write")) << what;
  }
  EXPECT_TRUE(same_parameters(Controller::load(old), controller(5)));
  EXPECT_FALSE(fs::exists(fresh));
  EXPECT_EQ(std::distance(fs::directory_iterator(old), fs::directory_iterator()), 2);
}

TEST(Controller, SavingWhereNothingCanBeWrittenIsAnError) {
  const TemporaryDirectory dir;
  write_file_atomically(dir.path() / "file", "");
  EXPECT_THAT(error_of([&] { controller().save(dir.path() / "file"); }), HasSubstr("file"));
  EXPECT_THAT(error_of([&] { controller().save(dir.path() / "file" / "sub"); }), HasSubstr("file"));
  EXPECT_THAT(error_of([&] { controller().save("/proc/no-such-place"); }), HasSubstr("/proc"));
  const fs::path too_long = dir.path() / std::string(300, 'x');
  EXPECT_THAT(error_of([&] { controller().save(too_long); }), HasSubstr("xxx"));
  EXPECT_THAT(error_of([&] { Controller::load(too_long); }), HasSubstr("xxx"));
}

TEST(Controller, SettingsThatLoadWouldRejectAreRefused) {
  Controller c = controller();
  std::vector<FrontierPoint> frontier = settings().frontier;
  frontier[1].perplexity = NAN;
  EXPECT_THAT(error_of([&] { c.set_frontier(frontier); }), HasSubstr("frontier point 1"));
  EXPECT_EQ(c.settings().frontier[1].perplexity, 22.25);
  ControllerSettings bad = settings();
  bad.training_json = "{";
  EXPECT_THAT(error_of([&] { controller(5, bad); }), HasSubstr("training record"));
}

// A saved controller whose settings are edited before loading.
class ControllerFiles : public testing::Test {
 protected:
  void SetUp() override { controller().save(dir_.path()); }
  fs::path json_path() const { return dir_.path() / "controller.json"; }
  fs::path weights_path() const { return weights_of(dir_.path()); }
  std::string load_error() const {
    return error_of([&] { Controller::load(dir_.path()); });
  }
  std::string edited(const std::function<void(Json&)>& edit) {
    const Json original = read_json(json_path());
    Json json = original;
    edit(json);
    overwrite(json_path(), json.dump());
    const std::string message = load_error();
    overwrite(json_path(), original.dump());
    return message;
  }
  // Replaces the weights and the checksum, so that only the weights themselves can be wrong.
  std::string with_parameters(const std::function<void(Parameters&)>& edit) {
    Parameters parameters = test::random_parameters(shape(), 5);
    edit(parameters);
    std::vector<TensorToWrite> tensors;
    for (const auto& [name, p] : parameters)
      tensors.push_back({name, DType::f32, p.shape, std::as_bytes(std::span(p.values))});
    write_safetensors(weights_path(), tensors);
    return edited([&](Json& j) { j["weights_checksum"] = parameters_checksum(parameters); });
  }
  TemporaryDirectory dir_;
};

TEST_F(ControllerFiles, EveryFieldIsRequiredAndTyped) {
  const Json json = read_json(json_path());
  for (const auto& [field, value] : json.items()) {
    if (field == "training") continue;  // for people only
    const std::string name = field;
    EXPECT_THAT(edited([&](Json& j) { j.erase(name); }), HasSubstr("controller.json")) << name;
    EXPECT_THAT(edited([&](Json& j) { j[name] = nullptr; }), HasSubstr("controller.json")) << name;
    EXPECT_THAT(edited([&](Json& j) { j[name] = true; }), HasSubstr("controller.json")) << name;
    EXPECT_THAT(edited([&](Json& j) { j[name] = Json::array({Json::array()}); }),
                HasSubstr("controller.json"))
        << name;
  }
  for (const auto& [field, value] : json["network"].items()) {
    const std::string name = field;
    EXPECT_THAT(edited([&](Json& j) { j["network"].erase(name); }), HasSubstr(name));
    EXPECT_THAT(edited([&](Json& j) { j["network"][name] = "wide"; }), HasSubstr(name));
    EXPECT_THAT(edited([&](Json& j) { j["network"][name] = -1; }), HasSubstr(name));
  }
  for (const auto& [field, value] : json["frontier"][1].items()) {
    const std::string name = field;
    EXPECT_THAT(edited([&](Json& j) { j["frontier"][1].erase(name); }),
                HasSubstr("frontier point 1"));
    EXPECT_THAT(edited([&](Json& j) { j["frontier"][1][name] = -3; }),
                HasSubstr("frontier point 1"));
  }
  EXPECT_NO_THROW(Controller::load(dir_.path()));
  overwrite(json_path(), "[1]");
  EXPECT_THAT(load_error(), HasSubstr("controller.json"));
}

TEST_F(ControllerFiles, ValuesThatMakeNoSenseAreNamed) {
  for (const Json& bad : {Json(-1), Json(1e300), Json("3"), Json(nullptr)})
    EXPECT_THAT(edited([&](Json& j) {
                  j["enforced_budgets"] = true;
                  j["budget_prior"] = bad;
                }),
                HasSubstr("prior"))
        << bad.dump();
  EXPECT_THAT(edited([](Json& j) { j["budget_prior"] = 3; }),
              HasSubstr("without enforced budgets"));
  EXPECT_THAT(edited([](Json& j) { j["format_version"] = Controller::format_version + 1; }),
              HasSubstr("format version 7, but this program reads versions 1 to 6"));
  EXPECT_THAT(edited([](Json& j) { j["format_version"] = 0; }), HasSubstr("format version 0"));
  EXPECT_THAT(edited([](Json& j) { j["weights"] = "../elsewhere.safetensors"; }),
              HasSubstr("elsewhere"));
  EXPECT_THAT(edited([](Json& j) { j["weights"] = "controller-../../../elsewhe.safetensors"; }),
              HasSubstr("which no file of weights is called"));
  EXPECT_THAT(edited([](Json& j) { j["kind"] = "something else"; }), HasSubstr("kind"));
  EXPECT_THAT(edited([](Json& j) { j["horizon"] = 0; }), HasSubstr("horizon"));
  EXPECT_THAT(edited([](Json& j) { j["horizon"] = 17; }), HasSubstr("16 positions"));
  EXPECT_THAT(edited([](Json& j) { j["horizon"] = 1e300; }), HasSubstr("horizon"));
  EXPECT_THAT(edited([](Json& j) { j["page_size"] = -4; }), HasSubstr("page_size"));
  EXPECT_THAT(edited([](Json& j) { j["sinks"] = 2147483647; }), HasSubstr("sinks"));
  EXPECT_THAT(edited([](Json& j) { j["budget_ranges"]["rho"] = {0.9, 0.5}; }), HasSubstr("rho"));
  EXPECT_THAT(edited([](Json& j) { j["budget_ranges"]["eta"] = {0.9, 1.5}; }), HasSubstr("eta"));
  EXPECT_THAT(edited([](Json& j) { j["budget_ranges"]["kappa"] = {0.9}; }), HasSubstr("kappa"));
  EXPECT_THAT(edited([](Json& j) {
                j["action_space"]["prune"] = {"s60", "s60"};
              }),
              HasSubstr("\"s60\" and \"s60\""));
  EXPECT_THAT(edited([](Json& j) {
                j["action_space"]["quant"] = {"q5", "q7", "q16"};
              }),
              HasSubstr("8 actions, the action space has 12"));
  EXPECT_THAT(edited([](Json& j) { j["frontier"][1]["net_keep"] = 0.4; }), HasSubstr("ascend"));
  EXPECT_THAT(edited([](Json& j) { j["network"]["layers"] = 3; }), HasSubstr("blocks.2"));
  EXPECT_THAT(edited([](Json& j) { j["network"]["layers"] = 1; }), HasSubstr("blocks.1"));
  EXPECT_THAT(edited([](Json& j) { j["network"]["hidden_size"] = 1000000; }),
              HasSubstr("obs_proj.weight"));
}

TEST_F(ControllerFiles, TruncatedFilesAreErrorsAtEveryLength) {
  const std::string json = read_file(json_path());
  for (size_t n = 0; n + 2 < json.size(); n += 37) {
    overwrite(json_path(), json.substr(0, n));
    EXPECT_THAT(load_error(), HasSubstr("controller.json")) << n;
  }
  overwrite(json_path(), json);
  const fs::path path = weights_path();
  const std::string weights = read_file(path);
  for (size_t n = 0; n < weights.size(); n += 997) {
    overwrite(path, weights.substr(0, n));
    EXPECT_THAT(load_error(), HasSubstr(path.filename().string())) << n;
  }
}

TEST_F(ControllerFiles, MissingFilesAreNamed) {
  EXPECT_THAT(error_of([&] { Controller::load(dir_.path() / "none"); }), HasSubstr("none"));
  EXPECT_THAT(error_of([&] { Controller::load(json_path()); }), HasSubstr("not a directory"));
  const fs::path weights = weights_path();
  fs::remove(weights);
  EXPECT_THAT(load_error(), HasSubstr(weights.filename().string()));
  fs::remove(json_path());
  EXPECT_THAT(load_error(), HasSubstr("controller.json"));
}

TEST_F(ControllerFiles, FilesOfTwoSavesAreNotMixed) {
  const TemporaryDirectory other;
  controller(6).save(other.path());
  fs::copy_file(weights_of(other.path()), weights_path(), fs::copy_options::overwrite_existing);
  EXPECT_THAT(load_error(), HasSubstr("checksum"));
}

TEST_F(ControllerFiles, VersionOneIsStillRead) {
  const fs::path weights = dir_.path() / "controller.safetensors";
  fs::rename(weights_path(), weights);
  Json json = read_json(json_path());
  json["format_version"] = 1;
  json.erase("weights");
  json["weights_checksum"] = hash_128(read_file(weights));
  overwrite(json_path(), json.dump());
  const Controller old = Controller::load(dir_.path());
  EXPECT_TRUE(same_parameters(old, controller(5)));
  json["weights_checksum"] = std::string(32, '0');
  overwrite(json_path(), json.dump());
  EXPECT_THAT(load_error(), HasSubstr("checksum"));
  old.save(dir_.path());
  EXPECT_FALSE(fs::exists(weights));
  EXPECT_EQ(read_json(json_path())["format_version"], 2);
}

TEST_F(ControllerFiles, BadWeightsAreNamed) {
  EXPECT_THAT(with_parameters([](Parameters& p) { p.erase("v.bias"); }), HasSubstr("v.bias"));
  EXPECT_THAT(with_parameters([](Parameters& p) {
                p["extra"] = {{1}, {0.0f}};
              }),
              HasSubstr("extra"));
  EXPECT_THAT(with_parameters([](Parameters& p) {
                p["ln_f.bias"] = {{2, 8}, std::vector<float>(16)};
              }),
              HasSubstr("ln_f.bias"));
  EXPECT_THAT(with_parameters([](Parameters& p) { p["pi.weight"].values[7] = NAN; }),
              HasSubstr("\"pi.weight\" has nan at element 7"));
  EXPECT_THAT(with_parameters([](Parameters& p) { p["pi.bias"].values[0] = -INFINITY; }),
              HasSubstr("pi.bias"));
}

TEST(Controller, RejectsANetworkThatDoesNotFit) {
  const auto network =
      std::make_shared<const PolicyNetwork>(shape(), test::random_parameters(shape(), 1));
  const ActionSpace other({0.1f, 1.0f}, {1.0f}, {16});
  EXPECT_THAT(error_of([&] { Controller(other, settings(), network); }),
              HasSubstr("8 actions, the action space has 2"));
  ControllerSettings s = settings();
  s.horizon = 17;
  EXPECT_THAT(error_of([&] { Controller(test::two_levels(), s, network); }), HasSubstr("horizon"));
}

TEST(Controller, AnotherModelIsAnErrorThatNamesBoth) {
  const Controller c = controller();
  EXPECT_NO_THROW(c.require_model(settings().model_fingerprint, "models/default"));
  EXPECT_EQ(c.unlike_training({}), "");
  EXPECT_EQ(c.unlike_training({"prune-down", "channel-scores wina"}),
            "this controller was trained with no option outside the paper, and is used with "
            "--prune-down --channel-scores wina");
  const std::string message = error_of([&] { c.require_model("ffff", "models/other"); });
  EXPECT_THAT(message, HasSubstr("ffff"));
  EXPECT_THAT(message, HasSubstr(settings().model_fingerprint));
  EXPECT_THAT(message, HasSubstr("models/other"));
}

TEST(Controller, OneNetKeepRateBecomesATripleByTheFrontier) {
  Controller c = controller();
  EXPECT_EQ(c.budget_for_net_keep(0.4), (Budget{0.1f, 0.6f, 0.3125f}));
  EXPECT_EQ(c.budget_for_net_keep(0.6), (Budget{0.3f, 0.8f, 0.7f}));
  EXPECT_EQ(c.budget_for_net_keep(1.0), (Budget{1.0f, 1.0f, 1.0f}));
  const Budget between = c.budget_for_net_keep(0.55);
  EXPECT_NEAR(between.kappa, 0.25f, 1e-6f);
  EXPECT_NEAR(between.rho, 0.75f, 1e-6f);
  EXPECT_NEAR(between.eta, 0.603125f, 1e-6f);
  for (const double outside : {0.39, 1.01, -1.0, static_cast<double>(NAN)})
    EXPECT_THAT(error_of([&] { c.budget_for_net_keep(outside); }), HasSubstr("0.4..1"));
  c.set_frontier({});
  EXPECT_THAT(error_of([&] { c.budget_for_net_keep(0.5); }), HasSubstr("no validation frontier"));
}

TEST(BudgetRange, ContainsItsEndsAsFloat32) {
  const BudgetRange range{0.7, 0.8};  // 0.7f is less, 0.8f more
  for (const float inside : {0.7f, 0.75f, 0.8f}) EXPECT_TRUE(range.contains(inside)) << inside;
  for (const float outside : {0.6999f, 0.8001f, NAN}) EXPECT_FALSE(range.contains(outside));
}

TEST(Controller, BudgetsOutsideTheTrainedRangesAreFlagged) {
  const Controller c = controller();
  EXPECT_EQ(c.outside_trained_ranges({0.1f, 0.6f, 0.3125f}), "");
  EXPECT_EQ(c.outside_trained_ranges({1.0f, 1.0f, 1.0f}), "");
  const std::string one = c.outside_trained_ranges({0.05f, 0.8f, 0.5f});
  EXPECT_THAT(one, HasSubstr("kappa = 0.05"));
  EXPECT_THAT(one, HasSubstr("0.1..1"));
  EXPECT_THAT(one, testing::Not(HasSubstr("rho")));
  const std::string two = c.outside_trained_ranges({0.05f, 0.5f, 0.5f});
  EXPECT_THAT(two, HasSubstr("kappa"));
  EXPECT_THAT(two, HasSubstr("rho = 0.5"));
}

// Four actions that save time, by a table of one length.
Controller timed_controller(const std::function<void(ControllerSettings&)>& edit = {}) {
  PolicyNetworkShape four = shape();
  four.actions = 4;
  ControllerSettings s = settings();
  s.frontier.clear();
  s.ranges.eta = {1.0, 1.0};
  s.time = {0.4, 0.9};
  s.costs = std::make_shared<const CostTable>(
      CostTable(16, {0.5f}, {{100, 10, 16, {2}}, {300, 20, 16, {6}}}, {4}));
  if (edit) edit(s);
  return Controller(ActionSpace({0.5f, 1.0f}, {0.5f, 1.0f}, {16}), s,
                    std::make_shared<const PolicyNetwork>(four, test::random_parameters(four, 5)));
}

TEST(Controller, KeepsThatBudgetsAreEnforced) {
  const TemporaryDirectory dir;
  ControllerSettings s = settings();
  EXPECT_FALSE(s.enforced);
  controller().save(dir.path());
  EXPECT_EQ(read_json(dir.path() / "controller.json")["format_version"], 2);
  EXPECT_FALSE(Controller::load(dir.path()).settings().enforced);
  s.enforced = true;
  controller(5, s).save(dir.path());
  EXPECT_EQ(read_json(dir.path() / "controller.json")["format_version"], 4);
  EXPECT_TRUE(Controller::load(dir.path()).settings().enforced);
  EXPECT_EQ(Controller::load(dir.path()).settings().budget_prior, 0.0);
  s.budget_prior = 3.0;
  controller(5, s).save(dir.path());
  EXPECT_EQ(read_json(dir.path() / "controller.json")["format_version"], 5);
  EXPECT_EQ(Controller::load(dir.path()).settings().budget_prior, 3.0);
  s.budget_prior = -1.0;
  EXPECT_THAT(error_of([&] { controller(5, s); }), HasSubstr("a prior of -1 must lie in 0..1000"));
  s = settings();
  s.budget_prior = 3.0;
  EXPECT_THAT(error_of([&] { controller(5, s); }), HasSubstr("without enforced budgets"));
  EXPECT_THAT(error_of([] { timed_controller([](ControllerSettings& t) { t.enforced = true; }); }),
              HasSubstr("a budget of time cannot be enforced"));
}

TEST(Controller, KeepsWhetherItIsShownTheSurprisal) {
  const TemporaryDirectory dir;
  PolicyNetworkShape shape = controller().network().shape();
  EXPECT_FALSE(shape.surprisal);
  EXPECT_FALSE(controller().greedy_policy()->needs().surprisal);
  shape.surprisal = true;
  const Controller shown(
      controller().space(), settings(),
      std::make_shared<const PolicyNetwork>(shape, test::random_parameters(shape, 5)));
  EXPECT_TRUE(shown.greedy_policy()->needs().surprisal);
  shown.save(dir.path());
  EXPECT_EQ(read_json(dir.path() / "controller.json")["format_version"], 6);
  const Controller loaded = Controller::load(dir.path());
  EXPECT_EQ(loaded.network().shape(), shape);
  EXPECT_TRUE(same_parameters(loaded, shown));
  Json json = read_json(dir.path() / "controller.json");
  const auto error_with = [&](const Json& value) {
    json["network"]["surprisal"] = value;
    overwrite(dir.path() / "controller.json", json.dump());
    return error_of([&] { Controller::load(dir.path()); });
  };
  EXPECT_THAT(error_with("yes"), HasSubstr("surprisal"));
  EXPECT_THAT(error_with(false), HasSubstr("scalar_proj.0.weight\" is [64, 9], expected [64, 8]"));
}

TEST(Controller, ItsPolicyFavoursWhatIsNearToTheBudget) {
  const std::vector<float> hidden(12, 0.25f), embedding(12, -0.5f);
  Observation seen;
  seen.hidden = hidden.data();
  seen.embedding = embedding.data();
  seen.key_count = 1000;
  // A third of the way, three quarters, nine tenths between each axis' two levels.
  seen.features = {1.0f / 16, 1.0f, 0.4f, 0.9f, 0.93f, 0.0f, 0.0f, 0.0f};
  const auto first_action = [&](uint64_t seed, double prior) {
    ControllerSettings s = settings();
    s.enforced = true;
    s.budget_prior = prior;
    const auto policy = controller(seed, s).greedy_policy();
    const auto state = policy->begin({0.4f, 0.9f, 0.93f}, 16, {});
    PolicyStep step{.state = state.get(), .observation = &seen};
    policy->next({&step, 1});
    return step.action;
  };
  int otherwise = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    EXPECT_EQ(first_action(seed, 1000), 3) << seed;  // κ low, ρ and bits high
    otherwise += first_action(seed, 0) != 3;
  }
  EXPECT_GT(otherwise, 0);
}

TEST(Controller, KeepsTheTimesItWasTrainedFor) {
  const TemporaryDirectory dir;
  timed_controller().save(dir.path());
  EXPECT_EQ(read_json(dir.path() / "controller.json")["format_version"], 3);
  const Controller loaded = Controller::load(dir.path());
  ASSERT_TRUE(loaded.settings().costs);
  EXPECT_EQ(loaded.settings().costs->to_json(), timed_controller().settings().costs->to_json());
  EXPECT_EQ(loaded.settings().time.low, 0.4);
  EXPECT_EQ(loaded.settings().time.high, 0.9);
  EXPECT_EQ(loaded.greedy_policy()->costs(), loaded.settings().costs.get());
  EXPECT_EQ(controller().greedy_policy()->costs(), nullptr);

  // 8 ms at 100 keys, 1 of them for the refresh; 4.5 ms would be 0.35, which was not trained.
  EXPECT_EQ(loaded.budget_for_ms(8, 100), time_budget(0.7f));
  EXPECT_EQ(loaded.budget_for_ms(4.5, 100), time_budget(0.4f));
  EXPECT_EQ(loaded.budget_for_ms(10, 100), time_budget(1.0f));  // dense, which needs no policy
  EXPECT_EQ(loaded.outside_trained_ranges(time_budget(0.9f)), "");
  EXPECT_THAT(loaded.outside_trained_ranges(time_budget(0.3f)),
              HasSubstr("0.3 of the dense time is outside the trained range 0.4..0.9"));
  EXPECT_THAT(error_of([&] { loaded.budget_for_net_keep(0.5); }), HasSubstr("trained for times"));
}

TEST(Controller, TimesThatMakeNoSenseAreRefused) {
  const auto refused = [](const std::function<void(ControllerSettings&)>& edit) {
    return error_of([&] { timed_controller(edit); });
  };
  EXPECT_THAT(refused([](ControllerSettings& s) { s.time = {0.9, 0.4}; }), HasSubstr("the time"));
  EXPECT_THAT(refused([](ControllerSettings& s) { s.horizon = 8; }), HasSubstr("16 steps"));
  EXPECT_THAT(refused([](ControllerSettings& s) { s.frontier = settings().frontier; }),
              HasSubstr("no frontier"));
  Controller timed = timed_controller();
  EXPECT_THAT(error_of([&] { timed.set_frontier(settings().frontier); }), HasSubstr("no frontier"));
  ControllerSettings with_bits = settings();
  with_bits.frontier.clear();
  with_bits.costs = timed.settings().costs;
  EXPECT_THAT(error_of([&] { controller(5, with_bits); }), HasSubstr("bits save no time"));

  const TemporaryDirectory dir;
  timed.save(dir.path());
  const auto edited = [&](const std::function<void(Json&)>& edit) {
    Json json = read_json(dir.path() / "controller.json");
    edit(json);
    write_file_atomically(dir.path() / "controller.json", json.dump());
    const std::string text = error_of([&] { Controller::load(dir.path()); });
    timed.save(dir.path());
    return text;
  };
  EXPECT_THAT(edited([](Json& j) { j.erase("time_range"); }), HasSubstr("time_range"));
  EXPECT_THAT(edited([](Json& j) { j["costs"]["shares"] = {2.0}; }), HasSubstr("shares"));
  EXPECT_THAT(edited([](Json& j) { j["costs"] = 3; }), HasSubstr("costs"));
}

}  // namespace
}  // namespace sol
