#include "base/hash.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace sol {
namespace {

std::string digits(const XXH128_hash_t& hash) {
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

struct Hash128::State {
  XXH3_state_t xxh;
};

Hash128::Hash128() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->xxh);
}

Hash128::~Hash128() = default;

void Hash128::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
}

void Hash128::add(std::string_view text) {
  add(std::as_bytes(std::span(text)));
}

std::string Hash128::hexadecimal() const {
  return digits(XXH3_128bits_digest(&state_->xxh));
}

std::string hash_128(std::span<const std::byte> bytes) {
  return digits(XXH3_128bits(bytes.data(), bytes.size()));
}

std::string hash_128(std::string_view text) {
  return hash_128(std::as_bytes(std::span(text)));
}

}  // namespace sol
