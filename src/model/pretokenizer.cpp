#include "model/pretokenizer.h"

#include <fmt/ranges.h>

#include "model/normalizer.h"
#include "model/pretokenizer_steps.h"

namespace sol {
namespace {

// GPT-2's words.
constexpr std::string_view kByteLevelWords =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace

PreTokenizer PreTokenizer::parse(const Component& component) {
  PreTokenizer result;
  if (component.is_null()) return result;
  result.add(component);
  return result;
}

void PreTokenizer::add(const Component& component) {
  const std::string type = component.type();
  const auto add_step = [&](std::shared_ptr<const Step> step) {
    // Letters that are not the last step have to be written out after all.
    if (std::exchange(words_are_bytes_, false)) steps_.push_back(letters_step());
    steps_.push_back(std::move(step));
  };
  const auto add_split = [&](std::string_view pattern, SplitBehavior behavior, bool invert) {
    add_step(split_step(Pattern::regex(pattern, component.where()), behavior, invert));
  };
  if (type == "Sequence") {
    component.allow_only({"type", "pretokenizers"});
    for (const Component& part : component.list("pretokenizers")) add(part);
    return;
  }
  if (type == "Split") {
    component.allow_only({"type", "pattern", "behavior", "invert"});
    add_step(split_step(parse_pattern(component.child("pattern")),
                        parse_split_behavior(component.child("behavior")),
                        component.flag_or("invert", false)));
  } else if (type == "ByteLevel") {
    component.allow_only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    if (component.flag("add_prefix_space")) add_step(prefix_space_step());
    if (component.flag_or("use_regex", true)) {
      add_split(kByteLevelWords, SplitBehavior::isolated, false);
    }
    if (std::exchange(words_are_bytes_, true)) steps_.push_back(letters_step());
  } else if (type == "Digits") {
    component.allow_only({"type", "individual_digits"});
    add_split("\\p{N}",
              component.flag_or("individual_digits", false) ? SplitBehavior::isolated
                                                            : SplitBehavior::contiguous,
              false);
  } else if (type == "Whitespace") {
    component.allow_only({"type"});
    // As Rust's \w, which has the two joiners and no superscripts.
    add_split(R"([\w\x{200c}\x{200d}]+|[^\w\s\x{200c}\x{200d}]+)", SplitBehavior::removed, true);
  } else if (type == "WhitespaceSplit") {
    component.allow_only({"type"});
    add_split("\\s", SplitBehavior::removed, false);
  } else if (type == "Metaspace") {
    add_step(metaspace_step(component));
  } else {
    component.unknown_type();
  }
  names_.push_back(type);
}

void PreTokenizer::split(std::string_view text, bool starts_text, Scratch& scratch,
                         MatchScratch& matching) const {
  scratch.texts.clear();
  scratch.words.clear();
  if (!text.empty()) scratch.words.push_back({text, starts_text});
  for (const auto& step : steps_) {
    scratch.next_words.clear();
    for (const Word& word : scratch.words) step->apply(word, scratch, matching);
    std::erase_if(scratch.next_words, [](const Word& word) { return word.text.empty(); });
    scratch.words.swap(scratch.next_words);
  }
}

std::string PreTokenizer::describe() const {
  return names_.empty() ? "none" : fmt::format("{}", fmt::join(names_, " + "));
}

}  // namespace sol
