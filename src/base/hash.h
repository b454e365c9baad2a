// Identities of data: XXH3-128, which is fast and no protection against malice.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace sol {

// A hash over everything added, in order; how it was cut into pieces does not matter.
class Hash128 {
 public:
  Hash128();
  ~Hash128();
  Hash128(const Hash128&) = delete;
  Hash128& operator=(const Hash128&) = delete;

  void add(std::span<const std::byte> bytes);
  void add(std::string_view text);
  std::string hexadecimal() const;  // 32 digits

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string hash_128(std::span<const std::byte> bytes);  // 32 hexadecimal digits
std::string hash_128(std::string_view text);

}  // namespace sol
