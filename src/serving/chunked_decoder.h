// A body in chunks (RFC 9112, 7.1), decoded as it arrives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sol {

class ChunkedDecoder {
 public:
  // Takes `bytes` up to the body's end and appends its data to `data`. Returns how many bytes it
  // took. Throws ApiError 400 for what is not well-formed.
  size_t take(std::string_view bytes, std::string& data);
  // Whether the body has ended.
  bool done() const { return state_ == State::done; }

 private:
  enum class State {
    size,
    extension,
    size_end,
    data,
    data_cr,
    data_lf,
    trailer,
    trailer_end,
    done
  };
  void take_byte(char c);

  State state_ = State::size;
  uint64_t size_ = 0;       // left of the chunk
  int digits_ = 0;          // of its size
  size_t line_ = 0;         // bytes of the present trailer line
  size_t extra_bytes_ = 0;  // of extensions and trailers, which nobody reads
};

}  // namespace sol
