#define PCRE2_CODE_UNIT_WIDTH 8
#include "model/regex.h"

#include <pcre2.h>

#include "base/fail.h"
#include "model/utf8.h"

namespace sol {

struct MatchScratch::State {
  struct Free {
    void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
    void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
    void operator()(pcre2_jit_stack* p) const { pcre2_jit_stack_free(p); }
  };
  std::unique_ptr<pcre2_match_data, Free> data{pcre2_match_data_create(1, nullptr)};
  std::unique_ptr<pcre2_match_context, Free> context{pcre2_match_context_create(nullptr)};
  std::unique_ptr<pcre2_jit_stack, Free> stack;

  State() {
    if (!data || !context) throw std::bad_alloc();
  }

  // The 32 KiB of machine stack that compiled patterns use suffice but for deep recursion.
  bool grow_stack() {
    if (stack) return false;
    stack.reset(pcre2_jit_stack_create(64 * 1024, 16 * 1024 * 1024, nullptr));
    if (!stack) return false;
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
    return true;
  }
};

MatchScratch::MatchScratch() : state_(std::make_unique<State>()) {}
MatchScratch::~MatchScratch() = default;
MatchScratch::MatchScratch(MatchScratch&&) noexcept = default;
MatchScratch& MatchScratch::operator=(MatchScratch&&) noexcept = default;

namespace {

struct FreeCode {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
  void operator()(pcre2_compile_context* p) const { pcre2_compile_context_free(p); }
};
using CompiledCode = std::unique_ptr<pcre2_code, FreeCode>;

std::string pcre2_message(int error) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(error, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

// Null where the pattern does not compile; then `error` and `offset` say why and where.
CompiledCode compile(std::string_view pattern, int& error, size_t& offset) {
  const std::unique_ptr<pcre2_compile_context, FreeCode> context(
      pcre2_compile_context_create(nullptr));
  if (!context) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  // In Ruby's dialect ^ and $ match at line ends always.
  return CompiledCode(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error,
                    &offset, context.get()));
}

}  // namespace

struct Pattern::Code {
  CompiledCode compiled;
};

bool compiles_in_pcre2(std::string_view pattern) {
  int error = 0;
  size_t offset = 0;
  return compile(pattern, error, offset) != nullptr;
}

Pattern Pattern::regex(std::string_view oniguruma, const std::string& where) {
  if (oniguruma.empty()) fail("{}: the pattern is empty", where);
  const std::string translated = translate_oniguruma(oniguruma, where);
  int error = 0;
  size_t offset = 0;
  auto code = std::make_shared<Code>();
  code->compiled = compile(translated, error, offset);
  if (!code->compiled) {
    fail("{}: the pattern \"{}\" does not compile: {} (at byte {} of \"{}\")", where, oniguruma,
         pcre2_message(error), offset, translated);
  }
  // Without a just-in-time compiler for this machine pcre2_match interprets, with the same result.
  pcre2_jit_compile(code->compiled.get(), PCRE2_JIT_COMPLETE);
  Pattern pattern{std::string(oniguruma)};
  pattern.code_ = std::move(code);
  return pattern;
}

Pattern Pattern::literal(std::string_view text, const std::string& where) {
  if (text.empty()) fail("{}: the pattern is empty", where);
  return Pattern{std::string(text)};
}

std::optional<Match> Pattern::find(std::string_view text, size_t from,
                                   MatchScratch& scratch) const {
  if (!code_) {
    const size_t at = text.find(source_, from);
    if (at == std::string_view::npos) return std::nullopt;
    return Match{at, at + source_.size()};
  }
  MatchScratch::State& state = *scratch.state_;
  const auto run = [&] {
    return pcre2_match(code_->compiled.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                       text.size(), from, PCRE2_NO_UTF_CHECK, state.data.get(),
                       state.context.get());
  };
  int result = run();
  if (result == PCRE2_ERROR_JIT_STACKLIMIT && state.grow_stack()) result = run();
  if (result == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (result < 0) {
    fail("the tokenizer's pattern \"{}\" fails at byte {} of {}: {}", source_, from, text.size(),
         pcre2_message(result));
  }
  const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(state.data.get());
  // \K inside a lookahead may report a match that ends before it begins.
  if (offsets[0] > offsets[1] || offsets[0] < from) {
    fail("the tokenizer's pattern \"{}\" matches backwards at byte {}", source_, from);
  }
  return Match{offsets[0], offsets[1]};
}

std::string Pattern::replace_all(std::string_view text, std::string_view content,
                                 MatchScratch& scratch) const {
  std::string out;
  size_t done = 0;
  for_each_match(text, scratch, [&](size_t begin, size_t end) {
    out.append(text.substr(done, begin - done)).append(content);
    done = end;
  });
  out.append(text.substr(done));
  return out;
}

size_t Pattern::next_character(std::string_view text, size_t at) {
  return at < text.size() ? at + utf8_length(text[at]) : at + 1;
}

}  // namespace sol
