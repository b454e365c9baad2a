#include "model/jinja_expressions.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/fail.h"

namespace sol::jinja {
namespace {

using Kind = Expression::Kind;

constexpr int deepest = 100;
constexpr int most_operators = 1000;  // of one expression: a chain of them nests as well

// Counts nesting; a stack has an end.
struct Level {
  Level(int& depth, const TokenReader& tokens) : depth_(depth) {
    if (++depth_ > deepest) tokens.error("an expression is nested too deeply");
  }
  ~Level() { --depth_; }
  int& depth_;
};

ExpressionPtr make(Kind kind, int line) {
  return std::make_unique<Expression>(Expression{.kind = kind, .line = line});
}

ExpressionPtr literal(Json value, int line) {
  ExpressionPtr made = make(Kind::literal, line);
  made->literal = std::move(value);
  return made;
}

template <typename... Operands>
ExpressionPtr join(Kind kind, std::string text, int line, Operands... operands) {
  ExpressionPtr made = make(kind, line);
  made->text = std::move(text);
  (made->operands.push_back(std::move(operands)), ...);
  return made;
}

}  // namespace

const Token& TokenReader::peek(size_t ahead) const {
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}
Token TokenReader::take() {
  const Token token = peek();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}
bool TokenReader::is_mark(std::string_view text) const {
  return peek().kind == Token::Kind::mark && peek().text == text;
}
bool TokenReader::is_name(std::string_view text) const {
  return peek().kind == Token::Kind::name && peek().text == text;
}
bool TokenReader::take_mark(std::string_view text) {
  return is_mark(text) && (take(), true);
}
bool TokenReader::take_name(std::string_view text) {
  return is_name(text) && (take(), true);
}
void TokenReader::expect(Token::Kind kind, std::string_view shown) {
  if (peek().kind != kind) {
    const std::string found = peek().text.empty() ? "something else" : "'" + peek().text + "'";
    error(fmt::format("expected {}, found {}", shown, found));
  }
  take();
}
void TokenReader::expect_mark(std::string_view text) {
  if (!is_mark(text)) expect(Token::Kind::end, text);
  take();
}
std::string TokenReader::expect_name(std::string_view what) {
  if (peek().kind != Token::Kind::name) expect(Token::Kind::name, what);
  return take().text;
}
void TokenReader::error(const std::string& what) const {
  fail("{}: line {}: {}", where_, peek().line, what);
}

void ExpressionParser::begin_outermost() {
  if (depth_ == 0) operators_ = 0;
}

void ExpressionParser::count_operator() {
  if (++operators_ > most_operators) tokens_.error("an expression has too many operators");
}

ExpressionPtr ExpressionParser::parse() {
  begin_outermost();
  const Level level(depth_, tokens_);
  ExpressionPtr value = parse_without_choice();
  while (tokens_.is_name("if")) {
    count_operator();
    const int line = tokens_.take().line;
    ExpressionPtr condition = parse_without_choice();
    ExpressionPtr other;
    if (tokens_.take_name("else")) other = parse();
    value = join(Kind::choice, "", line, std::move(value), std::move(condition), std::move(other));
  }
  return value;
}

ExpressionPtr ExpressionParser::parse_without_choice() {
  begin_outermost();
  const Level level(depth_, tokens_);
  ExpressionPtr value = parse_and();
  while (tokens_.is_name("or")) {
    count_operator();
    const int line = tokens_.take().line;
    value = join(Kind::either, "", line, std::move(value), parse_and());
  }
  return value;
}

ExpressionPtr ExpressionParser::parse_and() {
  ExpressionPtr value = parse_not();
  while (tokens_.is_name("and")) {
    count_operator();
    const int line = tokens_.take().line;
    value = join(Kind::both, "", line, std::move(value), parse_not());
  }
  return value;
}

ExpressionPtr ExpressionParser::parse_not() {
  if (!tokens_.is_name("not")) return parse_comparison();
  const Level level(depth_, tokens_);
  const int line = tokens_.take().line;
  return join(Kind::negation, "", line, parse_not());
}

ExpressionPtr ExpressionParser::parse_comparison() {
  ExpressionPtr value = parse_sum();
  bool compared = false;
  while (true) {
    const Token token = tokens_.peek();
    std::string operation;
    if (token.kind == Token::Kind::mark &&
        (token.text == "==" || token.text == "!=" || token.text == "<" || token.text == "<=" ||
         token.text == ">" || token.text == ">="))
      operation = token.text;
    else if (tokens_.is_name("in"))
      operation = "in";
    else if (tokens_.is_name("not") && tokens_.peek(1).kind == Token::Kind::name &&
             tokens_.peek(1).text == "in")
      operation = "not in";
    if (operation.empty()) return value;
    if (compared) tokens_.error("chained comparisons are not supported");
    compared = true;
    tokens_.take();
    if (operation == "not in") tokens_.take();
    value = join(Kind::binary, operation, token.line, std::move(value), parse_sum());
  }
}

ExpressionPtr ExpressionParser::parse_sum() {
  ExpressionPtr value = parse_concatenation();
  while (tokens_.is_mark("+") || tokens_.is_mark("-")) {
    count_operator();
    const Token token = tokens_.take();
    value = join(Kind::binary, token.text, token.line, std::move(value), parse_concatenation());
  }
  return value;
}

ExpressionPtr ExpressionParser::parse_concatenation() {
  ExpressionPtr value = parse_product();
  while (tokens_.is_mark("~")) {
    count_operator();
    const Token token = tokens_.take();
    value = join(Kind::binary, token.text, token.line, std::move(value), parse_product());
  }
  return value;
}

ExpressionPtr ExpressionParser::parse_product() {
  ExpressionPtr value = parse_signed();
  while (tokens_.is_mark("*") || tokens_.is_mark("/") || tokens_.is_mark("//") ||
         tokens_.is_mark("%")) {
    count_operator();
    const Token token = tokens_.take();
    value = join(Kind::binary, token.text, token.line, std::move(value), parse_signed());
  }
  if (tokens_.is_mark("**")) tokens_.error("the operator ** is not supported");
  return value;
}

// A sign binds less tightly than what follows its operand: -x|abs is (-x)|abs in Jinja.
ExpressionPtr ExpressionParser::parse_signed() {
  const Level level(depth_, tokens_);
  ExpressionPtr value;
  if (tokens_.is_mark("-") || tokens_.is_mark("+")) {
    const Token token = tokens_.take();
    ExpressionPtr operand = parse_postfix(parse_primary());
    value = join(token.text == "-" ? Kind::minus : Kind::plus, "", token.line, std::move(operand));
  } else {
    value = parse_postfix(parse_primary());
  }
  return parse_filters_and_tests(std::move(value));
}

ExpressionPtr ExpressionParser::parse_primary() {
  const Token token = tokens_.take();
  switch (token.kind) {
    case Token::Kind::string: {
      std::string text = token.text;  // adjacent literals are one
      while (tokens_.peek().kind == Token::Kind::string) text += tokens_.take().text;
      return literal(std::move(text), token.line);
    }
    case Token::Kind::integer: {
      int64_t value = 0;
      std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
      return literal(value, token.line);
    }
    case Token::Kind::floating: {
      double value = 0;
      std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
      return literal(value, token.line);
    }
    case Token::Kind::name: {
      if (token.text == "true" || token.text == "True") return literal(true, token.line);
      if (token.text == "false" || token.text == "False") return literal(false, token.line);
      if (token.text == "none" || token.text == "None") return literal(nullptr, token.line);
      constexpr std::array reserved{"and", "else", "if", "in", "is", "not", "or"};
      if (std::ranges::find(reserved, token.text) != reserved.end())
        tokens_.error(fmt::format("unexpected '{}'", token.text));
      ExpressionPtr name = make(Kind::name, token.line);
      name->text = token.text;
      return name;
    }
    case Token::Kind::mark:
      if (token.text == "(") return parse_parenthesis(token.line);
      if (token.text == "[") return parse_sequence(token.line, "]");
      if (token.text == "{") return parse_mapping(token.line);
      tokens_.error(fmt::format("unexpected '{}'", token.text));
    default:
      tokens_.error("an expression ends too early");
  }
}

ExpressionPtr ExpressionParser::parse_parenthesis(int line) {
  if (tokens_.is_mark(")")) return parse_sequence(line, ")");
  ExpressionPtr first = parse();
  if (tokens_.take_mark(")")) return first;
  // A tuple is a list that nobody changes.
  ExpressionPtr list = make(Kind::list, line);
  list->operands.push_back(std::move(first));
  while (tokens_.take_mark(",")) {
    if (tokens_.is_mark(")")) break;
    list->operands.push_back(parse());
  }
  tokens_.expect_mark(")");
  return list;
}

ExpressionPtr ExpressionParser::parse_sequence(int line, std::string_view close) {
  ExpressionPtr list = make(Kind::list, line);
  while (!tokens_.is_mark(close)) {
    list->operands.push_back(parse());
    if (!tokens_.take_mark(",")) break;
  }
  tokens_.expect_mark(close);
  return list;
}

ExpressionPtr ExpressionParser::parse_mapping(int line) {
  ExpressionPtr mapping = make(Kind::mapping, line);
  while (!tokens_.is_mark("}")) {
    mapping->operands.push_back(parse());
    tokens_.expect_mark(":");
    mapping->operands.push_back(parse());
    if (!tokens_.take_mark(",")) break;
  }
  tokens_.expect_mark("}");
  return mapping;
}

ExpressionPtr ExpressionParser::parse_postfix(ExpressionPtr value) {
  while (true) {
    count_operator();
    const int line = tokens_.peek().line;
    if (tokens_.take_mark(".")) {
      value = join(Kind::field, tokens_.expect_name("a field"), line, std::move(value));
    } else if (tokens_.take_mark("[")) {
      value = parse_subscript(std::move(value), line);
    } else if (tokens_.take_mark("(")) {
      value = join(Kind::call, "", line, std::move(value));
      parse_arguments(*value);
    } else {
      return value;
    }
  }
}

ExpressionPtr ExpressionParser::parse_subscript(ExpressionPtr value, int line) {
  ExpressionPtr parts[3];
  size_t colons = 0;
  while (!tokens_.is_mark("]")) {
    if (tokens_.take_mark(":")) {
      if (++colons > 2) tokens_.error("a slice has too many parts");
    } else {
      if (parts[colons]) tokens_.error("expected ]");
      parts[colons] = parse();
    }
  }
  tokens_.take();
  if (colons == 0) {
    if (!parts[0]) tokens_.error("an index is missing");
    return join(Kind::item, "", line, std::move(value), std::move(parts[0]));
  }
  return join(Kind::slice, "", line, std::move(value), std::move(parts[0]), std::move(parts[1]),
              std::move(parts[2]));
}

void ExpressionParser::parse_arguments(Expression& call) {
  while (!tokens_.is_mark(")")) {
    if (tokens_.is_mark("*") || tokens_.is_mark("**"))
      tokens_.error("arguments by * are not supported");
    const bool is_named = tokens_.peek().kind == Token::Kind::name &&
                          tokens_.peek(1).kind == Token::Kind::mark && tokens_.peek(1).text == "=";
    if (is_named) {
      const std::string name = tokens_.take().text;
      tokens_.take();
      call.named.emplace_back(name, parse());
    } else {
      if (!call.named.empty()) tokens_.error("an argument without a name follows one with a name");
      call.operands.push_back(parse());
    }
    if (!tokens_.take_mark(",")) break;
  }
  tokens_.expect_mark(")");
}

ExpressionPtr ExpressionParser::parse_filters_and_tests(ExpressionPtr value) {
  while (true) {
    count_operator();
    const int line = tokens_.peek().line;
    if (tokens_.take_mark("|")) {
      value = join(Kind::filter, tokens_.expect_name("a filter"), line, std::move(value));
      if (tokens_.take_mark("(")) parse_arguments(*value);
    } else if (tokens_.take_name("is")) {
      value = parse_test(std::move(value), line);
    } else if (tokens_.is_mark("(")) {
      tokens_.error("calling a filter's result is not supported");
    } else {
      return value;
    }
  }
}

ExpressionPtr ExpressionParser::parse_test(ExpressionPtr value, int line) {
  const bool negated = tokens_.take_name("not");
  ExpressionPtr test = join(Kind::test, tokens_.expect_name("a test"), line, std::move(value));
  const Token& next = tokens_.peek();
  constexpr std::array not_an_argument{"and", "or", "if", "else", "is", "not", "in"};
  const bool name_follows = next.kind == Token::Kind::name &&
                            std::ranges::find(not_an_argument, next.text) == not_an_argument.end();
  if (tokens_.take_mark("("))
    parse_arguments(*test);
  else if (name_follows || next.kind == Token::Kind::string || next.kind == Token::Kind::integer ||
           next.kind == Token::Kind::floating || tokens_.is_mark("[") || tokens_.is_mark("{"))
    test->operands.push_back(parse_postfix(parse_primary()));
  return negated ? join(Kind::negation, "", line, std::move(test)) : std::move(test);
}

}  // namespace sol::jinja
