#include "serving/metrics.h"

#include <gmock/gmock.h>

namespace sol {
namespace {

using testing::HasSubstr;

TEST(Metrics, HistogramsAreCumulative) {
  Histogram histogram({1.0, 2.0});
  for (const double value : {0.5, 1.0, 1.5, 9.0}) histogram.add(value);
  std::string text;
  histogram.print("h", "help", text);
  EXPECT_EQ(text,
            "# HELP h help\n# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"2\"} 3\n"
            "h_bucket{le=\"+Inf\"} 4\nh_sum 12\nh_count 4\n");
}

TEST(Metrics, CountsWhatTheyAreTold) {
  Metrics metrics;
  metrics.name_actions(ActionSpace({0.5f, 1.0f}, {0.7f, 1.0f}, {8, 16}));
  metrics.count_request("/v1/completions", 200);
  metrics.count_request("/v1/completions", 200);
  metrics.count_prompt(10, 4);
  metrics.count_token({0.5f, 0.7f, 8}, 0.02, true);
  metrics.count_token({}, 0.03, false);
  for (int i = 1; i <= 100; ++i)  // whatever clients think of makes one line
    metrics.count_token({0.001f * static_cast<float>(i), 0.7f, 8}, 0.02, false);
  metrics.count_finished({0.5f, 0.75f, 0.5f}, 3);
  metrics.count_finished({1.0f, 1.0f, 1.0f}, 0);  // nothing counted: no average
  metrics.set({.queued = 3, .running = 2, .reserved_tokens = 128, .cache_blocks = 7});
  const std::string text = metrics.prometheus();
  for (const char* line :
       {"sol_requests_total{path=\"/v1/completions\",status=\"200\"} 2\n",
        "sol_prompt_tokens_total 10\n", "sol_prompt_tokens_cached_total 4\n",
        "sol_generated_tokens_total 102\n", "sol_actions_total{action=\"k050-s070-q8\"} 1\n",
        "sol_actions_total{action=\"k100-s100-q16\"} 1\n",
        "sol_actions_total{action=\"other\"} 100\n", "sol_time_to_first_token_seconds_count 1\n",
        "sol_token_seconds_count 101\n", "sol_realised_budget_sum{axis=\"bits\"} 8\n",
        "sol_realised_budget_count{axis=\"keep\"} 1\n", "sol_queue_sequences 3\n",
        "sol_running_sequences 2\n", "sol_cache_blocks 7\n"})
    EXPECT_THAT(text, HasSubstr(line));
}

}  // namespace
}  // namespace sol
