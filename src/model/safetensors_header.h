// The JSON header of a safetensors file, parsed and checked on its own: what a fuzzer feeds.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/safetensors.h"

namespace sol {

struct HeaderEntry {
  std::string name;
  DType type = DType::f32;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // in bytes, relative to the end of the header
};

struct SafetensorsHeader {
  std::vector<HeaderEntry> tensors;  // ascending by offset, without gap or overlap, up to data_size
  std::map<std::string, std::string> metadata;
};

// The format's own limit (huggingface/safetensors, MAX_HEADER_SIZE).
inline constexpr uint64_t max_header_bytes = 100'000'000;

// Parses the header's text and checks it against the `data_size` bytes that follow it in the file.
// Throws Error naming `where` and the tensor for anything malformed: bad JSON, duplicate names,
// unknown dtypes, negative or reversed offsets, offsets that disagree with the shape, shape
// products that overflow, overlaps, gaps, bytes that belong to no tensor.
SafetensorsHeader parse_safetensors_header(std::string_view text, uint64_t data_size,
                                           const std::string& where);

// Number of bytes of a tensor, or false when it does not fit 63 bits.
bool tensor_bytes(const std::vector<int64_t>& shape, DType type, uint64_t& bytes);

}  // namespace sol
