// The steps that a pre-tokeniser is made of.
#pragma once

#include <memory>
#include <string>

#include "model/pretokenizer.h"

namespace sol {

class PreTokenizer::Step {
 public:
  virtual ~Step() = default;
  // Appends what `word` becomes to scratch.next_words; empty words may be among it.
  virtual void apply(const Word& word, Scratch& scratch, MatchScratch& matching) const = 0;
};

// What becomes of a match when a text is split at it.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };
SplitBehavior parse_split_behavior(const Component& name);

std::shared_ptr<const PreTokenizer::Step> split_step(Pattern pattern, SplitBehavior behavior,
                                                     bool invert);
// A space before words that do not begin with one.
std::shared_ptr<const PreTokenizer::Step> prefix_space_step();
// Bytes to letters of the byte alphabet.
std::shared_ptr<const PreTokenizer::Step> letters_step();
// Spaces become `replacement`, which is put in front too ("always", "first": of the whole text
// only, or "never"); then, if asked, a split before every replacement.
std::shared_ptr<const PreTokenizer::Step> metaspace_step(const Component& component);

// Metaspace's settings, which its decoder shares.
struct Metaspace {
  enum class Prepend { always, first, never };
  std::string replacement;
  Prepend prepend;
  bool split;
};
Metaspace parse_metaspace(const Component& component);

}  // namespace sol
