// Hugging Face tokenizer.json: byte-level BPE and SentencePiece-style BPE.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sol {

class Tokenizer {
 public:
  // Reads DIR/tokenizer.json (and tokenizer_config.json where present). Throws Error naming the
  // file and the component for anything missing, malformed or unknown.
  static std::shared_ptr<const Tokenizer> load(const std::filesystem::path& dir);

  struct EncodeOptions {
    bool add_special_tokens = true;    // run the post-processor's template (begin token)
    bool parse_special_tokens = true;  // "<|eot_id|>" in the text becomes that token
  };

  // Invalid UTF-8 in `text` is replaced by U+FFFD, as Hugging Face's bindings do.
  std::vector<int32_t> encode(std::string_view text, EncodeOptions options) const;
  std::vector<int32_t> encode(std::string_view text) const { return encode(text, EncodeOptions{}); }

  // Bytes of the ids after the decoder's steps; broken UTF-8 becomes U+FFFD. Throws Error for an
  // id outside the vocabulary.
  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens = false) const;

  // Decodes one id after another and hands out text as soon as it is complete UTF-8; the
  // concatenation of all pieces and of finish() equals decode() of all ids. The tokenizer must
  // outlive it.
  class Stream {
   public:
    virtual ~Stream() = default;
    virtual std::string push(int32_t id) = 0;
    virtual std::string finish() = 0;
  };
  std::unique_ptr<Stream> stream(bool skip_special_tokens = true) const;

  // What one id stands for inside a text, bytes that alone are no character included. Throws Error
  // for an id outside the vocabulary.
  std::string token_bytes(int32_t id) const;

  bool has_token(int32_t id) const;  // a vocabulary may have gaps

  int vocab_size() const;    // largest id + 1, added tokens included
  int bos_token_id() const;  // -1: none
  int eos_token_id() const;  // -1: none
  int token_id(
      std::string_view content) const;  // -1: no such token; the piece as in the vocabulary
  // 32 hexadecimal digits over tokenizer.json's bytes: what decides the ids.
  const std::string& fingerprint() const;
  std::string describe() const;  // one line for `sol inspect`: kind, pre-tokeniser, sizes

  ~Tokenizer();

  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace sol
