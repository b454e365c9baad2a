#include "serving/scheduler.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "served.h"
#include "serving/api_error.h"
#include "serving/running_request.h"

namespace sol::test {
namespace {

JobRequest dense_job(const ServedModel& served, std::vector<int32_t> prompt, int tokens) {
  JobRequest request;
  request.prompt = std::move(prompt);
  request.options.sequence = served.sequence;
  request.options.horizon = served.horizon;
  request.options.max_tokens = tokens;
  request.options.ignore_end = true;
  request.dial = resolve_dial(Dial{}, served);
  request.party = "a";
  return request;
}

// A client may take as long as it likes to read an answer. What it holds by then is text: its part
// of the cache is others'.
TEST(Scheduler, AFinishedJobHoldsNoCache) {
  const ServedModel served = load_served(false);
  Metrics metrics;
  Scheduler scheduler(served, {.batch = 2, .queue = 2, .cache_tokens = 1024}, metrics);
  std::thread engine([&] { scheduler.run(); });
  const auto outbox = std::make_shared<Outbox>(2);
  std::vector<std::shared_ptr<Job>> jobs;
  for (size_t i = 0; i < 2; ++i)
    jobs.push_back(std::make_shared<Job>(dense_job(served, {70, 71}, 40), served, outbox, i));
  scheduler.submit(jobs);
  scheduler.drain(60);
  scheduler.stop();  // what is kept for later prompts is given back as well
  engine.join();
  int finished = 0;
  for (const Outbox::Delivery& delivery : outbox->take(std::chrono::milliseconds{0}))
    if (delivery.outcome && delivery.outcome->finish == FinishReason::max_tokens) ++finished;
  EXPECT_EQ(finished, 2);
  EXPECT_EQ(served.model->cache_use().blocks, 0u);
}

// Where the engine's memory runs out.
class ExhaustingPolicy final : public Policy {
 public:
  explicit ExhaustingPolicy(ActionSpace space) : space_(std::move(space)) {}
  std::string name() const override { return "exhausting"; }
  const ActionSpace& space() const override { return space_; }
  std::unique_ptr<PolicyState> begin(const Budget&, int, const EpisodeId&) const override {
    if (at_once) throw std::bad_alloc();
    return std::make_unique<PolicyState>();
  }
  void next(std::span<PolicyStep>) const override { throw std::bad_alloc(); }

  bool at_once = false;

 private:
  ActionSpace space_;
};

TEST(Scheduler, MemoryThatRunsOutIsSaidAndTheServerGoesOn) {
  for (const bool at_once : {false, true}) {
    ServedModel served = load_served(false);
    const auto policy = std::make_shared<ExhaustingPolicy>(served.space());
    policy->at_once = at_once;
    served.fixed = policy;
    const TestServer server(std::move(served));
    for (const bool stream : {false, true}) {
      const auto answer = server.post(
          complete, completion({{"sol", {{"budget", 0.6}}}, {"n", 2}, {"stream", stream}}));
      const Json error = stream ? Json::parse(events_of(answer.body).back()) : answer.json;
      EXPECT_EQ(error["error"]["code"], "out_of_memory") << answer.body;
      EXPECT_EQ(error["error"]["type"], "server_error");
      if (stream) continue;
      EXPECT_EQ(answer.status, 503);
      EXPECT_THAT(answer.headers, testing::Contains(testing::Pair("Retry-After", "1")));
    }
    EXPECT_EQ(server.post(complete, completion({{"max_tokens", 2}})).status, 200);  // dense
  }
}

// A model that has no memory for copies of a cache, as prefixes kept for later prompts are.
class UnforkableModel final : public FrozenModel {
 public:
  explicit UnforkableModel(std::shared_ptr<FrozenModel> model) : model_(std::move(model)) {}
  const LlamaConfig& config() const override { return model_->config(); }
  const std::string& fingerprint() const override { return model_->fingerprint(); }
  Precision precision() const override { return model_->precision(); }
  uint64_t parameter_count() const override { return model_->parameter_count(); }
  std::unique_ptr<Sequence> create(const SequenceOptions& options) override {
    return model_->create(options);
  }
  void extend(std::span<ExtendItem> items, std::stop_token stop) override {
    model_->extend(items, stop);
  }
  void decode(std::span<DecodeItem> items) override { model_->decode(items); }
  std::vector<std::unique_ptr<Sequence>> fork(const Sequence&, int) override {
    ++forks;
    throw std::bad_alloc();
  }
  void truncate(Sequence& sequence, int length) override { model_->truncate(sequence, length); }
  CacheUse cache_use() const override { return model_->cache_use(); }
  void embedding(int32_t token, std::span<float> out) const override {
    model_->embedding(token, out);
  }

