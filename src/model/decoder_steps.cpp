#include "model/decoder_steps.h"

#include "model/byte_alphabet.h"
#include "model/utf8.h"

namespace sol {
namespace {

class Letters : public DecodeStep {
 public:
  void push(std::string_view token, const Sink& sink) override {
    bytes_.clear();
    for (size_t at = 0; at < token.size();) {
      const int byte = letter_to_byte(next_code_point(token, at));
      if (byte < 0) {
        // A token with anything else in it, such as an added one, is taken as it is.
        bytes_.assign(token);
        break;
      }
      bytes_.push_back(static_cast<char>(byte));
    }
    text_.clear();
    stream_.push(bytes_, text_);
    sink(text_);
  }
  void finish(const Sink& sink) override {
    text_.clear();
    stream_.finish(text_);
    sink(text_);
  }

 private:
  LossyUtf8Stream stream_;
  std::string bytes_, text_;
};

class Fallback : public DecodeStep {
 public:
  void push(std::string_view token, const Sink& sink) override {
    const int byte = fallback_byte(token);
    if (byte >= 0) {
      run_.push_back(static_cast<char>(byte));
      return;
    }
    finish(sink);
    sink(token);
  }
  // One byte that does not fit makes all of its run unreadable: a run is settled when it ends.
  void finish(const Sink& sink) override {
    if (run_.empty()) return;
    if (is_valid_utf8(run_)) {
      sink(run_);
    } else {
      for (size_t i = 0; i < run_.size(); ++i) sink(kReplacementCharacter);
    }
    run_.clear();
  }

 private:
  std::string run_;
};

class ReplaceStep : public DecodeStep {
 public:
  ReplaceStep(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void push(std::string_view token, const Sink& sink) override {
    sink(pattern_.replace_all(token, content_, scratch_));
  }

 private:
  Pattern pattern_;
  std::string content_;
  MatchScratch scratch_;
};

class MetaspaceDecode : public DecodeStep {
 public:
  explicit MetaspaceDecode(Metaspace settings) : settings_(std::move(settings)) {}
  void push(std::string_view token, const Sink& sink) override {
    // In the first token no replacement stands for a space of the text.
    const bool drop = first_ && settings_.prepend != Metaspace::Prepend::never;
    first_ = false;
    std::string text;
    for (size_t at = 0; at < token.size();) {
      if (token.substr(at).starts_with(settings_.replacement)) {
        if (!drop) text += ' ';
        at += settings_.replacement.size();
      } else {
        text += token[at++];
      }
    }
    sink(text);
  }

 private:
  Metaspace settings_;
  bool first_ = true;
};

class WithSpaces : public DecodeStep {
 public:
  void push(std::string_view token, const Sink& sink) override {
    if (!first_) sink(" ");
    first_ = false;
    sink(token);
  }

 private:
  bool first_ = true;
};

class Strip : public DecodeStep {
 public:
  Strip(std::string character, size_t start, size_t stop, bool joined)
      : character_(std::move(character)), start_(start), stop_(stop), joined_(joined) {}

  void push(std::string_view token, const Sink& sink) override {
    // Characters at the end are held back, since what follows may show that it is not the end.
    std::string text = std::exchange(held_, {});
    size_t removable = removed_in_front_;
    for (; removable < start_ && token.starts_with(character_); ++removable) {
      token.remove_prefix(character_.size());
    }
    text.append(token);
    // The first character that stays ends the stripping in front.
    removed_in_front_ = joined_ ? (token.empty() ? removable : start_) : 0;
    size_t end = text.size();
    for (size_t i = 0; i < stop_ && ends_with_character(text, end); ++i) end -= character_.size();
    sink(std::string_view(text).substr(0, end));
    if (joined_) held_ = text.substr(end);
  }

 private:
  bool ends_with_character(std::string_view text, size_t end) const {
    return text.substr(0, end).ends_with(character_);
  }

  std::string character_;
  size_t start_, stop_;
  bool joined_;
  size_t removed_in_front_ = 0;
  std::string held_;
};

class Whole : public DecodeStep {
 public:
  explicit Whole(std::unique_ptr<DecodeStep> step) : step_(std::move(step)) {}
  void push(std::string_view token, const Sink&) override { text_.append(token); }
  void finish(const Sink& sink) override {
    step_->push(text_, sink);
    step_->finish(sink);
  }

 private:
  std::unique_ptr<DecodeStep> step_;
  std::string text_;
};

}  // namespace

std::unique_ptr<DecodeStep> decode_letters() {
  return std::make_unique<Letters>();
}
std::unique_ptr<DecodeStep> decode_fallback() {
  return std::make_unique<Fallback>();
}
std::unique_ptr<DecodeStep> decode_replace(Pattern pattern, std::string content) {
  return std::make_unique<ReplaceStep>(std::move(pattern), std::move(content));
}
std::unique_ptr<DecodeStep> decode_metaspace(Metaspace settings) {
  return std::make_unique<MetaspaceDecode>(std::move(settings));
}
std::unique_ptr<DecodeStep> decode_with_spaces() {
  return std::make_unique<WithSpaces>();
}
std::unique_ptr<DecodeStep> decode_strip(std::string character, size_t start, size_t stop,
                                         bool joined) {
  return std::make_unique<Strip>(std::move(character), start, stop, joined);
}
std::unique_ptr<DecodeStep> decode_whole(std::unique_ptr<DecodeStep> step) {
  return std::make_unique<Whole>(std::move(step));
}

int fallback_byte(std::string_view piece) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return -1;
  const int high = digit(piece[3]), low = digit(piece[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

}  // namespace sol
