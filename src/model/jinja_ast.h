// A parsed chat template.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace sol::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Expression {
  enum class Kind {
    literal,   // `literal`
    name,      // `text`
    list,      // operands
    mapping,   // operands: key, value, key, value, ...
    field,     // operands[0].text
    item,      // operands[0][operands[1]]
    slice,     // operands[0][operands[1]:operands[2]:operands[3]], each may be null
    call,      // operands[0](operands[1...], named...)
    filter,    // operands[0] | text(operands[1...], named...)
    test,      // operands[0] is text(operands[1...])
    negation,  // not operands[0]
    minus,
    plus,    // of a number
    binary,  // operands[0] text operands[1]: arithmetic, ~, comparisons, in, not in
    both,
    either,  // and, or
    choice,  // operands[0] if operands[1] else operands[2], which may be null
  };
  Kind kind;
  int line;
  std::string text = {};
  Json literal = {};
  std::vector<ExpressionPtr> operands = {};
  std::vector<std::pair<std::string, ExpressionPtr>> named = {};
};

struct Statement;
using Block = std::vector<Statement>;

struct Statement {
  enum class Kind {
    text,       // `text`
    output,     // {{ value }}
    set,        // names (or name.field) = value
    set_block,  // names[0] = what `body` renders
    branch,     // if value: body, else: other
    loop,       // for names in value (if condition): body, else: other
    leave,      // break
    next,       // continue
  };
  Kind kind;
  int line;
  std::string text = {};  // of set: the field, when names[0] is a namespace
  std::vector<std::string> names = {};
  ExpressionPtr value = {}, condition = {};
  Block body = {}, other = {};
};

}  // namespace sol::jinja
