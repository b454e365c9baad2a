// Unicode's four normal forms.
#pragma once

#include <string>
#include <string_view>

namespace sol {

enum class NormalForm { nfc, nfd, nfkc, nfkd };

// The text must be valid UTF-8. Time is linear but for sorting runs of combining marks.
std::string to_normal_form(std::string_view text, NormalForm form);

}  // namespace sol
