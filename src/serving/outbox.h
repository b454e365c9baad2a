// What a request's sequences produce, on its way from the engine's thread to the request's.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "policy/generation.h"
#include "sol/action.h"

namespace sol {

struct TokenLogProb {
  int32_t token = -1;
  float log_prob = 0;  // natural logarithm
};

// One token of a prompt that is scored, or of an answer.
struct TokenOutput {
  int32_t token = -1;
  std::string text;               // that may be shown from here on: whole characters
  std::optional<float> log_prob;  // where asked for; the first token of a prompt has none
  std::vector<TokenLogProb> top;  // likeliest first
  std::optional<Action> action;   // of the step that led to it; none in a dense pass
  bool effective = false;
  bool in_prompt = false;
};

// How one sequence ended.
struct Outcome {
  FinishReason finish = FinishReason::none;
  std::exception_ptr error;  // not null: it broke, and nothing else here counts
  std::string before;        // the prompt's text, where the answer's goes on from it
  std::string text;          // the last of the answer's
  GenerationResult result;
  int cached_tokens = 0;                       // of the prompt, computed for another request before
  double ms_per_token = 0;                     // from the second token on
  double policy_share = 0, refresh_share = 0;  // of that time
  std::optional<double> fastest_ms, dense_ms;  // where a time was asked for
};

class Outbox {
 public:
  struct Delivery {
    size_t index = 0;  // which of the request's sequences
    std::vector<TokenOutput> tokens;
    std::optional<Outcome> outcome;  // its last delivery
  };

  // For so many sequences. `each_token`: somebody wants every token at once. Otherwise nobody is
  // woken for one: the threads that compute would wait for the processor that it takes.
  explicit Outbox(size_t sequences, bool each_token = true)
      : sequences_(sequences), each_token_(each_token) {
    waiting_.reserve(sequences);
  }

  void put(size_t index, TokenOutput token);
  // Takes no memory: that there is none left can be said.
  void finish(size_t index, Outcome outcome);

  // Everything there is, waiting up to `patience` for a token or, where those do not count, for an
  // outcome; empty when nothing came.
  std::vector<Delivery> take(std::chrono::milliseconds patience);

 private:
  Delivery& delivery_of(size_t index);
  const size_t sequences_;
  const bool each_token_;
  bool something_ended_ = false;  // since the last take()
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Delivery> waiting_;  // has room for all
};

}  // namespace sol
