#include "serving/scheduler.h"

#include <gtest/gtest.h>

#include "served.h"

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
  const auto outbox = std::make_shared<Outbox>();
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

}  // namespace
}  // namespace sol::test
