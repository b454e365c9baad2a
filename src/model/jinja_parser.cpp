#include "model/jinja_parser.h"

#include <algorithm>
#include <initializer_list>

#include "base/fail.h"
#include "model/jinja_expressions.h"
#include "model/jinja_lexer.h"

namespace sol::jinja {
namespace {

// Nested deeper than any template that was written by hand; a stack has an end.
constexpr int deepest = 64;

class Parser {
 public:
  explicit Parser(TokenReader& tokens) : tokens_(tokens), expressions_(tokens) {}

  Block template_body() {
    Block block = body({});
    return block;
  }

 private:
  using Kind = Token::Kind;

  // Statements up to one whose name is in `ends` (which is consumed up to its name), or the end.
  Block body(std::initializer_list<std::string_view> ends) {
    if (++depth_ > deepest) tokens_.error("blocks are nested too deeply");
    const int opened = tokens_.peek().line;
    Block block;
    while (true) {
      const Token token = tokens_.peek();
      if (token.kind == Kind::end) {
        if (ends.size() > 0)
          tokens_.error(
              fmt::format("a block that begins before line {} is not closed", opened + 1));
        break;
      }
      tokens_.take();
      if (token.kind == Kind::text) {
        block.push_back({.kind = Statement::Kind::text, .line = token.line, .text = token.text});
      } else if (token.kind == Kind::expression_begin) {
        Statement statement{.kind = Statement::Kind::output, .line = token.line};
        statement.value = expressions_.parse();
        tokens_.expect(Kind::expression_end, "}}");
        block.push_back(std::move(statement));
      } else {  // statement_begin: the lexer hands out nothing else here
        const std::string name = tokens_.expect_name("a statement");
        if (std::ranges::find(ends, name) != ends.end()) {
          ended_by_ = name;
          break;
        }
        statement(name, token.line, block);
      }
    }
    --depth_;
    return block;
  }

  void end_tag() { tokens_.expect(Kind::statement_end, "%}"); }

  void statement(const std::string& name, int line, Block& block) {
    if (name == "if") return branch(line, block);
    if (name == "for") return loop(line, block);
    if (name == "set") return assignment(line, block);
    if (name == "generation") {  // marks what is learned from; what it holds is rendered as ever
      end_tag();
      Block inner = body({"endgeneration"});
      end_tag();
      std::ranges::move(inner, std::back_inserter(block));
      return;
    }
    if (name == "break" || name == "continue") {
      if (loops_ == 0) tokens_.error(fmt::format("{{% {} %}} outside a loop", name));
      end_tag();
      block.push_back(
          {.kind = name == "break" ? Statement::Kind::leave : Statement::Kind::next, .line = line});
      return;
    }
    tokens_.error(fmt::format("{{% {} %}} is not supported", name));
  }

  void branch(int line, Block& block) {
    Statement statement{.kind = Statement::Kind::branch, .line = line};
    statement.value = expressions_.parse();
    end_tag();
    statement.body = body({"elif", "else", "endif"});
    if (ended_by_ == "elif") {
      if (++depth_ > deepest) tokens_.error("blocks are nested too deeply");
      branch(line, statement.other);
      --depth_;
    } else {
      const bool has_else = ended_by_ == "else";
      end_tag();
      if (has_else) {
        statement.other = body({"endif"});
        end_tag();
      }
    }
    block.push_back(std::move(statement));
  }

  void loop(int line, Block& block) {
    Statement statement{.kind = Statement::Kind::loop, .line = line};
    do {
      statement.names.push_back(tokens_.expect_name("a loop's variable"));
    } while (tokens_.take_mark(","));
    if (!tokens_.take_name("in")) tokens_.error("a for needs \"in\"");
    // "x for y in a if b": the condition is the loop's, not a choice's.
    statement.value = expressions_.parse_without_choice();
    if (tokens_.take_name("if")) statement.condition = expressions_.parse();
    if (tokens_.take_name("recursive")) tokens_.error("recursive loops are not supported");
    end_tag();
    ++loops_;
    statement.body = body({"else", "endfor"});
    --loops_;
    const bool has_else = ended_by_ == "else";
    end_tag();
    if (has_else) {
      statement.other = body({"endfor"});
      end_tag();
    }
    block.push_back(std::move(statement));
  }

  void assignment(int line, Block& block) {
    Statement statement{.kind = Statement::Kind::set, .line = line};
    statement.names.push_back(tokens_.expect_name("a variable"));
    if (tokens_.take_mark(".")) {
      statement.text = tokens_.expect_name("a namespace's field");
    } else {
      while (tokens_.take_mark(",")) statement.names.push_back(tokens_.expect_name("a variable"));
    }
    if (tokens_.take_mark("=")) {
      statement.value = expressions_.parse();
      end_tag();
    } else {
      if (statement.names.size() > 1 || !statement.text.empty() ||
          tokens_.peek().kind != Kind::statement_end)
        tokens_.error("a set needs \"=\"");
      end_tag();
      statement.kind = Statement::Kind::set_block;
      statement.body = body({"endset"});
      end_tag();
    }
    block.push_back(std::move(statement));
  }

  TokenReader& tokens_;
  ExpressionParser expressions_;
  std::string ended_by_;
  int depth_ = 0, loops_ = 0;
};

}  // namespace

Block parse(std::string_view source, const std::string& where) {
  TokenReader tokens(tokenise(source, where), where);
  return Parser(tokens).template_body();
}

}  // namespace sol::jinja
