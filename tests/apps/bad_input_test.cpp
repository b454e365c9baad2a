// Every kind of bad input a user may meet, through the whole program: a clear message that names
// the file, a non-zero exit, nothing half-written, no crash.
#include <sys/stat.h>

#include <cmath>
#include <fstream>

#include "base/file_io.h"
#include "base/json.h"
#include "made_controller.h"
#include "model/model_files.h"

namespace sol::test {
namespace {

namespace fs = std::filesystem;

class BadInput : public testing::Test {
 protected:
  // A copy of a golden model that a test may spoil.
  fs::path copied_model(const std::string& name = "tiny_tied_f32") {
    const fs::path copy = dir.path() / "model";
    fs::remove_all(copy);
    fs::copy(golden(name), copy);
    return copy;
  }
  fs::path file(const std::string& name, const std::string& content) {
    std::ofstream(dir.path() / name, std::ios::binary) << content;
    return dir.path() / name;
  }
  TemporaryDirectory dir;
};

TEST_F(BadInput, SafetensorsHeaders) {
  const fs::path model = copied_model();
  const fs::path weights = model / "model.safetensors";
  const std::string good = read_file(weights);
  uint64_t header_size = 0;
  std::memcpy(&header_size, good.data(), sizeof(header_size));

  const auto with_length = [&](uint64_t length) {
    std::string bytes = good;
    std::memcpy(bytes.data(), &length, sizeof(length));
    return bytes;
  };
  const auto tensor = [](const char* shape, const char* offsets, size_t data) {
    return safetensors_bytes(std::string(R"({"model.norm.weight":{"dtype":"F32","shape":)") +
                                 shape + R"(,"data_offsets":)" + offsets + "}}",
                             data);
  };
  const std::string two = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                          R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})";
  const std::map<std::string, std::string> spoiled{
      {"empty", ""},
      {"shorter than its length field", "abc"},
      {"truncated in the header", good.substr(0, 8 + header_size / 2)},
      {"truncated in the data", good.substr(0, good.size() - 100)},
      {"with bytes behind the data", good + "more"},
      {"header length 0", with_length(0)},
      {"header length beyond the file", with_length(good.size())},
      {"header length near 2^63", with_length((uint64_t{1} << 63) - 4)},
      {"header length near 2^64", with_length(~uint64_t{0} - 7)},
      {"not JSON", safetensors_bytes("{\"a\":", 8)},
      {"deeply nested JSON", safetensors_bytes(std::string(200000, '['), 8)},
      {"offsets reversed", tensor("[2]", "[8,0]", 8)},
      {"offsets negative", tensor("[2]", "[-8,0]", 8)},
      {"offsets that disagree with the shape", tensor("[2]", "[0,4]", 4)},
      {"offsets beyond the file", tensor("[4]", "[0,16]", 8)},
      {"a shape whose product wraps to 8 bytes", tensor("[4294967296,4294967296,2]", "[0,8]", 8)},
      {"a negative dimension", tensor("[-2,-1]", "[0,8]", 8)},
      {"overlapping tensors", safetensors_bytes(two, 12)},
  };
  for (const auto& [what, bytes] : spoiled) {
    SCOPED_TRACE(what);
    std::ofstream(weights, std::ios::binary) << bytes;
    const RunResult result = run_sol({"inspect", model.string()});
    expect_error(result, {"sol: ", "model.safetensors"});
    EXPECT_TRUE(result.out.empty());
  }
}

