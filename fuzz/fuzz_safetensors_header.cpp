// Any header text either is an Error or describes tensors that exactly fill the data behind it.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "model/safetensors_header.h"
#include "sol/error.h"

// The first two bytes are the data's size, the rest is the header.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint16_t data_size = 0;
  if (size < sizeof(data_size)) return 0;
  std::memcpy(&data_size, data, sizeof(data_size));
  const std::string_view text(reinterpret_cast<const char*>(data) + sizeof(data_size),
                              size - sizeof(data_size));
  try {
    const sol::SafetensorsHeader header = sol::parse_safetensors_header(text, data_size, "fuzz");
    uint64_t position = 0;
    for (const sol::HeaderEntry& entry : header.tensors) {
      uint64_t bytes = 0;
      if (entry.begin != position || !sol::tensor_bytes(entry.shape, entry.type, bytes) ||
          entry.end - entry.begin != bytes)
        std::abort();
      position = entry.end;
    }
    if (position != data_size) std::abort();
  } catch (const sol::Error&) {
  }
  return 0;
}
