// The tokenizer as a whole: added tokens, normaliser, pre-tokeniser, model, template; and back.
#include "sol/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/json.h"
#include "base/zero_bytes.h"
#include "model/added_tokens.h"
#include "model/bpe.h"
#include "model/byte_alphabet.h"
#include "model/decoder.h"
#include "model/decoder_steps.h"
#include "model/make_tokenizer.h"
#include "model/normalizer.h"
#include "model/post_processor.h"
#include "model/pretokenizer.h"
#include "model/utf8.h"

namespace sol {
namespace {

// Everything that encoding writes to. Kept between calls for the words it remembers.
struct EncodeScratch {
  MatchScratch matching;
  PreTokenizer::Scratch pretokenizing;
  Bpe::Scratch bpe;
  std::vector<AddedTokenMatcher::Found> found, found_normalized;

  // Whether a long text has left it so large that it is better made anew.
  bool is_large() const {
    constexpr size_t limit = size_t{1} << 20;  // entries
    return pretokenizing.words.capacity() + pretokenizing.next_words.capacity() > limit ||
           bpe.symbols.capacity() > limit || bpe.ids.capacity() > limit;
  }
};

// Hands out scratch space, one to each call at a time, so that threads share a tokenizer without
// waiting for each other.
class ScratchPool {
 public:
  std::unique_ptr<EncodeScratch> take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<EncodeScratch>();
    auto scratch = std::move(idle_.back());
    idle_.pop_back();
    return scratch;
  }
  void give_back(std::unique_ptr<EncodeScratch> scratch) {
    if (scratch->is_large()) return;
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(scratch));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<EncodeScratch>> idle_;
};

TokenizerFile checked(TokenizerFile file) {
  const std::string where = file.path.string();
  Component(file.document, where)
      .allow_only({"version", "truncation", "padding", "added_tokens", "normalizer",
                   "pre_tokenizer", "post_processor", "decoder", "model"});
  for (const char* field : {"truncation", "padding"}) {
    if (!file.component(field).is_null()) {
      fail("{}: {}: not supported; set it to null", where, field);
    }
  }
  return file;
}

}  // namespace

struct Tokenizer::Impl {
  explicit Impl(TokenizerFile file)
      : fingerprint(std::move(file.fingerprint)),
        normalizer(Normalizer::parse(file.component("normalizer"))),
        pretokenizer(PreTokenizer::parse(file.component("pre_tokenizer"))),
        decoder(Decoder::parse(file.component("decoder"))),
        bpe(file, pretokenizer.words_are_bytes()),
        added(file.component("added_tokens"), bpe.vocabulary(), normalizer),
        post_processor(
            PostProcessor::parse(file.component("post_processor"), bpe.vocabulary(), added)) {}

  std::optional<std::string_view> piece(int32_t id) const;
  std::string_view require_piece(int32_t id) const;
  int32_t id_limit() const { return std::max(bpe.vocabulary().id_limit(), added.id_limit()); }
  int32_t find(std::string_view content) const;
  void read_config(const std::filesystem::path& path);
  void encode_part(std::string_view text, bool starts_text, bool skip_special,
                   EncodeScratch& scratch, std::vector<int32_t>& out) const;
  void encode_words(std::string_view text, bool starts_text, EncodeScratch& scratch,
                    std::vector<int32_t>& out) const;

  std::string fingerprint;
  Normalizer normalizer;
  PreTokenizer pretokenizer;
  Decoder decoder;
  Bpe bpe;
  AddedTokens added;
  PostProcessor post_processor;
  int32_t bos = -1, eos = -1;
  mutable ScratchPool scratch;
};

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;

std::shared_ptr<const Tokenizer> make_tokenizer(TokenizerFile file) {
  return std::make_shared<const Tokenizer>(
      std::make_unique<Tokenizer::Impl>(checked(std::move(file))));
}

std::shared_ptr<const Tokenizer> Tokenizer::load(const std::filesystem::path& dir) {
  const std::filesystem::path path = dir / "tokenizer.json";
  if (!path_exists(path) && path_exists(dir / "tokenizer.model")) {
    fail(
        "{}: not found; convert tokenizer.model beside it with Hugging Face transformers "
        "(AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR))",
        path.string());
  }
  auto impl = std::make_unique<Impl>(checked(TokenizerFile::read(path)));
  const std::filesystem::path config = dir / "tokenizer_config.json";
  if (path_exists(config)) impl->read_config(config);
  return std::make_shared<const Tokenizer>(std::move(impl));
}

void Tokenizer::Impl::read_config(const std::filesystem::path& path) {
  const std::string where = path.string();
  const std::string text = read_file(path);
  refuse_zero_bytes(text, where);
  nlohmann::json document;
  try {
    document = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    fail("{}: not valid JSON: {}", where, json_reason(error.what()));
  }
  const Component config(document, where);
  const auto token = [&](const char* field) -> int32_t {
    if (!config.has(field) || config.child(field).is_null()) return -1;
    const Component value = config.child(field);
    const std::string content = value.is_text() ? value.as_text() : value.text("content");
    const int32_t id = find(content);
    if (id < 0) fail("{}: no token is \"{}\"", value.where(), content);
    return id;
  };
  if (!document.is_object()) fail("{}: not a JSON object", where);
  bos = token("bos_token");
  eos = token("eos_token");
}

std::optional<std::string_view> Tokenizer::Impl::piece(int32_t id) const {
  if (const AddedToken* token = added.by_id(id)) return token->content;
  if (bpe.vocabulary().has(id)) return bpe.vocabulary().piece(id);
  return std::nullopt;
}

std::string_view Tokenizer::Impl::require_piece(int32_t id) const {
  const auto found = piece(id);
  if (!found) fail("no token has the id {}; the vocabulary's largest is {}", id, id_limit() - 1);
  return *found;
}

