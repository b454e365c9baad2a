#include "model/jinja_interpreter.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "base/fail.h"
#include "model/jinja_operations.h"

namespace sol::jinja {
namespace {

// What no real template needs, but a hostile one would use up.
constexpr int64_t most_steps = 1'000'000;
constexpr int64_t longest_range = 100'000;

// The refusal of a template, which needs no place in it.
class Refused : public Error {
 public:
  using Error::Error;
};

class Interpreter {
 public:
  Interpreter(const std::string& where, const Globals& globals)
      : where_(where), date_(globals.date), scopes_{globals.variables} {
    auto& outermost = scopes_.front();
    for (const char* name : {"raise_exception", "namespace", "range", "dict"})
      outermost.try_emplace(name, Value::make_function(name));
    if (!date_.empty()) outermost.try_emplace("strftime_now", Value::make_function("strftime_now"));
  }

  std::string run(const Block& block) {
    std::string out;
    execute(block, out);
    return out;
  }

 private:
  enum class Flow { onward, leave, next };
  using Kind = Expression::Kind;

  // What an operation says is wrong, with the place.
  template <typename Operation>
  auto located(int line, const Operation& operation) {
    try {
      return operation();
    } catch (const Refused&) {
      throw;
    } catch (const Error& error) {
      fail("{}: line {}: {}", where_, line, error.what());
    }
  }

  void count(int line) {
    if (++steps_ > most_steps) fail("{}: line {}: the template takes too many steps", where_, line);
  }

  void write(const std::string& text, std::string& out, int line) {
    if (out.size() + text.size() > largest_text)
      fail("{}: line {}: the template writes too much", where_, line);
    out += text;
  }

  Flow execute(const Block& block, std::string& out) {
    for (const Statement& statement : block) {
      count(statement.line);
      switch (statement.kind) {
        case Statement::Kind::text:
          write(statement.text, out, statement.line);
          break;
        case Statement::Kind::output: {
          const Value value = evaluate(*statement.value);
          write(located(statement.line, [&] { return value.to_text(); }), out, statement.line);
          break;
        }
        case Statement::Kind::set:
          assign(statement);
          break;
        case Statement::Kind::set_block: {
          std::string captured;
          scopes_.emplace_back();
          execute(statement.body, captured);
          scopes_.pop_back();
          scopes_.back()[statement.names[0]] = Value(Json(std::move(captured)));
          break;
        }
        case Statement::Kind::branch: {
          const Block& taken =
              evaluate(*statement.value).truthy() ? statement.body : statement.other;
          if (const Flow flow = execute(taken, out); flow != Flow::onward) return flow;
          break;
        }
        case Statement::Kind::loop:
          if (const Flow flow = loop(statement, out); flow != Flow::onward) return flow;
          break;
        case Statement::Kind::leave:
          return Flow::leave;
        case Statement::Kind::next:
          return Flow::next;
      }
    }
    return Flow::onward;
  }

  void assign(const Statement& statement) {
    const Value value = evaluate(*statement.value);
    if (!statement.text.empty()) {
      const Value* space = find(statement.names[0]);
      if (!space || space->kind() != Value::Kind::space)
        fail("{}: line {}: fields can be set of a namespace() only, which {} is not", where_,
             statement.line, statement.names[0]);
      if (value.kind() == Value::Kind::space)
        fail("{}: line {}: a namespace within a namespace is not supported", where_,
             statement.line);
      space->fields()[statement.text] = value;
      return;
    }
    bind(statement.names, value, statement.line);
  }

  void bind(const std::vector<std::string>& names, const Value& value, int line) {
    if (names.size() == 1) {
      scopes_.back()[names[0]] = value;
      return;
    }
    const std::vector<Value> parts = located(line, [&] { return elements(value); });
    if (parts.size() != names.size())
      fail("{}: line {}: {} names for {} values", where_, line, names.size(), parts.size());
    for (size_t i = 0; i < names.size(); ++i) scopes_.back()[names[i]] = parts[i];
  }

