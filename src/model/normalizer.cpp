#include "model/normalizer.h"

#include <fmt/ranges.h>
#include <utf8proc.h>

#include "base/fail.h"
#include "model/unicode_normal_form.h"
#include "model/utf8.h"

namespace sol {

struct Normalizer::Unicode : Step {
  explicit Unicode(NormalForm f) : form(f) {}
  std::string apply(std::string_view text, MatchScratch&) const override {
    return to_normal_form(text, form);
  }
  NormalForm form;
};

struct Normalizer::Lowercase : Step {
  std::string apply(std::string_view text, MatchScratch&) const override {
    std::string out;
    out.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
      const char32_t c = next_code_point(text, at);
      // The only character whose lower case is more than one (SpecialCasing.txt, unconditional).
      if (c == 0x130) {
        out += "i\xCC\x87";
      } else {
        append_utf8(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))), out);
      }
    }
    return out;
  }
};

struct Normalizer::Prepend : Step {
  explicit Prepend(std::string p) : prefix(std::move(p)) {}
  std::string apply(std::string_view text, MatchScratch&) const override {
    return text.empty() ? std::string() : prefix + std::string(text);
  }
  std::string prefix;
};

struct Normalizer::Replace : Step {
  Replace(Pattern p, std::string c) : pattern(std::move(p)), content(std::move(c)) {}
  std::string apply(std::string_view text, MatchScratch& scratch) const override {
    return pattern.replace_all(text, content, scratch);
  }
  Pattern pattern;
  std::string content;
};

Pattern parse_pattern(const Component& pattern) {
  pattern.allow_only({"String", "Regex"});
  if (pattern.has("String") == pattern.has("Regex")) {
    fail("{}: expected one of \"String\" and \"Regex\"", pattern.where());
  }
  return pattern.has("String") ? Pattern::literal(pattern.text("String"), pattern.where())
                               : Pattern::regex(pattern.text("Regex"), pattern.where());
}

Normalizer Normalizer::parse(const Component& component) {
  Normalizer normalizer;
  if (!component.is_null()) normalizer.add(component);
  return normalizer;
}

void Normalizer::add(const Component& component) {
  const std::string type = component.type();
  if (type == "Sequence") {
    component.allow_only({"type", "normalizers"});
    for (const Component& step : component.list("normalizers")) add(step);
    return;
  }
  if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    component.allow_only({"type"});
    const NormalForm form = type == "NFC"    ? NormalForm::nfc
                            : type == "NFD"  ? NormalForm::nfd
                            : type == "NFKC" ? NormalForm::nfkc
                                             : NormalForm::nfkd;
    steps_.push_back(std::make_shared<Unicode>(form));
  } else if (type == "Lowercase") {
    component.allow_only({"type"});
    steps_.push_back(std::make_shared<Lowercase>());
  } else if (type == "Prepend") {
    component.allow_only({"type", "prepend"});
    steps_.push_back(std::make_shared<Prepend>(component.text("prepend")));
  } else if (type == "Replace") {
    component.allow_only({"type", "pattern", "content"});
    steps_.push_back(std::make_shared<Replace>(parse_pattern(component.child("pattern")),
                                               component.text("content")));
  } else {
    component.unknown_type();
  }
  names_.push_back(type);
}

std::string Normalizer::apply(std::string_view text, MatchScratch& scratch) const {
  std::string current(text);
  for (const auto& step : steps_) current = step->apply(current, scratch);
  return current;
}

std::string Normalizer::describe() const {
  return names_.empty() ? "none" : fmt::format("{}", fmt::join(names_, " + "));
}

}  // namespace sol
