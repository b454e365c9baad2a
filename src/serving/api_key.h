// What a key must be like for clients to be able to send it.
#pragma once

#include <string>
#include <string_view>

namespace sol {

// Throws Error saying what is wrong with a key that "Authorization: Bearer KEY" cannot carry, which
// would lock everybody out: one that has anything but visible ASCII, or more than 4096 characters.
// `source` is what the error calls it: "--api-key".
void require_sendable_key(std::string_view key, const std::string& source);

}  // namespace sol