  Flow loop(const Statement& statement, std::string& out) {
    const Value over = evaluate(*statement.value);
    std::vector<Value> items = located(statement.line, [&] { return elements(over); });
    if (statement.condition) {
      std::vector<Value> kept;
      for (Value& one : items) {
        count(statement.line);
        scopes_.emplace_back();
        bind(statement.names, one, statement.line);
        if (evaluate(*statement.condition).truthy()) kept.push_back(std::move(one));
        scopes_.pop_back();
      }
      items = std::move(kept);
    }
    if (items.empty()) return execute(statement.other, out);
    const size_t n = items.size();
    for (size_t i = 0; i < n; ++i) {
      count(statement.line);
      scopes_.emplace_back();
      bind(statement.names, items[i], statement.line);
      scopes_.back()["loop"] = Value::make_loop(i, n);
      const Flow flow = execute(statement.body, out);
      scopes_.pop_back();
      if (flow == Flow::leave) break;
    }
    return Flow::onward;
  }

  const Value* find(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      if (const auto found = scope->find(name); found != scope->end()) return &found->second;
    return nullptr;
  }

  Value evaluate(const Expression& e) {
    count(e.line);
    switch (e.kind) {
      case Kind::literal:
        return Value(e.literal);
      case Kind::name: {
        const Value* found = find(e.text);
        return found ? *found : Value();
      }
      case Kind::list:
      case Kind::mapping:
        return collection(e);
      case Kind::field: {
        const Value whole = of_defined(*e.operands[0]);
        return located(e.line, [&] { return field(whole, e.text); });
      }
      case Kind::item: {
        const Value whole = of_defined(*e.operands[0]), index = evaluate(*e.operands[1]);
        return located(e.line, [&] { return item(whole, index); });
      }
      case Kind::slice: {
        const Value whole = of_defined(*e.operands[0]);
        Value bounds[3];
        for (size_t i = 0; i < 3; ++i)
          if (e.operands[i + 1]) bounds[i] = evaluate(*e.operands[i + 1]);
        return located(e.line, [&] { return slice(whole, bounds[0], bounds[1], bounds[2]); });
      }
      case Kind::call:
        return call(e);
      case Kind::filter: {
        const Value value = evaluate(*e.operands[0]);
        const Arguments given = arguments(e);
        return located(e.line, [&] { return filter(e.text, value, given); });
      }
      case Kind::test: {
        const Value value = evaluate(*e.operands[0]);
        const Arguments given = arguments(e);
        return Value(Json(located(e.line, [&] { return test(e.text, value, given); })));
      }
      case Kind::negation:
        return Value(Json(!evaluate(*e.operands[0]).truthy()));
      case Kind::minus:
      case Kind::plus: {
        const Value number = evaluate(*e.operands[0]);
        const Value minus = located(e.line, [&] { return negative(number); });
        return e.kind == Kind::minus ? minus : number;
      }
      case Kind::binary: {
        const Value a = evaluate(*e.operands[0]), b = evaluate(*e.operands[1]);
        return located(e.line, [&] { return binary(e.text, a, b); });
      }
      case Kind::both: {
        Value a = evaluate(*e.operands[0]);
        return a.truthy() ? evaluate(*e.operands[1]) : a;
      }
      case Kind::either: {
        Value a = evaluate(*e.operands[0]);
        return a.truthy() ? a : evaluate(*e.operands[1]);
      }
      case Kind::choice:
        if (evaluate(*e.operands[1]).truthy()) return evaluate(*e.operands[0]);
        return e.operands[2] ? evaluate(*e.operands[2]) : Value();
    }
    return {};
  }

  // What has fields or elements: of something undefined even asking is an error.
  Value of_defined(const Expression& e) {
    Value value = evaluate(e);
    if (value.is_undefined())
      fail("{}: line {}: {} is undefined", where_, e.line,
           e.text.empty() ? "what is indexed" : "'" + e.text + "'");
    return value;
  }

  Json as_json(const Expression& e) {
    const Value value = evaluate(e);
    if (!value.is_data())
      fail("{}: line {}: {} cannot be an element", where_, e.line, value.describe());
    return value.json();
  }

  Value collection(const Expression& e) {
    if (e.kind == Kind::list) {
      Json list = Json::array();
      for (const ExpressionPtr& one : e.operands) list.push_back(as_json(*one));
      return Value(std::move(list));
    }
    Json mapping = Json::object();
    for (size_t i = 0; i < e.operands.size(); i += 2) {
      const Json key = as_json(*e.operands[i]);
      if (!key.is_string()) fail("{}: line {}: a mapping's keys must be strings", where_, e.line);
      mapping[key.get<std::string>()] = as_json(*e.operands[i + 1]);
    }
    return Value(std::move(mapping));
  }

