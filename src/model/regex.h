// Regular expressions as tokenizer.json has them: Oniguruma's Ruby dialect over Unicode text, run
// by PCRE2.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace sol {

// PCRE2's spelling of an Oniguruma pattern: \s, \w, \h, \b and their complements are written out,
// since PCRE2's own differ (its \s has U+180E, its \w lacks marks, its \h is a space). Throws
// Error, beginning with `where`, for syntax that PCRE2 reads differently (nested or intersected
// character classes).
std::string translate_oniguruma(std::string_view pattern, const std::string& where);

// Whether PCRE2 itself knows what a pattern uses.
bool compiles_in_pcre2(std::string_view pattern);

// What matching needs beside the pattern. One per thread, usable with any pattern.
class MatchScratch {
 public:
  MatchScratch();
  ~MatchScratch();
  MatchScratch(MatchScratch&&) noexcept;
  MatchScratch& operator=(MatchScratch&&) noexcept;

 private:
  friend class Pattern;
  struct State;
  std::unique_ptr<State> state_;
};

struct Match {
  size_t begin, end;
};

// A compiled expression or a literal string; immutable, so threads may share it.
class Pattern {
 public:
  // Both throw Error, beginning with `where`, for a pattern that is empty or does not compile.
  static Pattern regex(std::string_view oniguruma, const std::string& where);
  static Pattern literal(std::string_view text, const std::string& where);

  // First match at or after `from`, lookbehind included. `text` must be valid UTF-8 and `from` on a
  // character. Throws Error when the expression needs more steps than PCRE2's match limit.
  std::optional<Match> find(std::string_view text, size_t from, MatchScratch& scratch) const;

  // Calls visit(begin, end) for each match from left to right. Like Oniguruma's iterator, an empty
  // match directly after the previous match is passed over.
  template <typename Visit>
  void for_each_match(std::string_view text, MatchScratch& scratch, Visit visit) const {
    size_t from = 0;
    size_t last_end = std::string_view::npos;
    while (from <= text.size()) {
      const std::optional<Match> match = find(text, from, scratch);
      if (!match) return;
      if (match->begin == match->end && match->end == last_end) {
        from = next_character(text, from);
        continue;
      }
      visit(match->begin, match->end);
      from = last_end = match->end;
    }
  }

  // `text` with every match replaced by `content`, taken literally.
  std::string replace_all(std::string_view text, std::string_view content,
                          MatchScratch& scratch) const;

 private:
  struct Code;
  static size_t next_character(std::string_view text, size_t at);
  explicit Pattern(std::string source) : source_(std::move(source)) {}

  std::string source_;
  std::shared_ptr<const Code> code_;  // null: source_ is a literal
};

}  // namespace sol