TEST_F(BadInput, AConfigThatContradictsTheTensorsOrIsUnknown) {
  const fs::path model = copied_model();
  const Json good = read_json(model / "config.json");
  const auto fails = [&](const char* field, const Json& value,
                         const std::vector<std::string>& words) {
    SCOPED_TRACE(field);
    Json spoiled = good;
    spoiled[field] = value;
    std::ofstream(model / "config.json") << spoiled;
    expect_error(run_sol({"inspect", model.string()}), words);
  };
  fails("hidden_size", 96, {"model"});
  fails("intermediate_size", 129, {"129"});
  fails("vocab_size", 321, {"321"});
  fails("num_hidden_layers", 4, {"layers.3"});
  fails("num_key_value_heads", 3, {"config.json", "num_key_value_heads"});
  fails("num_attention_heads", 0, {"config.json", "num_attention_heads"});
  fails("hidden_size", -64, {"config.json", "hidden_size"});
  fails("hidden_size", "wide", {"config.json", "hidden_size"});
  fails("model_type", "mamba", {"config.json", "mamba"});
  fails("attention_bias", true, {"config.json", "attention_bias"});
  fails("hidden_act", "gelu", {"config.json", "gelu"});
  fails("rope_scaling", {{"rope_type", "yarn"}, {"factor", 2.0}}, {"config.json", "yarn"});
  std::ofstream(model / "config.json") << "{";
  expect_error(run_sol({"inspect", model.string()}), {"config.json"});
  fs::remove(model / "config.json");
  expect_error(run_sol({"inspect", model.string()}), {"config.json"});
}

TEST_F(BadInput, PipesAndCircularLinks) {
  for (const char* name : {"config.json", "model.safetensors"}) {
    const fs::path model = copied_model();
    fs::remove(model / name);
    ASSERT_EQ(mkfifo((model / name).c_str(), 0600), 0);
    expect_error(run_sol({"inspect", model.string()}), {name, "not a regular file"});
    fs::remove(model / name);
    fs::create_symlink(model / name, model / name);
    expect_error(run_sol({"inspect", model.string()}), {name, "symbolic links"});
  }
}

TEST_F(BadInput, AKeyTwiceInAConfiguration) {
  const fs::path model = copied_model();
  std::string text = read_file(model / "config.json");
  text.insert(text.find('{') + 1, "\"hidden_size\": 64,");
  std::ofstream(model / "config.json") << text;
  expect_error(run_sol({"inspect", model.string()}), {"config.json", "hidden_size", "twice"});
}

TEST_F(BadInput, OutputsThatCannotBeWrittenAreFoundBeforeTheWork) {
  const std::string ids = file("ids.json", "[1,2,3]").string();
  const auto logits = [&](const fs::path& out) {
    return run_sol({"logits", "-m", golden("tiny_tied_f32").string(), "--ids", ids, "--prefill",
                    "2", "--out", out.string()});
  };
  expect_error(logits(ids), {"ids.json", "input"});
  fs::create_symlink(ids, dir.path() / "link");
  expect_error(logits(dir.path() / "link"), {"link", "input"});
  EXPECT_EQ(read_file(ids), "[1,2,3]");
  expect_error(logits(dir.path()), {"is a directory"});
  expect_error(logits(dir.path() / "none" / "out"), {"none", "No such file"});
  const fs::path text = file("text.txt", std::string(20000, 'a') + "\n");
  for (const fs::path& out : {dir.path(), dir.path() / "none" / "out"})
    expect_error(run_sol({"eval", "--data", text.string(), "--schedule-out", out.string()}),
                 {out.filename() == "out" ? "No such file" : "is a directory"});
  EXPECT_FALSE(fs::exists(dir.path() / "none"));
  EXPECT_EQ(logits("/dev/stdout").out.find("{\"positions\":["), 0u);  // here a pipe
}

TEST_F(BadInput, OutputsThatWouldLoseSomethingAreFoundBeforeTheWork) {
  const fs::path model = copied_model();
  const fs::path notes = file("notes.txt", "not to be lost");
  const auto expect_kept = [](const fs::path& kept, const std::vector<std::string>& arguments,
                              const std::vector<std::string>& words) {
    const std::string before = read_file(kept);
    expect_error(run_sol(arguments), words);
    EXPECT_EQ(read_file(kept), before);
  };
  for (const char* name : {"model.safetensors", "config.json"}) {
    const std::string out = (model / name).string();
    const std::vector<std::string> words{out, "belongs to the input " + model.string()};
    expect_kept(out, {"calibrate", "-m", model.string(), "-o", out}, words);
    expect_kept(out, {"bench", "-m", model.string(), "--csv", out}, words);
    expect_kept(out, {"bench", "-m", model.string(), "--json", out}, words);
    expect_kept(out,
                {"eval", "-m", model.string(), "--data", notes.string(), "--schedule-out", out},
                words);
  }
  const std::vector<std::string> words{"notes.txt", "is there already", "another output"};
  expect_kept(notes, {"calibrate", "-o", notes.string()}, words);
  expect_kept(notes, {"bench", "--csv", notes.string()}, words);
  expect_kept(notes, {"eval", "--data", notes.string(), "--schedule-out", notes.string()},
              {"is the input " + notes.string()});
  const fs::path ids = file("ids.json", "[1,2,3]");
  expect_kept(notes, {"logits", "--ids", ids.string(), "--prefill", "2", "--out", notes.string()},
              words);
  // Directories: what an older call has not written stays.
  const fs::path results = dir.path() / "results";
  fs::create_directory(results);
  for (const char* name : {"points.csv", "points.jsonl", "summary.json", "report.html"}) {
    std::ofstream(results / name) << "other";
    expect_kept(
        results / name,
        {"sweep", "--data", notes.string(), "-o", results.string(), "--kappa-levels", "0.5,1"},
        {name, "is there already"});
    fs::remove(results / name);
  }
}

