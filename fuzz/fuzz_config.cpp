// Any config.json either is an Error or one whose sizes can be computed with.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "model/config_text.h"
#include "sol/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const sol::LlamaConfig config =
        sol::parse_config({reinterpret_cast<const char*>(data), size}, "fuzz");
    if (config.hidden_size <= 0 || config.num_kv_heads <= 0 || config.head_dim % 2 != 0 ||
        config.num_heads != config.group() * config.num_kv_heads)
      std::abort();
    if (config.head_dim <= 4096) {
      const auto frequencies = sol::rotary_inverse_frequencies(config);
      if (frequencies.size() != static_cast<size_t>(config.head_dim / 2)) std::abort();
    }
  } catch (const sol::Error&) {
  }
  return 0;
}
