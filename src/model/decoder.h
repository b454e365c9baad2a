// From pieces back to text, one piece after another.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer_file.h"

namespace sol {

// One step of a decoder at work: receives tokens' texts in order, hands on what they become as soon
// as it is settled.
class DecodeStep {
 public:
  using Sink = std::function<void(std::string_view)>;
  virtual ~DecodeStep() = default;
  virtual void push(std::string_view token, const Sink& sink) = 0;
  virtual void finish(const Sink&) {}
};

// All steps of a decoder at work on one text.
class DecodeChain {
 public:
  explicit DecodeChain(std::vector<std::unique_ptr<DecodeStep>> steps) : steps_(std::move(steps)) {}
  void push(std::string_view piece, std::string& out);
  void finish(std::string& out);

 private:
  void push_from(size_t step, std::string_view token, std::string& out);
  std::vector<std::unique_ptr<DecodeStep>> steps_;
};

class Decoder {
 public:
  // From the component "decoder"; null puts spaces between the pieces, as Hugging Face does. Throws
  // Error naming what it does not know.
  static Decoder parse(const Component& component);

  DecodeChain begin() const;
  std::string describe() const;

 private:
  using Factory = std::function<std::unique_ptr<DecodeStep>()>;
  void add(const Component& component);

  std::vector<Factory> factories_;
  std::vector<std::string> names_;
  // Whether the steps so far have joined all tokens into one, which now arrives in portions.
  bool joined_ = false;
};

}  // namespace sol