TEST_F(BadInput, NotANumberInTheWeights) {
  const fs::path model = copied_model();
  std::string bytes = read_file(model / "model.safetensors");
  const float bad = std::nanf("");
  std::memcpy(bytes.data() + bytes.size() - 400, &bad, sizeof(bad));
  std::ofstream(model / "model.safetensors", std::ios::binary) << bytes;
  const fs::path ids = file("ids.json", "[1,2,3]");
  const fs::path out = dir.path() / "out.json";
  const RunResult result = run_sol({"logits", "-m", model.string(), "--ids", ids.string(),
                                    "--prefill", "2", "--out", out.string()});
  expect_error(result, {"weight"});
  EXPECT_FALSE(fs::exists(out));
}

TEST_F(BadInput, Tokenizers) {
  const fs::path model = dir.path() / "tokenizer";
  fs::create_directory(model);
  const Json good = read_json(default_model() / "tokenizer.json");
  const auto fails = [&](const Json& spoiled, const std::vector<std::string>& words) {
    std::ofstream(model / "tokenizer.json") << spoiled;
    const RunResult result = run_sol({"tokenize", "-m", model.string()}, {.input = "text"});
    expect_error(result, words);
    EXPECT_TRUE(result.out.empty()) << result.out;
  };
  Json spoiled = good;
  spoiled["model"].erase("merges");
  fails(spoiled, {"tokenizer.json", "merges"});
  spoiled = good;
  spoiled["pre_tokenizer"] = {{"type", "Clairvoyant"}};
  fails(spoiled, {"tokenizer.json", "Clairvoyant"});
  spoiled = good;
  spoiled["model"]["type"] = "Unigram";
  fails(spoiled, {"tokenizer.json", "Unigram"});
  fails(Json::array(), {"tokenizer.json"});
}

TEST_F(BadInput, APromptLongerThanTheContext) {
  std::string prompt;
  for (int i = 0; i < 2500; ++i) prompt += "one two ";
  const RunResult result = run_sol({"generate", "-n", "4"}, {.input = prompt});
  expect_error(result, {"prompt", "2048"});
  EXPECT_TRUE(result.out.empty());
}

TEST_F(BadInput, Controllers) {
  const fs::path controller = dir.path() / "controller";
  const auto generate = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"generate", "-n", "4", "-c", controller.string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.push_back("Once");
    const RunResult result = run_sol(arguments);
    EXPECT_TRUE(result.out.empty()) << result.out;
    return result;
  };
  expect_error(generate({}), {"controller"});  // there is none yet

  const std::string other(32, '0');
  made_controller(other).save(controller);
  expect_error(generate({}), {other, default_fingerprint()});

  Controller good = made_controller(default_fingerprint());
  good.save(controller);
  for (const char* option : {"--keep", "--prune", "--budget"}) {
    expect_error(generate({option, "1.5"}), {option});
    expect_error(generate({option, "-0.1"}), {option});
    expect_error(generate({option, "nan"}), {option, "nan"});
  }
  expect_error(generate({"--bits", "17"}), {"--bits"});
  expect_error(generate({"--budget", "0.95"}),
               {"0.95", "0.8", "--keep, --prune"});  // beyond its frontier

  good.set_frontier({});
  good.save(controller);
  expect_error(generate({"--budget", "0.6"}), {"frontier"});

  Json json = read_json(controller / "controller.json");
  json["format_version"] = 99;
  std::ofstream(controller / "controller.json") << json;
  expect_error(generate({}), {"controller.json", "99"});

  good.save(controller);
  const std::string name = read_json(controller / "controller.json")["weights"];
  const std::string weights = read_file(controller / name);
  std::ofstream(controller / name, std::ios::binary) << weights.substr(0, weights.size() / 2);
  expect_error(generate({}), {name});
}

