// What is done to a text before it is split into words.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/regex.h"
#include "model/tokenizer_file.h"

namespace sol {

class Normalizer {
 public:
  // From the component "normalizer"; null normalises nothing. Throws Error naming what it does not
  // know.
  static Normalizer parse(const Component& component);

  bool changes_nothing() const { return steps_.empty(); }
  // The text must be valid UTF-8; so is the result.
  std::string apply(std::string_view text, MatchScratch& scratch) const;
  std::string describe() const;  // the steps' names

 private:
  struct Step {
    virtual ~Step() = default;
    virtual std::string apply(std::string_view text, MatchScratch& scratch) const = 0;
  };
  struct Unicode;
  struct Lowercase;
  struct Prepend;
  struct Replace;
  void add(const Component& component);

  std::vector<std::shared_ptr<const Step>> steps_;
  std::vector<std::string> names_;
};

// The pattern of a component: {"String": "..."} or {"Regex": "..."}.
Pattern parse_pattern(const Component& pattern);

}  // namespace sol
