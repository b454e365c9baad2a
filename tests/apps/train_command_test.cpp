// sol train, small: bad input, a full disk, interruption and going on.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "base/file_io.h"
#include "base/free_port.h"
#include "base/json.h"
#include "base/stopwatch.h"
#include "made_controller.h"

namespace sol::test {
namespace {

namespace fs = std::filesystem;

// The process of this run with that rank; 0 where there is none (yet).
pid_t find_rank(const fs::path& out, int rank) {
  const std::string variable = "RANK=" + std::to_string(rank);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto has = [&](const char* file, const std::string& wanted) {
      std::ifstream words(entry.path() / file, std::ios::binary);
      for (std::string word; std::getline(words, word, '\0');)
        if (word == wanted) return true;
      return false;
    };
    if (has("cmdline", out.string()) && has("environ", variable)) return std::stoi(name);
  }
  return 0;
}

class TrainCommand : public testing::Test {
 protected:
  TrainCommand() {
    std::string prose;
    for (int i = 0; i < 400; ++i)
      prose += "In the year " + std::to_string(1500 + i) + " the village had " +
               std::to_string(i * i) + " houses, and one of them was older than the rest.\n";
    text = write("text.txt", prose + "<|endoftext|>\n");
  }

  fs::path write(const std::string& name, const std::string& content) {
    std::ofstream(dir.path() / name) << content;
    return dir.path() / name;
  }

  std::string weights() const {
    return read_file(out / read_json(out / "controller.json")["weights"].get<std::string>());
  }

  // A run that takes a second or two; `more` may override what it sets.
  RunResult train(const std::vector<std::string>& more, const RunOptions& options = {},
                  const std::string& updates = "3") {
    std::vector<std::string> arguments{
        "train",       (source_dir() / "configs/default-demo.yaml").string(),
        data_option,   text.string(),
        "-o",          out.string(),
        "--updates",   updates,
        "--threads",   "1",
        "--precision", "f32"};
    for (const char* setting :
         {"rollout.context=32", "rollout.horizon=4", "rollout.schedules=2", "rollout.batch=2",
          "policy.d_model=16", "optimisation.target_steps=16", "optimisation.minibatch=8",
          "optimisation.grad_accum=1", "checkpoint.updates=1"})
      arguments.insert(arguments.end(), {"--set", setting});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_sol(arguments, options);
  }

  // The process of a run that is going on, once it trains; 0 where that does not come.
  pid_t rank_at_work(int rank) const {
    const Stopwatch start;
    while (!fs::exists(out / "train.jsonl") && start.seconds() < 120)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return find_rank(out, rank);
  }

  void expect_no_leftovers() {
    if (!fs::exists(out)) return;
    for (const auto& entry : fs::recursive_directory_iterator(out))
      EXPECT_EQ(entry.path().string().find("tmp-"), std::string::npos) << entry.path();
  }