  std::atomic<int> forks{0};

 private:
  std::shared_ptr<FrozenModel> model_;
};

// Once after the prompt, once at the end.
TEST(Scheduler, APrefixThatCannotBeKeptCostsNoAnswer) {
  ServedModel served = load_served(false);
  const auto model = std::make_shared<UnforkableModel>(std::move(served.model));
  served.model = model;
  const TestServer server(std::move(served));
  for (int repeat = 1; repeat <= 2; ++repeat) {
    const auto answer = server.post(complete, completion({{"max_tokens", 2}}));
    EXPECT_EQ(answer.status, 200) << answer.body;
    // The last one comes after the answer.
    const auto late = std::chrono::steady_clock::now() + std::chrono::seconds{10};
    while (model->forks < 2 * repeat && std::chrono::steady_clock::now() < late)
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    EXPECT_EQ(model->forks, 2 * repeat);
  }
}

// Nothing runs here: a stream that waits says that it is there.
TEST(EventStream, SaysThatItIsStillThere) {
  const ServedModel served = load_served(false);
  Metrics metrics;
  Scheduler scheduler(served, {.batch = 1, .queue = 2, .cache_tokens = 1024}, metrics);
  std::atomic<int> unfinished{0};
  const auto running = std::make_shared<RunningRequest>(
      read_completion({{"prompt", "a"}, {"stream", true}}, served, uint64_t{1}), served, scheduler,
      unfinished);
  constexpr std::chrono::milliseconds silence{50};
  const auto begin = std::chrono::steady_clock::now();
  EventStream events(running, silence);
  for (int sign = 1; sign <= 2; ++sign) {
    std::string text;
    while (text.empty()) text = events.next(std::chrono::milliseconds{1});
    EXPECT_EQ(text, ": still here\n\n");
    EXPECT_FALSE(events.ended());
    EXPECT_GT(std::chrono::steady_clock::now() - begin, sign * silence);
  }
}

TEST(Scheduler, WhatIsLeftWhenItStopsIsToldSo) {
  const ServedModel served = load_served(false);
  Metrics metrics;
  Scheduler scheduler(served, {.batch = 1, .queue = 2, .cache_tokens = 1024}, metrics);
  const auto outbox = std::make_shared<Outbox>(2);
  std::vector<std::shared_ptr<Job>> jobs;
  for (size_t i = 0; i < 2; ++i)
    jobs.push_back(std::make_shared<Job>(dense_job(served, {70, 71}, 40), served, outbox, i));
  scheduler.submit(jobs);
  scheduler.stop();
  scheduler.run();
  int told = 0;
  for (const Outbox::Delivery& delivery : outbox->take(std::chrono::milliseconds{0})) {
    ASSERT_TRUE(delivery.outcome && delivery.outcome->error);
    const ApiError error = api_error_of(delivery.outcome->error);
    EXPECT_EQ(error.status(), 503);
    EXPECT_EQ(error.to_json()["error"]["code"], "shutting_down");
    ++told;
  }
  EXPECT_EQ(told, 2);
}

}  // namespace
}  // namespace sol::test
