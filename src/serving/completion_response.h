// What goes back to the client: one object, or a stream of events (docs/http-api.md).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serving/completion_request.h"
#include "serving/outbox.h"

namespace sol {

class CompletionResponse {
 public:
  // Both must outlive it.
  CompletionResponse(const CompletionRequest& request, const ServedModel& served);

  // Takes in what arrived. Returns the events to send, each a JSON text; none unless streaming.
  // Throws ApiError for a sequence that broke.
  std::vector<std::string> take(Outbox::Delivery delivery);

  bool complete() const { return finished_ == choices_.size(); }
  // After the last choice of a stream: usage, if asked for.
  std::optional<std::string> last_event() const;
  // All of it, when not streaming. complete() must hold.
  Json whole();

 private:
  struct Choice {
    std::string text;
    std::vector<TokenOutput> tokens;
    std::optional<Outcome> outcome;
    bool begun = false;  // a chat's first event has been made
    // Where the next token's text begins, in characters of the whole text.
    std::optional<ContinuedText> spoken;
    int64_t offset = 0;
  };

  Json envelope() const;
  Json event_choice(size_t index, const std::vector<TokenOutput>& tokens, const std::string& text);
  Json sol_of(const Choice& choice, const JobRequest& job, bool with_actions) const;
  Json actions_of(const std::vector<TokenOutput>& tokens) const;
  Json logprobs_of(Choice& choice, const std::vector<TokenOutput>& tokens) const;
  Json completion_logprobs(Choice& choice, const std::vector<TokenOutput>& tokens) const;
  Json chat_logprobs(const std::vector<TokenOutput>& tokens) const;
  std::string bytes_of(int32_t token) const;
  std::string shown(int32_t token) const;
  Json usage() const;

  const CompletionRequest& request_;
  const ServedModel& served_;
  std::string id_;
  int64_t created_;
  std::vector<Choice> choices_;
  size_t finished_ = 0;
};

}  // namespace sol
