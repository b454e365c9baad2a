// Zero bytes in texts. The JSON library takes one for the end of its input and passes over what
// follows; in plain text they tell that a file is something else.
#pragma once

#include <string>
#include <string_view>

namespace sol {

// Throws Error for a JSON document that has one anywhere, with its place; `where` is what the
// message calls the document. Of documents of one line the line is not named.
void refuse_zero_bytes(std::string_view json, const std::string& where);

}  // namespace sol
