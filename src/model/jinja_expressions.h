// Expressions of chat templates, by Jinja's precedence.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/jinja_ast.h"
#include "model/jinja_lexer.h"

namespace sol::jinja {

class TokenReader {
 public:
  TokenReader(std::vector<Token> tokens, const std::string& where)
      : tokens_(std::move(tokens)), where_(where) {}

  const Token& peek(size_t ahead = 0) const;
  Token take();  // the end token stays
  bool is_mark(std::string_view text) const;
  bool is_name(std::string_view text) const;
  bool take_mark(std::string_view text);
  bool take_name(std::string_view text);
  void expect(Token::Kind kind, std::string_view shown);
  void expect_mark(std::string_view text);
  std::string expect_name(std::string_view what);  // throws Error saying that `what` was expected
  [[noreturn]] void error(const std::string& what) const;

 private:
  std::vector<Token> tokens_;
  const std::string& where_;
  size_t at_ = 0;
};

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenReader& tokens) : tokens_(tokens) {}

  ExpressionPtr parse();                 // x if y else z, and all below
  ExpressionPtr parse_without_choice();  // or, and all below

 private:
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_comparison();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concatenation();
  ExpressionPtr parse_product();
  ExpressionPtr parse_signed();
  ExpressionPtr parse_primary();
  ExpressionPtr parse_postfix(ExpressionPtr value);
  ExpressionPtr parse_filters_and_tests(ExpressionPtr value);
  ExpressionPtr parse_subscript(ExpressionPtr value, int line);
  ExpressionPtr parse_test(ExpressionPtr value, int line);
  ExpressionPtr parse_parenthesis(int line);
  ExpressionPtr parse_sequence(int line, std::string_view close);
  ExpressionPtr parse_mapping(int line);
  void parse_arguments(Expression& call);

  void begin_outermost();
  void count_operator();  // throws Error where there are too many for an evaluator's stack

  TokenReader& tokens_;
  int depth_ = 0, operators_ = 0;
};

}  // namespace sol::jinja
