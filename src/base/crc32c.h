// CRC-32C (Castagnoli; RFC 3720, appendix B.4), which TFRecord files use.
#pragma once

#include <cstdint>
#include <string_view>

namespace sol {

uint32_t crc32c(std::string_view bytes);

}  // namespace sol
