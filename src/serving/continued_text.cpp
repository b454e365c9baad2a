#include "serving/continued_text.h"

#include <algorithm>

namespace sol {

ContinuedText::ContinuedText(const Tokenizer& tokenizer, std::span<const int32_t> before)
    : tokenizer_(tokenizer), stream_(tokenizer.stream()) {
  if (before.empty()) return;
  const auto alone = tokenizer.stream();
  for (const int32_t id : before) {
    if (!tokenizer.has_token(id)) continue;
    before_ += stream_->push(id);
    alone->push(id);
  }
  owed_ = alone->finish();
}

std::string ContinuedText::push(int32_t id) {
  return tokenizer_.has_token(id) ? without_owed(stream_->push(id)) : std::string();
}

std::string ContinuedText::finish() {
  return without_owed(stream_->finish());
}

// As far as the text begins with it, it is the tokens' before. Where it goes on otherwise, what
// they said at their end was the beginning of something else.
std::string ContinuedText::without_owed(std::string text) {
  if (owed_.empty() || text.empty()) return text;
  size_t same = static_cast<size_t>(std::ranges::mismatch(text, owed_).in1 - text.begin());
  const bool differs = same < text.size() && same < owed_.size();
  // Characters stay whole.
  while (differs && same > 0 && (text[same] & 0xC0) == 0x80) --same;
  before_ += text.substr(0, same);
  owed_ = differs ? std::string() : owed_.substr(same);
  return text.substr(same);
}

}  // namespace sol
