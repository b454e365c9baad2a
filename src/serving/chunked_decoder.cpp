#include "serving/chunked_decoder.h"

#include <algorithm>

#include "serving/api_error.h"

namespace sol {
namespace {

constexpr int most_digits = 15;  // leading zeros count: 2^60 bytes is more than anybody sends
constexpr size_t most_extra_bytes = 64 * 1024;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

size_t ChunkedDecoder::take(std::string_view bytes, std::string& data) {
  size_t at = 0;
  while (at < bytes.size() && !done()) {
    if (state_ != State::data) {
      take_byte(bytes[at++]);
      continue;
    }
    const auto count = static_cast<size_t>(std::min<uint64_t>(size_, bytes.size() - at));
    data.append(bytes.substr(at, count));
    at += count;
    size_ -= count;
    if (size_ == 0) state_ = State::data_cr;
  }
  return at;
}

void ChunkedDecoder::take_byte(char c) {
  const auto expect = [&](char wanted, State next) {
    if (c != wanted) throw malformed("a chunk of the body does not end where its size says");
    state_ = next;
  };
  switch (state_) {
    case State::size:
      if (const int digit = hex_digit(c); digit >= 0) {
        if (++digits_ > most_digits) throw malformed("a chunk's size has too many digits");
        size_ = size_ * 16 + static_cast<uint64_t>(digit);
        return;
      }
      if (digits_ == 0) throw malformed("a chunk's size must be a hexadecimal number");
      if (c == ';') return void(state_ = State::extension);
      if (c != '\r') throw malformed("a chunk's size must be a hexadecimal number");
      return void(state_ = State::size_end);
    case State::extension:
      if (++extra_bytes_ > most_extra_bytes) throw malformed("its chunks' extensions are too long");
      if (c == '\n') throw malformed("lines must end with CR and LF");
      if (c == '\r') state_ = State::size_end;
      return;
    case State::size_end:
      expect('\n', size_ > 0 ? State::data : State::trailer);
      digits_ = 0;
      return;
    case State::data_cr:
      return expect('\r', State::data_lf);
    case State::data_lf:
      return expect('\n', State::size);
    case State::trailer:
      if (c == '\n') throw malformed("lines must end with CR and LF");
      if (c == '\r') return void(state_ = State::trailer_end);
      if (++extra_bytes_ > most_extra_bytes) throw malformed("its trailers are too long");
      ++line_;
      return;
    case State::trailer_end:
      expect('\n', line_ == 0 ? State::done : State::trailer);
      line_ = 0;
      return;
    case State::data:
    case State::done:
      return;
  }
}

}  // namespace sol
