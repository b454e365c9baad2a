// The two classes of characters that added tokens look at beside them.
#pragma once

namespace sol {

bool is_space(char32_t c);  // Unicode's White_Space
bool is_word(char32_t c);   // \w: alphabetic, mark, decimal digit, connector punctuation, joiner

}  // namespace sol
