// Requests of /v1/completions and /v1/chat/completions, read and checked (docs/http-api.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "serving/job.h"
#include "serving/served_model.h"

namespace sol {

struct CompletionRequest {
  bool chat = false;
  std::vector<JobRequest> jobs;  // one per choice: those of the first prompt, of the second, ...
  int choices_per_prompt = 1;
  bool stream = false, include_usage = false;
  bool echo = false;
  std::optional<int> logprobs;  // alternatives per token
  bool actions = false;
  uint64_t seed = 0;
};

// Throw ApiError naming the field. `party`: whose turn the request takes in the queue where it
// names no user.
CompletionRequest read_completion(const Json& json, const ServedModel& served, const Party& party);
CompletionRequest read_chat_completion(const Json& json, const ServedModel& served,
                                       const Party& party);

}  // namespace sol