  Arguments arguments(const Expression& e) {
    Arguments given;
    for (size_t i = 1; i < e.operands.size(); ++i) given.values.push_back(evaluate(*e.operands[i]));
    for (const auto& [name, value] : e.named) given.named[name] = evaluate(*value);
    return given;
  }

  Value call(const Expression& e) {
    const Expression& called = *e.operands[0];
    if (called.kind == Kind::field) {
      const Value value = of_defined(*called.operands[0]);
      const Arguments given = arguments(e);
      return located(e.line, [&] { return method(value, called.text, given); });
    }
    const Value function = evaluate(called);
    if (function.kind() != Value::Kind::function)
      fail("{}: line {}: {} is not a function", where_, e.line,
           called.text.empty() ? function.describe() : "'" + called.text + "'");
    const Arguments given = arguments(e);
    return located(e.line, [&] { return call_function(function.function_name(), given); });
  }

  Value call_function(const std::string& name, const Arguments& given) {
    if (name == "raise_exception") {
      given.check(name, 1, 1);
      throw Refused("the chat template refuses these messages: " + given.get(0).to_text());
    }
    if (name == "namespace" || name == "dict") {
      if (!given.values.empty()) fail("{} takes named arguments only", name);
      if (name == "namespace") {
        Value space = Value::make_space();
        for (const auto& [field_name, value] : given.named) {
          if (value.kind() == Value::Kind::space) fail("a namespace within a namespace");
          space.fields()[field_name] = value;
        }
        return space;
      }
      Json mapping = Json::object();
      for (const auto& [key, value] : given.named) {
        if (!value.is_data()) fail("dict does not take {}", value.describe());
        mapping[key] = value.json();
      }
      return Value(std::move(mapping));
    }
    if (name == "range") return range(given);
    given.check(name, 1, 1);
    return Value(Json(formatted_date(given.get(0))));
  }

  static Value range(const Arguments& given) {
    given.check("range", 1, 3);
    for (const Value& value : given.values)
      if (!value.is_integer()) fail("range needs whole numbers, not {}", value.describe());
    const bool one = given.values.size() == 1;
    const int64_t start = one ? 0 : given.values[0].integer();
    const int64_t stop = given.values[one ? 0 : 1].integer();
    const int64_t step = given.values.size() == 3 ? given.values[2].integer() : 1;
    if (step != 1) fail("range with a step is not supported");
    Json list = Json::array();
    if (start < stop &&
        (start < -longest_range || stop > longest_range || stop - start > longest_range))
      fail("a range is longer than {}", longest_range);
    for (int64_t i = start; i < stop; ++i) list.push_back(i);
    return Value(std::move(list));
  }

  // Conversions of the day; there is no time of day to show.
  std::string formatted_date(const Value& format) const {
    if (!format.is_string()) fail("strftime_now needs a string, not {}", format.describe());
    const std::string& text = format.text();
    for (size_t i = 0; i < text.size(); ++i)
      if (text[i] == '%' && (++i == text.size() || std::string_view("dbBYymaAj%").find(text[i]) ==
                                                       std::string_view::npos))
        fail("strftime_now: \"{}\" has a conversion that is not supported", text);
    std::tm day{};
    if (std::sscanf(date_.c_str(), "%d-%d-%d", &day.tm_year, &day.tm_mon, &day.tm_mday) != 3)
      fail("strftime_now: \"{}\" is no date", date_);
    day.tm_year -= 1900;
    day.tm_mon -= 1;
    day.tm_isdst = -1;
    std::tm normal = day;
    normal.tm_hour = 12;
    if (timegm(&normal) == -1 || normal.tm_mday != day.tm_mday || normal.tm_mon != day.tm_mon)
      fail("strftime_now: \"{}\" is no date", date_);
    std::string out(4 * text.size() + 64, '\0');
    out.resize(std::strftime(out.data(), out.size(), text.c_str(), &normal));
    return out;
  }

  const std::string& where_;
  const std::string& date_;
  std::vector<std::map<std::string, Value>> scopes_;
  int64_t steps_ = 0;
};

}  // namespace

std::string render(const Block& block, const std::string& where, const Globals& globals) {
  return Interpreter(where, globals).run(block);
}

}  // namespace sol::jinja