  TemporaryDirectory dir;
  std::string data_option = "--data";
  fs::path text, out = dir.path() / "out";
};

// A terminal's Ctrl-C reaches whatever it runs; the trainer that a study runs must hear of it once.
// The network is large, so that its checkpoint takes longer than a second signal.
TEST_F(TrainCommand, AnInterruptedStudyKeepsWhatWasTrained) {
  const fs::path study =
      write("study.yaml",
            "name: s\n"
            "data: {train: {files: [text.txt]}, valid: {files: [text.txt]}, test: {files: "
            "[text.txt]}}\n"
            "evaluation: {context: 40, blocks: 2, validation_blocks: 2, budgets: 8}\n"
            "set: {rollout.context: 32, rollout.horizon: 4, rollout.schedules: 2, rollout.batch: 2,"
            " policy.d_model: 768, optimisation.target_steps: 16, optimisation.minibatch: 8,"
            " optimisation.grad_accum: 1, checkpoint.updates: 1000000}\n"
            "families: {f: {controllers: {2l: {config: " +
                (source_dir() / "configs/default-demo.yaml").string() +
                ", updates: 100000}}}}\nexperiments: {spaces: {controllers: [2l]}}\n");
  const RunResult stopped = run_sol({"reproduce", study.string(), "-o", out.string(), "--threads",
                                     "1", "--precision", "f32", "--only", "training"},
                                    {.interrupt_when = "update ", .interrupt_group = true});
  EXPECT_EQ(stopped.code, 128 + SIGINT) << testing::PrintToString(stopped);
  EXPECT_TRUE(fs::exists(out / "controllers/f/2l/checkpoint/state.safetensors"))
      << testing::PrintToString(stopped);
  EXPECT_NE(stopped.err.find("resume with --resume"), std::string::npos) << stopped.err;
}

TEST_F(TrainCommand, MakesAControllerThatGenerates) {
  const RunResult result = train({});
  ASSERT_EQ(result.code, 0) << testing::PrintToString(result);
  EXPECT_NE(result.err.find("update 3/3"), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find('\r'), std::string::npos);  // plain lines where there is no terminal
  expect_no_leftovers();
  const RunResult text_result =
      run_sol({"generate", "-c", out.string(), "--keep", "0.5", "-n", "20", "Once"});
  EXPECT_EQ(text_result.code, 0) << testing::PrintToString(text_result);

  // A finished run is not trained over by mistake.
  expect_error(train({}), {out.string()});
  EXPECT_EQ(train({"--overwrite"}).code, 0);
}

TEST_F(TrainCommand, ShowsWhatOptionsBeyondThePaperDo) {
  const RunResult result =
      train({"--set", "optimisation.entropy=0.3", "--set", "optimisation.final_entropy=0", "--set",
             "curriculum.share=1", "--set", "curriculum.width=0.5", "--set", "distil.weight=0.1",
             "--set", "distil.tolerance=1", "--set", "reward.whiten_over=group"},
            {}, "4");
  ASSERT_EQ(result.code, 0) << testing::PrintToString(result);
  // Two minibatches a collection, an update each: the second is made with three quarters of 0.3. Of
  // the run's 4 inputs, the collection's last is the second.
  EXPECT_NE(result.err.find("update 2/4"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("(weight 0.225)"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("upper 62 % of the budgets"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("distilled "), std::string::npos) << result.err;
  std::ifstream log(out / "train.jsonl");
  std::string line;
  ASSERT_TRUE(std::getline(log, line));
  const Json first = parse_json(line, "train.jsonl");
  EXPECT_DOUBLE_EQ(first["budget_range_share"].get<double>(), 0.625);
  EXPECT_DOUBLE_EQ(first["entropy_weight"].get<double>(), 0.225);
  EXPECT_GT(first["distil_share"].get<double>(), 0.0);
  EXPECT_GT(first["distil_loss"].get<double>(), 0.0);
  const Json settings = read_json(out / "controller.json")["training"]["config"];
  EXPECT_EQ(settings["reward"]["whiten_over"], "group");

  expect_error(train({"--overwrite", "--set", "distil.wait=1"}), {"distil", "tolerance, weight"});
  expect_error(train({"--overwrite", "--set", "reward.whiten_over=input"}), {"batch, group"});
}

TEST_F(TrainCommand, AResumedRunEqualsAnUninterruptedOne) {
  ASSERT_EQ(train({}, {}, "4").code, 0);
  const std::string whole = weights();
  out = dir.path() / "resumed";
  ASSERT_EQ(train({}, {}, "2").code, 0);
  const RunResult second = train({"--resume"}, {}, "4");
  ASSERT_EQ(second.code, 0) << testing::PrintToString(second);
  EXPECT_EQ(weights(), whole);
}

TEST_F(TrainCommand, AnInterruptLeavesACheckpointToGoOnFrom) {
  const RunResult stopped = train({}, {.interrupt_when = "update "}, "100000");
  ASSERT_EQ(stopped.code, 130) << testing::PrintToString(stopped);
  expect_no_leftovers();
  ASSERT_TRUE(fs::exists(out / "checkpoint/state.safetensors"));
  const RunResult again = train({"--resume"}, {.interrupt_when = "update "}, "100000");
  EXPECT_EQ(again.code, 130) << testing::PrintToString(again);
}

TEST_F(TrainCommand, SeveralProcessesGiveTheControllerOfOne) {
  const std::vector<std::string> four{"--deterministic", "--set", "rollout.batch=4"};
  ASSERT_EQ(train(four).code, 0);
  const std::string alone = weights();
  fs::remove_all(out);
  std::vector<std::string> together = four;
  together.insert(together.end(), {"--processes", "2"});
  const RunResult result = train(together);
  ASSERT_EQ(result.code, 0) << testing::PrintToString(result);
  EXPECT_NE(result.err.find("2 processes"), std::string::npos) << result.err;
  EXPECT_EQ(weights(), alone);
  EXPECT_EQ(read_json(out / "run.json")["processes"], 2);
  expect_no_leftovers();

  // Every process says why none of them goes on: here the leader meets a run that is finished.
  const RunResult again = train(together);
  expect_error(again, {"sol: rank 0: " + out.string(), "sol: rank 1: another process", "rank 0: "});
}

TEST_F(TrainCommand, SeveralProcessesStopAndGoOnTogether) {
  const RunResult stopped = train({"--processes", "2"}, {.interrupt_when = "update "}, "1000000");
  EXPECT_EQ(stopped.code, 128 + SIGINT) << testing::PrintToString(stopped);  // as one would
  EXPECT_NE(stopped.err.find("resume with --resume"), std::string::npos) << stopped.err;
  EXPECT_EQ(stopped.err.find("sol: interrupted"), stopped.err.rfind("sol: interrupted"));
  const RunResult resumed = train({"--processes", "2", "--resume"}, {}, "200");
  EXPECT_EQ(resumed.code, 0) << testing::PrintToString(resumed);
}

TEST_F(TrainCommand, ARankThatWasStartedWronglySaysSo) {
  expect_error(train({}, {.environment = {"RANK=0"}}), {"WORLD_SIZE is missing"});
  expect_error(train({"--processes", "3"},
                     {.environment = {"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1"}}),
               {"--processes 3", "one of 2 processes"});
  expect_error(train({"--processes", "2"},
                     {.environment = {"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1"}}),
               {"--processes 2", "one of 2 processes", "leave out one"});
  expect_error(
      train({}, {.environment = {"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=no-such-host.invalid"}}),
      {"rank 0: ", "MASTER_ADDR = no-such-host.invalid"});
}

TEST_F(TrainCommand, WhatProcessesCannotShareIsSaidOnceBeforeAnyIsStarted) {
  const RunResult result = train({"--processes", "1000"});
  expect_error(result, {"sol: rollout.batch = 2", "1000 processes"});
  EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
}

TEST_F(TrainCommand, TooFewAddressesAreNamedBeforeLibrariesWaitForThem) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer needs more addresses than this leaves";
#endif
  expect_error(train({}, {.address_limit = 600 << 20, .kill_after = 60}),
               {"LibTorch: needs 1536 MiB", "ulimit -v allows 600 MiB"});
}

TEST_F(TrainCommand, ARankSaysWhomItWaitsFor) {
  const std::string port = std::to_string(free_port());
  const RunResult result = train(
      {},
      {.environment = {"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port},
       .kill_after = 0.5,
       .kill_clock_from = "waiting for"});
  EXPECT_EQ(result.signal, SIGKILL);
  EXPECT_NE(result.err.find("rank 0 of 2: waiting for the other processes at 127.0.0.1:" + port +
                            ", 300 s at most"),
            std::string::npos)
      << result.err;
}

pid_t parent_of(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("PPid:")) return std::stoi(line.substr(5));
  return 0;
}

TEST_F(TrainCommand, AKilledProcessEndsTheRunSoon) {
  RunResult result;
  std::jthread run([&] { result = train({"--processes", "2"}, {}, "1000000"); });
  const pid_t killed = rank_at_work(1);
  ASSERT_GT(killed, 0);
  const Stopwatch time;
  kill(killed, SIGKILL);
  run.join();
  EXPECT_LT(time.seconds(), 4);  // half of it for a busy machine
  EXPECT_EQ(result.code, 128 + SIGKILL) << testing::PrintToString(result);
  EXPECT_NE(result.err.find("rank 1 was ended by signal 9"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("rank 0: "), std::string::npos) << result.err;
}

// The leader's process is where the others look for signs of life.
TEST_F(TrainCommand, SlowAStoppedLeaderEndsTheRun) {
  RunResult result;
  std::jthread run([&] { result = train({"--processes", "2"}, {}, "1000000"); });
  const pid_t stopped = rank_at_work(0);
  ASSERT_GT(stopped, 0);
  const Stopwatch time;
  kill(stopped, SIGSTOP);
  run.join();
  EXPECT_LT(time.seconds(), 60);  // 30 s of silence and 10 s for the others to end
  EXPECT_NE(result.code, 0);
  EXPECT_NE(result.err.find("rank 0 has given no sign of life for 30 s"), std::string::npos)
      << result.err;
}

TEST_F(TrainCommand, StoppedProcessesCanBeInterrupted) {
  RunResult result;
  std::jthread run([&] { result = train({"--processes", "2"}, {}, "1000000"); });
  const pid_t leader = rank_at_work(0), other = rank_at_work(1);
  ASSERT_GT(leader, 0);
  ASSERT_GT(other, 0);
  const pid_t parent = parent_of(leader);
  kill(leader, SIGSTOP);
  kill(other, SIGSTOP);
  kill(parent, SIGTERM);
  run.join();
  EXPECT_EQ(result.code, 128 + SIGTERM) << testing::PrintToString(result);
  EXPECT_NE(result.err.find("resume with --resume"), std::string::npos) << result.err;
}

// What ranks started by hand disagree about would show as one waiting in vain for the other.
TEST_F(TrainCommand, RanksMustBeStartedWithTheSameOptions) {
  const auto both = [&](const std::vector<std::string>& only_of_the_second) {
    const std::string port = std::to_string(free_port());
    const auto rank = [&](const char* number, const std::vector<std::string>& more) {
      return train(more,
                   {.environment = {std::string("RANK=") + number, "WORLD_SIZE=2",
                                    "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port},
                    .kill_after = 100},
                   "1");
    };
    RunResult second;
    std::jthread other([&] { second = rank("1", only_of_the_second); });
    const RunResult first = rank("0", {});
    other.join();
    EXPECT_NE(first.code, 0);
    expect_error(second, {});
    return second.err;
  };
  EXPECT_THAT(both({"--deterministic"}), testing::HasSubstr("--deterministic is true here"));
  EXPECT_THAT(both({"--minutes", "5"}), testing::HasSubstr("--minutes is 5"));
  EXPECT_THAT(both({"--seed", "7"}), testing::HasSubstr("seed is 7 here"));
  EXPECT_THAT(both({"--init", out.string()}), testing::HasSubstr("--init is \"given\" here"));
  EXPECT_THAT(both({"--device", "cpu"}), testing::HasSubstr("--device is \"cpu\" here"));
}

TEST_F(TrainCommand, WhatWillNotFitIsSaidBeforehand) {
  expect_error(train({"--memory-limit", "0.4", "--set", "rollout.batch=512"}),
               {"training needs ", "cache", "MiB are available", "--set rollout.batch="});
}

// Nothing may be lost but the work since the last checkpoint, and nothing half written be read.
TEST_F(TrainCommand, SlowKilledAtAnyMomentItGoesOn) {
  Random random({.seed = 1, .stream = RandomStream::test});
  for (int kills = 0; kills < 50; ++kills) {
    // One of three while it starts, the others while it trains and writes checkpoints.
    RunOptions options{.kill_after = 0.01 + random.uniform_double()};
    if (kills % 3 != 0) options.kill_clock_from = "update ";
    const RunResult result = train({"--resume"}, options, "1000000");
    ASSERT_EQ(result.signal, SIGKILL) << testing::PrintToString(result);
  }
  const Json controller = read_json(out / "checkpoint" / "controller" / "controller.json");
  const auto done = controller["training"]["updates"].get<int64_t>();
  EXPECT_GT(done, 50);
  // A few more than the newest checkpoint, which may be one ahead of its controller.
  const std::string updates = std::to_string(done + 4);
  const RunResult last = train({"--resume"}, {}, updates);
  ASSERT_EQ(last.code, 0) << testing::PrintToString(last);
  const std::string killed = weights();
  fs::remove_all(out);
  ASSERT_EQ(train({}, {}, updates).code, 0);
  EXPECT_EQ(killed, weights());
}

TEST_F(TrainCommand, AFullDiskKeepsTheLastGoodCheckpoint) {
  ASSERT_EQ(train({}, {}, "2").code, 0);
  const fs::path checkpoint = out / "checkpoint/state.safetensors";
  const std::string before = read_file(checkpoint);
  const RunResult full = train({"--resume"}, {.file_size_limit = 60000}, "4");
  expect_error(full, {"sol: ", out.string()});
  EXPECT_EQ(read_file(checkpoint), before);
  expect_no_leftovers();
}

TEST_F(TrainCommand, TakesACorpusAndWhatIsPreparedOfIt) {
  const fs::path corpus = dir.path() / "corpus";
  fs::create_directories(corpus / "deep");
  for (const int part : {0, 1}) {
    std::ofstream file(corpus / (part == 0 ? "a.jsonl" : "deep/b.jsonl"));
    for (int i = 0; i < 300; ++i)
      file << "{\"text\": \"In the year " << 1000 + i << " there were " << i * i + part
           << " houses.\"}\n";
  }
  data_option = "--train-data";
  text = corpus;
  const RunResult first = train({}, {}, "1");
  ASSERT_EQ(first.code, 0) << testing::PrintToString(first);
  EXPECT_NE(first.err.find("tokenised 600 documents"), std::string::npos) << first.err;
  const std::string from_corpus = weights();
  const RunResult second = train({"--overwrite"}, {}, "1");
  ASSERT_EQ(second.code, 0) << testing::PrintToString(second);
  EXPECT_EQ(second.err.find("tokenised"), std::string::npos) << second.err;

  const fs::path ids = dir.path() / "ids";
  ASSERT_EQ(run_sol({"prepare", corpus.string(), "-o", ids.string()}).code, 0);
  text = ids;
  out = dir.path() / "prepared";
  ASSERT_EQ(train({}, {}, "1").code, 0);
  EXPECT_EQ(weights(), from_corpus);  // the same blocks in the same order

  expect_error(train({"--overwrite", "--data", "x.txt"}), {"--data", "--train-data"});
  data_option = "--data";
  expect_error(train({"--overwrite"}), {"--data " + ids.string(), "--train-data takes one"});
  data_option = "--train-data";
  text = corpus / "a.jsonl";
  expect_error(train({"--overwrite"}), {"--train-data ", "a.jsonl", "--data takes one"});
  text = dir.path() / "none";
  expect_error(train({"--overwrite"}), {"none", "no such directory"});
}

// Which would read it as text when it goes on.
TEST_F(TrainCommand, ARunDoesNotLieInItsData) {
  const fs::path corpus = dir.path() / "corpus";
  fs::create_directory(corpus);
  write("corpus/a.jsonl", "{\"text\": \"One house.\"}\n");
  const fs::path elsewhere = out, plain = text;
  data_option = "--train-data";
  text = corpus;
  out = corpus / "run";
  expect_error(train({}), {out.string(), "lies in the corpus " + corpus.string()});
  EXPECT_FALSE(fs::exists(out));
  // A log that is none: somebody's data, by the name that data sets have.
  data_option = "--data";
  out = dir.path();
  text = write("train.jsonl", "{\"text\": \"One house.\"}\n");
  expect_error(train({}), {"train.jsonl", "is the input"});
  text = plain;
  expect_error(train({"--overwrite"}), {"train.jsonl", "not the log of a training run"});
  EXPECT_EQ(read_file(dir.path() / "train.jsonl"), "{\"text\": \"One house.\"}\n");
}

TEST_F(TrainCommand, BadInputIsNamedBeforeAnyWork) {
  write("noise.txt", std::string("one\ntwo \xff\n"));
  expect_error(train({"--data", (dir.path() / "noise.txt").string()}),
               {"noise.txt, line 2", "byte 8"});
  expect_error(train({"--minutes", "nan"}), {"--minutes", "more than 0"});
  expect_error(train({"--cache", ""}), {"--cache", "must not be empty"});
  expect_error(train({"--set", "actions.prune=[s60, s60]"}), {"s60"});
  expect_error(train({"--set", "budgets.keep=[0.5, 1.5]"}), {"1.5"});
  expect_error(train({"--set", "rollout.horizonn=4"}), {"horizonn"});
  EXPECT_FALSE(fs::exists(out / "controller.json"));

  const fs::path good = text;
  text = write("empty.txt", "");
  expect_error(train({}), {"empty.txt"});
  text = good;
  out = good / "out";  // below a file
  expect_error(train({}), {"text.txt"});
  expect_no_leftovers();
}

TEST_F(TrainCommand, TrainsForTimesWithATableOfTheModel) {
  const std::string costs = (dir.path() / "costs.json").string();
  const RunResult measured = run_sol({"calibrate", "--context", "16,36", "--horizon", "4",
                                      "--repetitions", "9", "--precision", "f32", "-o", costs});
  ASSERT_EQ(measured.code, 0) << testing::PrintToString(measured);
  // A machine on which all that is dropped saves a lot, so that there is something to learn.
  Json table = read_json(costs);
  table["costs"]["channels_saved_ms"] = {0.5, 0.4, 0.2, 0.1};
  for (Json& length : table["costs"]["lengths"]) {
    length["dense_ms"] = 1.0;
    length["refresh_ms"] = 0.1;
    length["saved_ms"] = {0.2, 0.15, 0.1, 0.05};
  }
  write(fs::path(costs).filename(), table.dump());
  const std::vector<std::string> timed{"--set", "actions.quant=[q16]", "--set",
                                       "budgets={time: [0.5, 1.0]}"};
  const auto train_timed = [&](std::vector<std::string> more) {
    more.insert(more.begin(), timed.begin(), timed.end());
    return train(more);
  };
  expect_error(train_timed({}), {"--costs FILE"});
  expect_error(train({"--costs", costs}), {"budget is no time"});
  const RunResult result = train_timed({"--costs", costs});
  ASSERT_EQ(result.code, 0) << testing::PrintToString(result);
  EXPECT_NE(result.err.find("time 0."), std::string::npos) << result.err;
  const Json controller = read_json(out / "controller.json");
  EXPECT_EQ(controller["format_version"], 3);
  EXPECT_EQ(controller["costs"], table["costs"]);
  EXPECT_EQ(controller["time_range"], Json({0.5, 1.0}));
  EXPECT_TRUE(controller["training"]["last_collection"].contains("time_gap"));
  const RunResult text_result =
      run_sol({"generate", "-c", out.string(), "--ms", "0.8", "-n", "20", "Once"});
  EXPECT_EQ(text_result.code, 0) << testing::PrintToString(text_result);

  Json useless = table;
  useless["costs"]["channels_saved_ms"] = {0, 0, 0, 0};
  for (Json& length : useless["costs"]["lengths"]) length["saved_ms"] = {0, 0, 0, 0};
  write("useless.json", useless.dump());
  expect_error(train_timed({"--overwrite", "--costs", (dir.path() / "useless.json").string()}),
               {"useless.json", "saves time", "`sol calibrate`"});
  useless["costs"]["lengths"][0]["dense_ms"] = -1;
  write("useless.json", useless.dump());
  expect_error(train_timed({"--overwrite", "--costs", (dir.path() / "useless.json").string()}),
               {"useless.json", "lengths[0].dense_ms", "-1", "`sol calibrate`"});

  for (const Json& other : {Json(false), Json("yes")}) {
    Json forced = table;
    forced["measured_with"]["force_sinks"] = other;
    write("forced.json", forced.dump());
    expect_error(train_timed({"--overwrite", "--costs", (dir.path() / "forced.json").string()}),
                 {"forced.json", "force_sinks"});
  }

  table["run"]["model_fingerprint"] = "another";
  write("other.json", table.dump());
  expect_error(train_timed({"--overwrite", "--costs", (dir.path() / "other.json").string()}),
               {"other.json", "model_fingerprint"});
  expect_error(train_timed({"--overwrite", "--costs", costs, "--set", "quest.page_size=16"}),
               {"costs.json", "page_size"});
  expect_error(train_timed({"--overwrite", "--costs", costs, "--set", "rollout.horizon=8"}),
               {"costs.json", "episodes of 4 steps"});
}

}  // namespace
}  // namespace sol::test
