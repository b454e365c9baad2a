#include "evaluation/tasks/requests.h"

#include <algorithm>
#include <string>

#include "base/fail.h"
#include "model/python_text.h"

namespace sol {

RequestEncoder::RequestEncoder(const Tokenizer& tokenizer, int max_length)
    : tokenizer_(tokenizer),
      max_length_(max_length),
      prefix_(tokenizer.bos_token_id() >= 0 ? tokenizer.bos_token_id() : tokenizer.eos_token_id()) {
  if (prefix_ < 0)
    fail("the tokenizer names neither a begin nor an end token; texts without a context need one");
  if (const int32_t begin = tokenizer.bos_token_id(); begin >= 0)
    begin_text_ = tokenizer.decode({&begin, 1});
}

std::vector<int32_t> RequestEncoder::encode(std::string_view text) const {
  const bool has_begin = !begin_text_.empty() && text.starts_with(begin_text_);
  return tokenizer_.encode(text, {.add_special_tokens = !has_begin});
}

TokenRequest RequestEncoder::pair(std::string_view context, std::string_view continuation) const {
  TokenRequest request;
  if (context.empty()) {
    request.tokens = tokenizer_.encode(continuation, {.add_special_tokens = false});
    // A continuation that brings its own begin token is conditioned on that one.
    if (request.tokens.empty() || request.tokens.front() != prefix_)
      request.tokens.insert(request.tokens.begin(), prefix_);
    request.context = 1;
  } else {
    const std::string_view bare = right_strip(context);
    request.tokens = encode(std::string(context) + std::string(continuation));
    request.context = encode(bare).size();
    if (request.context == 0) {
      request.tokens.insert(request.tokens.begin(), prefix_);
      request.context = 1;
    }
  }
  if (request.tokens.size() <= request.context)
    fail("the continuation \"{}\" has no token of its own after its context", continuation);
  return request;
}

TokenRequest RequestEncoder::truncated(TokenRequest request) const {
  const size_t most = static_cast<size_t>(max_length_) + 1;  // the last token is no input
  if (request.tokens.size() <= most) return request;
  const size_t drop = request.tokens.size() - most;
  if (drop >= request.context)
    fail("a continuation has {} tokens, but the model has only {} positions", request.scored(),
         max_length_);
  request.tokens.erase(request.tokens.begin(),
                       request.tokens.begin() + static_cast<std::ptrdiff_t>(drop));
  request.context -= drop;
  return request;
}

std::vector<TokenRequest> RequestEncoder::rolling(std::string_view text) const {
  const std::vector<int32_t> ids = encode(text);
  const auto length = static_cast<size_t>(max_length_);
  std::vector<TokenRequest> windows;
  for (size_t done = 0; done < ids.size();) {
    const size_t end = std::min(done + length, ids.size());
    TokenRequest window;
    if (done == 0) {
      window.tokens.push_back(prefix_);
    } else {
      const size_t begin = end - length - 1;  // `length` inputs
      window.tokens.assign(ids.begin() + static_cast<std::ptrdiff_t>(begin),
                           ids.begin() + static_cast<std::ptrdiff_t>(done));
    }
    window.context = window.tokens.size();
    window.tokens.insert(window.tokens.end(), ids.begin() + static_cast<std::ptrdiff_t>(done),
                         ids.begin() + static_cast<std::ptrdiff_t>(end));
    windows.push_back(std::move(window));
    done = end;
  }
  return windows;
}

std::vector<int32_t> RequestEncoder::prompt(std::string_view text, int max_tokens) const {
  if (max_tokens >= max_length_)
    fail("{} tokens are to be generated, but the model has only {} positions", max_tokens,
         max_length_);
  std::vector<int32_t> ids = encode(text);
  const auto most = static_cast<size_t>(max_length_ - max_tokens);
  if (ids.size() > most) ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(most));
  if (ids.empty()) fail("the prompt has no token");
  return ids;
}

}  // namespace sol
