// What both completion interfaces share in reading a request.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "serving/completion_request.h"
#include "serving/request_fields.h"

namespace sol {

inline constexpr int most_choices = 128;
inline constexpr int most_alternatives = 20;  // to a token; OpenAI's limit for chats

// Sampling, stop texts, the dial: as they stand in the request.
struct CommonFields {
  GenerationOptions options;
  std::vector<std::string> stops;
  Dial dial;
  ResolvedDial resolved;
  Party party;
  int choices = 1;
};

// Throws ApiError (404) for a name that is not the model's.
void check_model_name(const std::string& name, const ServedModel& served);

// All of these throw ApiError naming the field. `party` as in read_completion.
CommonFields read_common(RequestFields& fields, const ServedModel& served, const Party& party,
                         CompletionRequest& request);

// Each must be in the vocabulary. `field` is what an error names.
void check_ids(const std::vector<int32_t>& ids, const ServedModel& served,
               const std::string& field);

// How many tokens may follow a prompt of so many. `asked`: by the request, where it says so, else
// `fallback` as far as the context reaches. The fields are what an error names, whichever is at
// fault.
int answer_length(size_t prompt, std::optional<int64_t> asked, int fallback,
                  const ServedModel& served, const std::string& prompt_field,
                  const std::string& length_field);

// One job per choice of this prompt.
void add_jobs(CompletionRequest& request, const CommonFields& common, std::vector<int32_t> prompt,
              int answer);

}  // namespace sol
