// A chat template as tokens: text, and what stands between {{ }} and {% %}.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sol::jinja {

struct Token {
  enum class Kind {
    text,              // between tags, white space already dealt with
    expression_begin,  // {{
    expression_end,
    statement_begin,  // {%
    statement_end,
    name,
    string,  // unescaped
    integer,
    floating,
    mark,  // operators and brackets, in `text`
    end,
  };
  Kind kind;
  std::string text;
  int line;
};

// White space as Hugging Face renders chat templates: trim_blocks (the newline after a block goes)
// and lstrip_blocks (spaces from the line's beginning to a block go) are on, a newline at the end
// of the template goes, and "-" and "+" in tags have their meanings. `where` begins messages, which
// name the line. Throws Error for what is not closed or no token.
std::vector<Token> tokenise(std::string_view source, const std::string& where);

}  // namespace sol::jinja