TEST_F(BadInput, LevelsAndBudgetsOfASweep) {
  const fs::path text = file("text.txt", std::string(20000, 'a') + "\n<|endoftext|>\n");
  const auto sweep = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"sweep", "--data", text.string(), "-o",
                                       (dir.path() / "out").string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_sol(arguments);
  };
  expect_error(sweep({"--rho-levels", "0.6,0.6"}), {"0.6"});  // two levels with one name
  expect_error(sweep({"--bits-levels", "5,5,16"}), {"5"});
  expect_error(sweep({"--rho-levels", "0,1"}), {"0"});
  expect_error(sweep({"--bits-levels", "1,16"}), {"1"});
  expect_error(sweep({"--rho-levels", "0.6,1", "--rho", "0.5,1.5"}), {"1.5"});
  expect_error(sweep({"--rho-levels", "0.6,1", "--rho", "0.5:x:0.1"}), {"'x' is not a number"});
  expect_error(sweep({"--rho-levels", "0.6,1", "--baselines", "psychic"}), {"psychic"});
  expect_error(sweep({"--rho-levels", "0.6,1", "--baselines", "fixed,fixed"}), {"fixed", "twice"});
  expect_error(sweep({"--rho-levels", "0.6,1", "--baselines", "fixed@x"}), {"fixed@x", "whole"});
  expect_error(
      sweep({"--rho-levels", "0.6,1", "--baselines", "elsewhere", "--compare", "requested"}),
      {"elsewhere", "realised averages"});
  expect_error(sweep({"--rho-levels", "0.6,1", "--rho", "0.7,0.7"}), {"0.7", "twice"});
  expect_error(sweep({"--rho-levels", "0.6,1", "--kappa", "0.5"}), {"keep", "only the level 1"});
  expect_error(run_sol({"eval", "--data", text.string(), "--rho-levels", "0.6,1"}), {"-p"});
  EXPECT_FALSE(fs::exists(dir.path() / "out" / "report.html"));
}

TEST_F(BadInput, TextThatIsEmptyMissingOrTooShort) {
  const auto evaluate = [&](const fs::path& text) {
    const RunResult result = run_sol({"eval", "--data", text.string()});
    EXPECT_TRUE(result.out.empty()) << result.out;
    return result;
  };
  expect_error(evaluate(file("empty.txt", "")), {"empty.txt"});
  expect_error(evaluate(file("blank.txt", "\n\n \n")), {"blank.txt"});
  expect_error(evaluate(file("short.txt", "Just one line.\n")), {"1041"});  // a block's length
  expect_error(evaluate(dir.path() / "missing.txt"), {"missing.txt"});
  expect_error(evaluate(file("text.docx", "text")), {"text.docx"});
  expect_error(evaluate(file("broken.jsonl", "{\"text\": \"one\"}\n{\"text\": \n")),
               {"broken.jsonl", "2"});
  expect_error(evaluate(file("broken.txt.zst", "no zstd at all")), {"broken.txt.zst"});
  expect_error(evaluate(file("broken.txt.gz", "no gzip at all")), {"broken.txt.gz"});
}

TEST_F(BadInput, AnUnwritableOutputDirectoryIsFoundBeforeTheWork) {
  const fs::path text = file("text.txt", "x\n");
  const fs::path out = text / "out";  // below a file: not even root can make it
  expect_error(
      run_sol({"sweep", "--rho-levels", "0.6,1", "--data", text.string(), "-o", out.string()}),
      {"text.txt"});
}

}  // namespace
}  // namespace sol::test
