// One turn of a conversation.
#pragma once

#include <string>

namespace sol {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
  bool operator==(const ChatMessage&) const = default;
};

}  // namespace sol
