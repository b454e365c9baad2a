// What the server says about its model and tokenizer (docs/http-api.md).
#pragma once

#include "serving/served_model.h"

namespace sol {

Json describe_models(const ServedModel& served);     // GET /v1/models
Json describe_model(const ServedModel& served);      // GET /v1/models/NAME
Json describe_tokenizer(const ServedModel& served);  // GET /tokenizer_info
// POST /tokenize, /detokenize. Throw ApiError.
Json tokenize(const Json& request, const ServedModel& served);
Json detokenize(const Json& request, const ServedModel& served);

}  // namespace sol
