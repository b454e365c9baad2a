// GPT-2's byte alphabet: one printable character for each byte, so that byte sequences can be
// written as text. Printable Latin-1 stands for itself; the other 68 bytes are U+0100 and up, in
// order.
#pragma once

#include <string>
#include <string_view>

namespace sol {

std::string_view byte_to_letter(unsigned char byte);  // the letter's UTF-8
int letter_to_byte(char32_t letter);                  // -1: not in the alphabet

// All bytes of `bytes` as letters.
void append_as_letters(std::string_view bytes, std::string& out);

}  // namespace sol
