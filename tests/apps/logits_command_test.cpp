// sol logits against values computed by Hugging Face transformers.
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "run_program.h"

namespace sol::test {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr size_t positions = 48, prefill = 32;

std::vector<float> read_floats(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

Json read(const fs::path& path) {
  return Json::parse(std::ifstream(path));
}

void write(const fs::path& path, const Json& content) {
  std::ofstream(path) << content;
}

double largest_difference(const Json& row, const std::vector<float>& all, size_t index) {
  double largest = 0;
  for (size_t i = 0; i < row.size(); ++i)
    largest = std::max(largest, std::abs(row[i].get<double>() - all.at(index * row.size() + i)));
  return largest;
}

class LogitsOf : public testing::TestWithParam<const char*> {};

TEST_P(LogitsOf, AgreesWithTransformers) {
  const fs::path model = test_data() / "golden" / GetParam();
  const TemporaryDirectory dir;
  const fs::path ids = dir.path() / "ids.json", out = dir.path() / "out.json";
  write(ids, {{"ids", read(model / "golden.json").at("input_ids")}});
  const RunResult result =
      run_sol({"logits", "-m", model.string(), "--ids", ids.string(), "--prefill", "32",
               "--precision", "f32", "--out", out.string()});
  ASSERT_EQ(result.code, 0) << testing::PrintToString(result);

  const Json list = read(out).at("positions");
  ASSERT_EQ(list.size(), positions - prefill + 1);
  const auto logits = read_floats(model / "golden_logits_48x320.f32");
  const auto hidden = read_floats(model / "golden_hidden_48x64.f32");
  for (size_t i = 0; i < list.size(); ++i) {
    const size_t position = prefill - 1 + i;
    EXPECT_EQ(list[i].at("position"), position);
    ASSERT_EQ(list[i].at("logits").size(), 320u);
    ASSERT_EQ(list[i].at("hidden").size(), 64u);
    EXPECT_LT(largest_difference(list[i].at("logits"), logits, position), 5e-5);
    EXPECT_LT(largest_difference(list[i].at("hidden"), hidden, position), 5e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, LogitsOf,
                         testing::Values("tiny_tied_f32", "tiny_untied_f32", "tiny_llama3rope_f32",
                                         "tiny_sharded_f32", "tiny_nohead_dim_key_f32"),
                         [](const auto& test) { return std::string(test.param); });

class LogitsCommand : public testing::Test {
 protected:
  RunResult run(const Json& ids, const Json& actions, std::vector<std::string> more = {}) {
    write(dir.path() / "ids.json", ids);
    std::vector<std::string> arguments{"logits",
                                       "-m",
                                       (test_data() / "golden/tiny_tied_f32").string(),
                                       "--ids",
                                       (dir.path() / "ids.json").string(),
                                       "--out",
                                       out.string(),
                                       "--precision",
                                       "f32"};
    if (!actions.is_discarded()) {
      write(dir.path() / "actions.json", actions);
      arguments.insert(arguments.end(), {"--actions", (dir.path() / "actions.json").string()});
    }
    if (std::find(more.begin(), more.end(), "--prefill") == more.end())
      more.insert(more.end(), {"--prefill", "20"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_sol(arguments);
  }
  Json numbers(int n) {
    Json ids = Json::array();
    for (int i = 0; i < n; ++i) ids.push_back((7 * i + 3) % 320);
    return ids;
  }
  Json positions() { return read(out).at("positions"); }

  const Json none = Json(Json::value_t::discarded);
  TemporaryDirectory dir;
  fs::path out = dir.path() / "out.json";
};

TEST_F(LogitsCommand, ActionsChangeTheStepsTheyAreNamedForAndNoEarlierOne) {
  ASSERT_EQ(run(numbers(23), none).code, 0);
  const Json dense = positions();
  ASSERT_EQ(run(numbers(23), {nullptr, "k025-s050-q4", "k100-s100-q16"}).code, 0);
  const Json acted = positions();
  ASSERT_EQ(acted.size(), 4u);
  EXPECT_EQ(acted[0], dense[0]);
  EXPECT_EQ(acted[1], dense[1]);
  EXPECT_NE(acted[2].at("logits"), dense[2].at("logits"));
  EXPECT_NE(acted[3].at("logits"), dense[3].at("logits"));  // through the cache
  // The page rule matters.
  ASSERT_EQ(run(numbers(23), {nullptr, "k025-s050-q4", "k100-s100-q16"}, {"--page-size", "7"}).code,
            0);
  EXPECT_NE(positions()[2].at("logits"), acted[2].at("logits"));
  ASSERT_EQ(run(numbers(23), {nullptr, "k025-s050-q4", "k100-s100-q16"}, {"--no-sinks"}).code, 0);
  EXPECT_NE(positions()[2].at("logits"), acted[2].at("logits"));
}

TEST_F(LogitsCommand, BadRequestsNameWhatIsWrongAndWriteNothing) {
  const auto fails = [&](const RunResult& result, const std::vector<std::string>& words) {
    expect_error(result, words);
    EXPECT_FALSE(fs::exists(out));
  };
  fails(run(numbers(23), Json{"k050-s070-q8"}), {"actions.json", "1 actions for 3"});
  fails(run(numbers(23), {nullptr, nullptr, nullptr, nullptr}), {"4 actions for 3"});
  fails(run(numbers(23), {nullptr, "k050-s070", nullptr}), {"entry 1", "k050-s070"});
  fails(run(numbers(23), {nullptr, "k150-s070-q8", nullptr}), {"entry 1"});
  fails(run(numbers(23), {nullptr, 5, nullptr}), {"entry 1", "5"});
  fails(run(numbers(23), none, {"--prefill", "24"}), {"24", "23 ids"});
  fails(run(numbers(23), none, {"--prefill", "0"}), {"prefill"});
  fails(run({1, 2, 320}, none, {"--prefill", "2"}), {"entry 2", "320"});
  fails(run({1, -2, 3}, none, {"--prefill", "2"}), {"entry 1", "-2"});
  fails(run({1, 2.5, 3}, none, {"--prefill", "2"}), {"entry 1", "2.5"});
  fails(run({{"tokens", {1, 2}}}, none, {"--prefill", "2"}), {"ids.json", "ids"});
  fails(run(numbers(257), none), {"256"});  // the model's context
  fails(run(numbers(23), none, {"--page-size", "0"}), {"page-size"});
}

TEST_F(LogitsCommand, UnwritablePlacesAndFullDisksLeaveNothing) {
  out = dir.path() / "ids.json" / "out.json";  // below a file
  expect_error(run(numbers(23), none), {"ids.json"});

  out = dir.path() / "full.json";
  write(dir.path() / "ids.json", numbers(23));
  const RunResult result =
      run_sol({"logits", "-m", (test_data() / "golden/tiny_tied_f32").string(), "--ids",
               (dir.path() / "ids.json").string(), "--out", out.string(), "--prefill", "20"},
              {.file_size_limit = 4096});
  expect_error(result, {"full.json"});
  for (const auto& entry : fs::directory_iterator(dir.path()))
    EXPECT_EQ(entry.path().filename(), "ids.json");
}

}  // namespace
}  // namespace sol::test
