#include "model/byte_alphabet.h"

#include <array>

#include "model/utf8.h"

namespace sol {
namespace {

struct Alphabet {
  std::array<std::string, 256> letters;
  std::array<int, 0x144> bytes;  // by letter

  Alphabet() {
    bytes.fill(-1);
    char32_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const bool printable =
          (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      const char32_t letter = printable ? static_cast<char32_t>(byte) : next++;
      append_utf8(letter, letters[static_cast<size_t>(byte)]);
      bytes[letter] = byte;
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet instance;
  return instance;
}

}  // namespace

std::string_view byte_to_letter(unsigned char byte) {
  return alphabet().letters[byte];
}

int letter_to_byte(char32_t letter) {
  const Alphabet& table = alphabet();
  return letter < table.bytes.size() ? table.bytes[letter] : -1;
}

void append_as_letters(std::string_view bytes, std::string& out) {
  const Alphabet& table = alphabet();
  for (const char c : bytes) out.append(table.letters[static_cast<unsigned char>(c)]);
}

}  // namespace sol
