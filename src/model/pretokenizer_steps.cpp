#include "model/pretokenizer_steps.h"

#include <algorithm>

#include "base/fail.h"
#include "model/byte_alphabet.h"
#include "model/utf8.h"

namespace sol {
namespace {

using Scratch = PreTokenizer::Scratch;

class Split : public PreTokenizer::Step {
 public:
  Split(Pattern pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void apply(const Word& word, Scratch& scratch, MatchScratch& matching) const override {
    const auto emit = [&](size_t begin, size_t end) {
      scratch.next_words.push_back(
          {word.text.substr(begin, end - begin), word.starts_text && begin == 0});
    };
    if (behavior_ == SplitBehavior::isolated) {
      // What all byte-level tokenizers do: no list of parts in between.
      for_each_part(word.text, matching, [&](size_t begin, size_t end, bool) { emit(begin, end); });
      return;
    }
    auto& parts = scratch.parts;
    parts.clear();
    for_each_part(word.text, matching, [&](size_t begin, size_t end, bool is_match) {
      parts.push_back({begin, end, is_match != invert_});
    });
    join(parts);
    for (const auto& part : parts) emit(part.begin, part.end);
  }

 private:
  using Parts = std::vector<PreTokenizer::Scratch::Part>;

  // All of the text as a row of parts, each a match or what lies between two.
  template <typename Visit>
  void for_each_part(std::string_view text, MatchScratch& matching, Visit visit) const {
    size_t done = 0;
    pattern_.for_each_match(text, matching, [&](size_t begin, size_t end) {
      if (done < begin) visit(done, begin, false);
      visit(begin, end, true);
      done = end;
    });
    if (done < text.size()) visit(done, text.size(), false);
  }

  // Joins the neighbours that the behaviour wants together, or drops what it removes.
  void join(Parts& parts) const {
    switch (behavior_) {
      case SplitBehavior::isolated:
        return;
      case SplitBehavior::removed:
        std::erase_if(parts, [](const auto& part) { return part.is_match; });
        return;
      case SplitBehavior::contiguous:
        join_if(parts, [](bool before, bool now) { return before == now; });
        return;
      case SplitBehavior::merged_with_previous:
        join_if(parts, [](bool before, bool now) { return now && !before; });
        return;
      case SplitBehavior::merged_with_next:
        // The same from the other end.
        std::reverse(parts.begin(), parts.end());
        join_if(parts, [](bool before, bool now) { return now && !before; });
        std::reverse(parts.begin(), parts.end());
        return;
    }
  }

  // Joins each part to the group before it where `rule` says so of the two kinds.
  template <typename Rule>
  static void join_if(Parts& parts, Rule rule) {
    size_t kept = 0;
    bool before = false;
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto part = parts[i];
      if (kept > 0 && rule(before, part.is_match)) {
        parts[kept - 1].begin = std::min(parts[kept - 1].begin, part.begin);
        parts[kept - 1].end = std::max(parts[kept - 1].end, part.end);
      } else {
        parts[kept++] = part;
      }
      before = part.is_match;
    }
    parts.resize(kept);
  }

  Pattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

class PrefixSpace : public PreTokenizer::Step {
 public:
  void apply(const Word& word, Scratch& scratch, MatchScratch&) const override {
    if (word.text.starts_with(' ')) {
      scratch.next_words.push_back(word);
      return;
    }
    std::string& text = scratch.texts.emplace_back(1, ' ');
    text.append(word.text);
    scratch.next_words.push_back({text, word.starts_text});
  }
};

class Letters : public PreTokenizer::Step {
 public:
  void apply(const Word& word, Scratch& scratch, MatchScratch&) const override {
    std::string& letters = scratch.texts.emplace_back();
    append_as_letters(word.text, letters);
    scratch.next_words.push_back({letters, word.starts_text});
  }
};

class MetaspaceStep : public PreTokenizer::Step {
 public:
  explicit MetaspaceStep(Metaspace settings)
      : settings_(std::move(settings)),
        split_(Pattern::literal(settings_.replacement, "Metaspace"),
               SplitBehavior::merged_with_next, false) {}

  void apply(const Word& word, Scratch& scratch, MatchScratch& matching) const override {
    std::string& text = scratch.texts.emplace_back();
    for (const char c : word.text) {
      if (c == ' ') {
        text += settings_.replacement;
      } else {
        text += c;
      }
    }
    const bool prepend = settings_.prepend == Metaspace::Prepend::always ||
                         (settings_.prepend == Metaspace::Prepend::first && word.starts_text);
    if (prepend && !text.starts_with(settings_.replacement)) text.insert(0, settings_.replacement);
    const Word rewritten{text, word.starts_text};
    if (settings_.split) {
      split_.apply(rewritten, scratch, matching);
    } else {
      scratch.next_words.push_back(rewritten);
    }
  }

 private:
  Metaspace settings_;
  Split split_;
};

}  // namespace

SplitBehavior parse_split_behavior(const Component& name) {
  const std::string text = name.as_text();
  if (text == "Removed") return SplitBehavior::removed;
  if (text == "Isolated") return SplitBehavior::isolated;
  if (text == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (text == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (text == "Contiguous") return SplitBehavior::contiguous;
  fail("{}: the behavior \"{}\" is not supported", name.where(), text);
}

Metaspace parse_metaspace(const Component& component) {
  component.allow_only(
      {"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"});
  Metaspace settings{component.text("replacement"), Metaspace::Prepend::always,
                     component.flag_or("split", true)};
  if (settings.replacement.empty() ||
      settings.replacement.size() != utf8_length(settings.replacement[0])) {
    fail("{}.replacement: expected one character", component.where());
  }
  const bool add_prefix_space = component.flag_or("add_prefix_space", true);
  const std::string scheme =
      component.text_or("prepend_scheme", add_prefix_space ? "always" : "never");
  if (scheme == "first") {
    settings.prepend = Metaspace::Prepend::first;
  } else if (scheme == "never") {
    settings.prepend = Metaspace::Prepend::never;
  } else if (scheme != "always") {
    fail("{}.prepend_scheme: \"{}\" is not supported", component.where(), scheme);
  }
  if (!add_prefix_space && settings.prepend != Metaspace::Prepend::never) {
    fail("{}: add_prefix_space and prepend_scheme contradict each other", component.where());
  }
  return settings;
}

std::shared_ptr<const PreTokenizer::Step> split_step(Pattern pattern, SplitBehavior behavior,
                                                     bool invert) {
  return std::make_shared<Split>(std::move(pattern), behavior, invert);
}

std::shared_ptr<const PreTokenizer::Step> prefix_space_step() {
  return std::make_shared<PrefixSpace>();
}

std::shared_ptr<const PreTokenizer::Step> letters_step() {
  return std::make_shared<Letters>();
}

std::shared_ptr<const PreTokenizer::Step> metaspace_step(const Component& component) {
  return std::make_shared<MetaspaceStep>(parse_metaspace(component));
}

}  // namespace sol
