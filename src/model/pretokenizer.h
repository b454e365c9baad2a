// Splitting a normalised text into the words that byte-pair encoding then works on.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/regex.h"
#include "model/tokenizer_file.h"

namespace sol {

struct Word {
  std::string_view text;
  bool starts_text;  // nothing of the original text comes before it
};

class PreTokenizer {
 public:
  struct Scratch {
    struct Part {
      size_t begin, end;
      bool is_match;
    };
    std::vector<Word> words, next_words;
    std::vector<Part> parts;        // of one word, while it is split
    std::deque<std::string> texts;  // words that a step rewrote
  };

  // From the component "pre_tokenizer"; null leaves a text in one piece. Throws Error naming what
  // it does not know.
  static PreTokenizer parse(const Component& component);

  // Whether the last step is the byte alphabet's. It is then left to the model: words are bytes.
  bool words_are_bytes() const { return words_are_bytes_; }

  // The text's words, none empty, in scratch.words. They point into `text` and `scratch` and live
  // until the next call. `starts_text`: `text` begins where the text to encode begins.
  void split(std::string_view text, bool starts_text, Scratch& scratch,
             MatchScratch& matching) const;
  std::string describe() const;

  class Step;

 private:
  void add(const Component& component);

  std::vector<std::shared_ptr<const Step>> steps_;
  std::vector<std::string> names_;
  bool words_are_bytes_ = false;
};

}  // namespace sol
