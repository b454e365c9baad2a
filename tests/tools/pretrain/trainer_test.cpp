#include "trainer.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/mapped_file.h"
#include "layout.h"
#include "model/safetensors.h"
#include "sol/frozen_model.h"
#include "text/block_dataset.h"
#include "throws.h"
#include "tiny.h"

namespace sol::pretrain {
namespace {

namespace fs = std::filesystem;
using test::throws;

std::vector<Json> read_log(const fs::path& out) {
  std::ifstream file(out / "log.jsonl");
  std::vector<Json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(parse_json(line, "log"));
  return lines;
}

TEST(Trainer, TheSavedModelIsTheOneThatWasTrained) {
  const TinyModel tiny;
  TrainerOptions o = tiny.options("out");
  o.tokens = 3000;
  ASSERT_TRUE(train(o));
  const auto text = BlockDataset::open(o.data, {}, *Tokenizer::load(o.model), 71, {});
  const auto ids = text.block(0);

  const LlamaConfig config = tiny.config();
  const auto trainer =
      make_torch_engine(config, load_weights(o.out, config, Layout(config)), "cpu", false, 1);
  const std::vector<float> expected = trainer->losses({ids, 70});
  const auto model = load_model(o.out, {.precision = Precision::f32});
  const auto sequence = model->create({});
  std::vector<float> log_probs(70);
  ExtendItem item{sequence.get(), ids.first(70), {}};
  for (size_t i = 0; i < 70; ++i)
    item.wanted.push_back({i, {.target = ids[i + 1], .log_prob = &log_probs[i]}});
  model->extend({&item, 1});
  for (size_t i = 0; i < 70; ++i) EXPECT_NEAR(-log_probs[i], expected[i], 1e-4) << i;

  // And what is saved is what training ended with.
  EXPECT_EQ(load_weights(o.out, config, Layout(config)),
            TensorStore::open_file(o.out / "checkpoint.safetensors").get("weights").to_floats());

  // It has learned something, and the log says so.
  const auto log = read_log(o.out);
  ASSERT_GE(log.size(), 4u);
  EXPECT_GT(log.front().at("loss").get<double>(), 7.9);  // near ln 4096 = 8.3
  EXPECT_LT(log.back().at("loss").get<double>(), 6.5);
}

TEST(Trainer, AResumedRunIsTheSameRun) {
  for (const char* precision : {"f32", "bf16"}) {
    const TinyModel tiny;
    TrainerOptions whole = tiny.options("whole");
    whole.precision = precision;
    whole.tokens = 1960;
    ASSERT_TRUE(train(whole));
    TrainerOptions parts = whole;
    parts.out = tiny.path() / "parts";
    parts.tokens = 840;
    ASSERT_TRUE(train(parts));
    parts.tokens = 1960;
    EXPECT_THAT([&] { train(parts); }, throws({"holds a run already", "--resume"}));
    parts.resume = true;
    ASSERT_TRUE(train(parts));
    EXPECT_EQ(read_file(whole.out / "model.safetensors"),
              read_file(parts.out / "model.safetensors"))
        << precision;
  }
}

TEST(Trainer, AStopIsACheckpoint) {
  const TinyModel tiny;
  TrainerOptions o = tiny.options("out");
  o.tokens = 840;
  // Tokenising stops too, so that its result must be there already.
  ASSERT_TRUE(train(o));
  o.resume = true;
  o.tokens = 1000000;
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(train(o, stop.get_token()));
  EXPECT_TRUE(fs::exists(o.out / "checkpoint.safetensors"));
}

TEST(Trainer, DecayGoesOnFromAnotherRunAndLeavesItAlone) {
  const TinyModel tiny;
  TrainerOptions stable = tiny.options("stable");
  stable.tokens = 840;
  ASSERT_TRUE(train(stable));
  const std::string before = read_file(stable.out / "checkpoint.safetensors");
  TrainerOptions decay = tiny.options("final");
  decay.from = stable.out;
  decay.window = 140;
  decay.decay_tokens = 1120;
  decay.log_steps = 1;
  ASSERT_TRUE(train(decay));
  EXPECT_EQ(read_file(stable.out / "checkpoint.safetensors"), before);
  const auto log = read_log(decay.out);
  ASSERT_EQ(log.size(), 4u);
  EXPECT_NEAR(log[0].at("learning_rate").get<double>(), 5e-3, 1e-9);
  EXPECT_NEAR(log[3].at("learning_rate").get<double>(), 5e-3 / 4, 1e-9);
  EXPECT_EQ(log[3].at("window"), 140);
  EXPECT_EQ(log[3].at("tokens"), 840 + 1120);
}

TEST(Trainer, ARunWhoseRateFallsGoesOnFalling) {
  const TinyModel tiny;
  TrainerOptions o = tiny.options("out");
  o.decay_tokens = 560;
  o.tokens = 280;
  o.log_steps = 1;
  ASSERT_TRUE(train(o));
  o.resume = true;
  o.tokens = 0;
  TrainerOptions steady = o;
  steady.decay_tokens = 0;
  steady.tokens = 840;
  EXPECT_THAT([&] { train(steady); }, throws({"falling since token 0", "--decay-tokens"}));
  ASSERT_TRUE(train(o));
  EXPECT_EQ(read_log(o.out).back().at("tokens"), 560);

  // From its result the rate falls anew, over as many tokens as are asked for.
  TrainerOptions again = tiny.options("again");
  again.from = o.out;
  again.log_steps = 1;
  again.decay_tokens = 280;
  ASSERT_TRUE(train(again));
  EXPECT_EQ(read_log(again.out).back().at("tokens"), 560 + 280);
}

TEST(Trainer, ValidationIsPerTokenAndPerByte) {
  const TinyModel tiny;
  TrainerOptions o = tiny.options("out");
  o.tokens = 280;
  o.valid = {tiny.path() / "text.txt"};
  o.valid_windows = 3;
  ASSERT_TRUE(train(o));
  const Json result = read_log(o.out).front().at("validation").at(0);
  EXPECT_EQ(result.at("targets"), 3 * 70);
  const double nats = result.at("nats_per_token"), bits = result.at("bits_per_byte");
  EXPECT_NEAR(nats, std::log(4096), 0.2);
  // This text has between one and six bytes per token.
  EXPECT_LT(bits, nats / std::log(2));
  EXPECT_GT(bits, nats / std::log(2) / 6);
}

TEST(Trainer, CheckpointsOfOtherRunsAreErrors) {
  const TinyModel tiny;
  TrainerOptions o = tiny.options("out");
  write_file_atomically(tiny.path() / "more.txt", "Nobody had seen the miller since.\n");
  o.data.push_back(tiny.path() / "more.txt");
  o.tokens = 280;
  ASSERT_TRUE(train(o));
  o.resume = true;
  TrainerOptions other = o;
  other.seed = 2;
  EXPECT_THAT([&] { train(other); }, throws({"another run", "seed was 1 and is now 2"}));
  other = o;
  std::ranges::reverse(other.data);  // as many tokens, elsewhere
  EXPECT_THAT([&] { train(other); }, throws({"another run", "text_hash was "}));
  const fs::path path = o.out / "checkpoint.safetensors";
  const std::string bytes = read_file(path);
  write_file_atomically(path, bytes.substr(0, bytes.size() - 8));
  EXPECT_THAT([&] { train(o); }, throws({"checkpoint.safetensors"}));
  write_file_atomically(path, read_file(o.out / "model.safetensors"));
  EXPECT_THAT([&] { train(o); }, throws({"not a checkpoint of this program"}));
}

// AdamW's moments may become Muon's; Muon's, sums that are not damped, not AdamW's.
TEST(Trainer, TheOptimizerChangesToMuonAndNotBack) {
  const TinyModel tiny;
  TrainerOptions o = tiny.options("out");
  o.tokens = 280;
  ASSERT_TRUE(train(o));
  o.resume = true;
  o.optimizer.muon = true;
  o.tokens = 560;
  ASSERT_TRUE(train(o));
  o.optimizer.muon = false;
  o.tokens = 840;
  EXPECT_THAT([&] { train(o); }, throws({"trained with Muon", "--muon"}));

  TrainerOptions muon = tiny.options("muon");
  muon.optimizer.muon = true;
  muon.tokens = 280;
  ASSERT_TRUE(train(muon));
  TrainerOptions decay = tiny.options("decay");
  decay.from = muon.out;
  decay.decay_tokens = 280;
  EXPECT_THAT([&] { train(decay); }, throws({"trained with Muon", "--muon"}));
  decay.optimizer.muon = true;
  EXPECT_TRUE(train(decay));
}

TEST(Trainer, AModelIsNotReplaced) {
  const TinyModel tiny;
  TrainerOptions o = tiny.options("out");
  o.tokens = 280;
  o.out = o.model;
  EXPECT_THAT([&] { train(o); }, throws({"would replace that model"}));
  o = tiny.options("out");
  o.tokens = 280;
  for (const char* name : {"model.safetensors", "model.safetensors.index.json", "config.json"}) {
    fs::remove_all(o.out);
    fs::create_directories(o.out);
    write_file_atomically(o.out / name, "somebody's");
    EXPECT_THAT([&] { train(o); }, throws({"holds a model", name}));
    EXPECT_EQ(read_file(o.out / name), "somebody's");
  }
  fs::remove_all(o.out);
  fs::create_directories(o.out);
  write_file_atomically(o.out / "log.jsonl", "{\"message\": \"of another program\"}\n");
  EXPECT_THAT([&] { train(o); }, throws({"log.jsonl", "the log of a run of sol-pretrain"}));
}

TEST(Trainer, OptionsThatCannotBeAreErrors) {
  const TinyModel tiny;
  TrainerOptions o = tiny.options("out");
  o.window = 500;
  EXPECT_THAT([&] { train(o); }, throws({"windows of 500", "256 positions"}));
  o = tiny.options("out");
  o.step_tokens = 60;
  EXPECT_THAT([&] { train(o); }, throws({"60 tokens a step", "window of 70"}));
  o = tiny.options("out");
  o.init = true;
  EXPECT_THAT([&] { train(o); }, throws({"model.safetensors"}));
  o.from = tiny.path();
  EXPECT_THAT([&] { train(o); }, throws({"--from", "--init"}));
  o = tiny.options("out");
  o.valid_tokens = 1000;
  EXPECT_THAT([&] { train(o); }, throws({"--valid-every", "name it with --valid"}));
}

}  // namespace
}  // namespace sol::pretrain
