// Real models of others, as they come (TinyStories-656K) and through the converter (stories260K).
#include <algorithm>
#include <cmath>

#include "model/llama2c.h"
#include "sol/frozen_model.h"
#include "sol/tokenizer.h"
#include "support.h"
#include "text/text_reader.h"

namespace sol {
namespace {

namespace fs = std::filesystem;

struct Scored {
  double nats_per_byte = 0;
  double perplexity = 0;
};

// The first 40 stories, each from its begin token on, as far as the model's positions reach.
Scored score_stories(const fs::path& dir) {
  const auto model = load_model(dir, {.precision = Precision::f32});
  const auto tokenizer = Tokenizer::load(dir);
  double nats = 0;
  size_t bytes = 0, tokens = 0;
  int stories = 0;
  read_documents(test::shared_dir() / "data/text/tinystories_head.txt", {},
                 [&](std::string&& story) {
                   if (++stories > 40) return;
                   std::vector<int32_t> ids = tokenizer->encode(story);
                   if (ids.size() > 500) ids.resize(500);
                   const auto sequence = model->create({});
                   ExtendItem item{sequence.get(), std::span(ids).first(ids.size() - 1), {}};
                   std::vector<float> log_probs(ids.size() - 1);
                   for (size_t i = 0; i + 1 < ids.size(); ++i)
                     item.wanted.push_back({i, {.target = ids[i + 1], .log_prob = &log_probs[i]}});
                   model->extend({&item, 1});
                   for (const float x : log_probs) nats -= x;
                   tokens += log_probs.size();
                   bytes += tokenizer->decode(std::span(ids).subspan(1), true).size();
                 });
  return {nats / static_cast<double>(bytes), std::exp(nats / static_cast<double>(tokens))};
}

TEST(StoryModels, Stories260KThroughTheConverterKnowsItsStories) {
  SOL_SKIP_WITHOUT_SHARED();
  const fs::path from = test::shared_dir() / "data/models/stories260k-llama2c";
  test::TemporaryDirectory dir;
  convert_llama2c(from / "stories260K.bin", from / "tok512.bin", dir.path() / "m");
  const Scored got = score_stories(dir.path() / "m");
  RecordProperty("nats_per_byte", std::to_string(got.nats_per_byte));
  RecordProperty("perplexity", std::to_string(got.perplexity));
  // Measured: 3.47 over these stories. Random weights give 512.
  EXPECT_LT(got.perplexity, 4.0) << got.nats_per_byte;
  EXPECT_GT(got.perplexity, 3.0);

  // A sensible story, which a wrong layout of any matrix would not give.
  const auto tokenizer = Tokenizer::load(dir.path() / "m");
  const auto model = load_model(dir.path() / "m", {.precision = Precision::f32});
  std::vector<int32_t> ids = tokenizer->encode("Once upon a time");
  const auto sequence = model->create({});
  std::vector<float> logits(512);
  for (size_t done = 0; ids.size() < 45;) {
    ExtendItem item{sequence.get(), std::span(ids).subspan(done), {}};
    item.wanted.push_back({ids.size() - done - 1, {.logits = logits.data()}});
    done = ids.size();
    model->extend({&item, 1});
    ids.push_back(static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin()));
  }
  EXPECT_TRUE(tokenizer->decode(ids, true).starts_with(
      "Once upon a time, there was a little girl named Lily. She loved to "
      "play outside in the park. One day, she saw a big, red ball."))
      << tokenizer->decode(ids, true);
}

TEST(StoryModels, TinyStories656KRunsAsItComes) {
  SOL_SKIP_WITHOUT_SHARED();
  const Scored got = score_stories(test::shared_dir() / "data/models/tinystories-656k");
  // Measured: 0.648 over 60 stories.
  EXPECT_LT(got.nats_per_byte, 0.7) << got.perplexity;
  EXPECT_GT(got.nats_per_byte, 0.5);
}

}  // namespace
}  // namespace sol