int32_t Tokenizer::Impl::find(std::string_view content) const {
  const AddedToken* token = added.by_content(content);
  return token ? token->id : bpe.vocabulary().find(content);
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  std::string repaired;
  if (!is_valid_utf8(text)) {
    append_lossy_utf8(text, repaired);
    text = repaired;
  }
  const PostProcessor& around = impl_->post_processor;
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 3 + 8);
  if (options.add_special_tokens) {
    ids.insert(ids.end(), around.before.begin(), around.before.end());
  }
  const bool skip_special = !options.parse_special_tokens;
  std::unique_ptr<EncodeScratch> scratch = impl_->scratch.take();
  impl_->added.before_normalizing().find(text, skip_special, scratch->found);
  size_t done = 0;
  for (const AddedTokenMatcher::Found& place : scratch->found) {
    if (done < place.begin) {
      impl_->encode_part(text.substr(done, place.begin - done), done == 0, skip_special, *scratch,
                         ids);
    }
    ids.push_back(place.token->id);
    done = place.end;
  }
  if (done < text.size()) {
    impl_->encode_part(text.substr(done), done == 0, skip_special, *scratch, ids);
  }
  impl_->scratch.give_back(std::move(scratch));
  if (options.add_special_tokens) {
    ids.insert(ids.end(), around.after.begin(), around.after.end());
  }
  return ids;
}

// A part of the text without tokens that are found before normalising.
void Tokenizer::Impl::encode_part(std::string_view text, bool starts_text, bool skip_special,
                                  EncodeScratch& s, std::vector<int32_t>& out) const {
  std::string normalized;
  if (!normalizer.changes_nothing()) {
    normalized = normalizer.apply(text, s.matching);
    text = normalized;
  }
  added.after_normalizing().find(text, skip_special, s.found_normalized);
  size_t done = 0;
  for (const AddedTokenMatcher::Found& place : s.found_normalized) {
    if (done < place.begin) {
      encode_words(text.substr(done, place.begin - done), starts_text && done == 0, s, out);
    }
    out.push_back(place.token->id);
    done = place.end;
  }
  if (done < text.size()) encode_words(text.substr(done), starts_text && done == 0, s, out);
}

void Tokenizer::Impl::encode_words(std::string_view text, bool starts_text, EncodeScratch& s,
                                   std::vector<int32_t>& out) const {
  pretokenizer.split(text, starts_text, s.pretokenizing, s.matching);
  for (const Word& word : s.pretokenizing.words) bpe.encode(word.text, s.bpe, out);
}

namespace {

class DecoderStream : public Tokenizer::Stream {
 public:
  DecoderStream(const Tokenizer::Impl& impl, bool skip_special)
      : impl_(impl), chain_(impl.decoder.begin()), skip_special_(skip_special) {}

  std::string push(int32_t id) override {
    std::string out;
    append(id, out);
    return out;
  }
  std::string finish() override {
    std::string out;
    chain_.finish(out);
    return out;
  }

  void append(int32_t id, std::string& out) {
    const std::string_view piece = impl_.require_piece(id);
    if (skip_special_) {
      const AddedToken* token = impl_.added.by_content(piece);
      if (token && token->special) return;
    }
    chain_.push(piece, out);
  }

 private:
  const Tokenizer::Impl& impl_;
  DecodeChain chain_;
  bool skip_special_;
};

}  // namespace

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  DecoderStream stream(*impl_, skip_special_tokens);
  std::string out;
  for (const int32_t id : ids) stream.append(id, out);
  return out + stream.finish();
}

std::unique_ptr<Tokenizer::Stream> Tokenizer::stream(bool skip_special_tokens) const {
  return std::make_unique<DecoderStream>(*impl_, skip_special_tokens);
}

std::string Tokenizer::token_bytes(int32_t id) const {
  const std::string_view piece = impl_->require_piece(id);
  if (impl_->added.by_id(id)) return std::string(piece);
  if (impl_->pretokenizer.words_are_bytes()) {
    std::string bytes;
    for (size_t at = 0; at < piece.size();) {
      const int byte = letter_to_byte(next_code_point(piece, at));
      if (byte < 0) return std::string(piece);  // not written in the byte alphabet
      bytes += static_cast<char>(byte);
    }
    return bytes;
  }
  if (const int byte = fallback_byte(piece); byte >= 0) return {static_cast<char>(byte)};
  // Decoders may treat the text's beginning in another way: what a second one adds is inside.
  const std::string once = decode(std::array{id}), twice = decode(std::array{id, id});
  return twice.substr(std::min(once.size(), twice.size()));
}

bool Tokenizer::has_token(int32_t id) const {
  return impl_->piece(id).has_value();
}

int Tokenizer::vocab_size() const {
  return impl_->id_limit();
}
int Tokenizer::bos_token_id() const {
  return impl_->bos;
}
int Tokenizer::eos_token_id() const {
  return impl_->eos;
}
int Tokenizer::token_id(std::string_view content) const {
  return impl_->find(content);
}

const std::string& Tokenizer::fingerprint() const {
  return impl_->fingerprint;
}

std::string Tokenizer::describe() const {
  const bool bytes = impl_->pretokenizer.words_are_bytes();
  return fmt::format(
      "{} BPE, {} pieces, {} added tokens, {} merges; normaliser {}; pre-tokeniser {}; decoder {}; "
      "characters without a piece: {}",
      bytes ? "byte-level" : "character-level", impl_->bpe.vocabulary().count(),
      impl_->added.count(), impl_->bpe.merge_count(), impl_->normalizer.describe(),
      impl_->pretokenizer.describe(), impl_->decoder.describe(), impl_->bpe.describe_unknown());
}

}  // namespace sol
