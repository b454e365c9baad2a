#include "model/llama2c.h"

#include <cmath>
#include <iterator>
#include <limits>
#include <stop_token>

#include "base/file_io.h"
#include "llama2c_files.h"
#include "model/llama_weights.h"
#include "model/safetensors.h"
#include "sol/tokenizer.h"
#include "support.h"
#include "throws.h"

namespace sol {
namespace {

namespace fs = std::filesystem;
using test::Llama2cHeader;
using test::throws;

class Llama2c : public testing::Test {
 protected:
  fs::path checkpoint() const { return dir_.path() / "model.bin"; }
  fs::path tokenizer() const { return dir_.path() / "tok.bin"; }
  fs::path out() const { return dir_.path() / "out"; }

  void write(const std::string& model, const std::string& tok) const {
    write_file_atomically(checkpoint(), model);
    write_file_atomically(tokenizer(), tok);
  }
  void convert() const { convert_llama2c(checkpoint(), tokenizer(), out()); }
  void convert(const Llama2cHeader& header) const {
    write(test::llama2c_checkpoint(header), test::llama2c_tokenizer(test::llama2c_pieces()));
    convert();
  }
  void expect_error(const std::string& model, const std::vector<std::string>& parts) const {
    write(model, test::llama2c_tokenizer(test::llama2c_pieces()));
    EXPECT_THAT([&] { convert(); }, throws(parts));
    EXPECT_FALSE(fs::exists(out()));
  }
  test::TemporaryDirectory dir_;
};

// The file's float number i.
float number(const std::string& file, int64_t i) {
  float out;
  std::memcpy(&out, file.data() + 28 + 4 * i, 4);
  return out;
}

TEST_F(Llama2c, EveryWeightHasItsPlace) {
  for (const int32_t vocab : {270, -270}) {
    Llama2cHeader h;
    h.vocab = vocab;
    fs::remove_all(out());
    convert(h);
    const std::string file = test::llama2c_checkpoint(h);
    const LlamaConfig config = load_config(out());
    EXPECT_EQ(config.tie_word_embeddings, vocab > 0);
    EXPECT_EQ(config.max_position_embeddings, 16);
    EXPECT_EQ(config.eos_token_ids, (std::vector<int>{1, 2}));
    const TensorStore store = TensorStore::open_directory(out());
    const LlamaWeights w = find_llama_weights(config, store);
    const int64_t d = 32, kv = 16, f = 24, all = 270 * d;
    const auto expect_at = [&](const TensorView* tensor, int64_t i, int64_t place) {
      EXPECT_EQ(tensor->to_floats()[static_cast<size_t>(i)], number(file, place)) << tensor->name;
    };
    expect_at(w.embedding, 269 * d + 31, all - 1);
    expect_at(w.layers[1].input_norm, 3, all + d + 3);
    // Row 3 of head 1 (8 wide) is the second of the pair 1: row 4 + 1 of the halves.
    const int64_t queries = all + 2 * d;
    expect_at(w.layers[1].q, (8 + 5) * d + 7, queries + d * d + (8 + 3) * d + 7);
    const int64_t keys = queries + 2 * d * d;
    expect_at(w.layers[1].k, (8 + 3) * d + 7, keys + kv * d + (8 + 6) * d + 7);
    const int64_t values = keys + 2 * kv * d;
    expect_at(w.layers[1].v, 9 * d + 7, values + kv * d + 9 * d + 7);
    const int64_t outputs = values + 2 * kv * d;
    expect_at(w.layers[0].o, 9 * d + 7, outputs + 9 * d + 7);
    const int64_t norms = outputs + 2 * d * d;
    expect_at(w.layers[1].post_norm, 5, norms + d + 5);
    const int64_t gates = norms + 2 * d;
    expect_at(w.layers[1].gate, 3 * d + 4, gates + f * d + 3 * d + 4);
    expect_at(w.layers[1].down, 3 * f + 4, gates + 2 * f * d + d * f + 3 * f + 4);
    expect_at(w.layers[1].up, 3 * d + 4, gates + 4 * f * d + f * d + 3 * d + 4);
    expect_at(w.final_norm, 31, gates + 6 * f * d + 31);
    if (vocab < 0) expect_at(w.head, 5, gates + 6 * f * d + d + 16 * 8 + 5);
  }
}

TEST_F(Llama2c, TheTokenizerIsLlama2cs) {
  convert(Llama2cHeader());
  const auto pieces = test::llama2c_pieces();
  const auto ours = Tokenizer::load(out());
  EXPECT_EQ(ours->bos_token_id(), 1);
  EXPECT_EQ(ours->encode("a"), (std::vector<int32_t>{1, 259}));
  Random random({.seed = 3});
  const std::vector<std::string> letters{"a", "b", "a", "b", " ", "c", "\xC3\xA9", "\xE2\x82\xAC",
                                         "\n"};
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (uint32_t n = random.below(12); n > 0; --n)
      text += letters[random.below(static_cast<uint32_t>(letters.size()))];
    const auto ids = ours->encode(text, {.add_special_tokens = false});
    EXPECT_EQ(ids, test::llama2c_encode(pieces, text)) << '"' << text << '"';
    EXPECT_EQ(ours->decode(ids), text);
  }
}

TEST_F(Llama2c, OtherCheckpointsAreErrors) {
  const std::string good = test::llama2c_checkpoint();
  expect_error("", {"model.bin", "too few"});
  expect_error(good.substr(0, 20), {"too few"});
  expect_error(good.substr(0, good.size() - 1), {"rotary tables", "truncated"});
  expect_error(good.substr(0, 5000), {"the embedding", "truncated"});
  expect_error(good + "1234", {"4 bytes longer"});
  expect_error(std::string(4096, 'x'), {"dim = ", "not a checkpoint of llama2.c's legacy format"});
  Llama2cHeader h;
  h.layers = -2;
  expect_error(good.substr(0, 8) + std::string("\xfe\xff\xff\xff") + good.substr(12),
               {"n_layers = -2"});
  expect_error(good.substr(0, 12) + std::string("\x05\0\0\0", 4) + good.substr(16),
               {"32 channels cannot be divided among 5 query"});
  std::string later = good;
  std::memcpy(later.data(), "24ka\x01\0\0\0", 8);
  expect_error(later, {"version 1", "--version 0"});
  std::string infinite = good;
  const float value = std::numeric_limits<float>::infinity();
  std::memcpy(infinite.data() + 28 + 4 * 100, &value, 4);
  expect_error(infinite, {"model.embed_tokens.weight", "inf at element 100"});
  const float large = std::nextafter(-largest_weight, -value);
  std::memcpy(infinite.data() + 28 + 4 * 100, &large, 4);
  expect_error(infinite, {"element 100, not finite or too large"});
}

TEST_F(Llama2c, LeavesNothingBehindWhenStopped) {
  write(test::llama2c_checkpoint(), test::llama2c_tokenizer(test::llama2c_pieces()));
  std::stop_source source;
  source.request_stop();
  EXPECT_THROW(convert_llama2c(checkpoint(), tokenizer(), out(), source.get_token()), Cancelled);
  // The checkpoint and its tokenizer.
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_.path()), fs::directory_iterator()), 2);
}

TEST_F(Llama2c, OtherTokenizersAreErrors) {
  const auto check = [&](const std::string& tok, const std::vector<std::string>& parts) {
    write(test::llama2c_checkpoint(), tok);
    EXPECT_THAT([&] { convert(); }, throws(parts));
  };
  auto pieces = test::llama2c_pieces();
  const std::string good = test::llama2c_tokenizer(pieces);
  check("", {"tok.bin", "ends within piece 0 of 270"});
  check(good.substr(0, good.size() - 1), {"ends within piece 269"});
  check(good + "x", {"goes on for 1 bytes after 270 pieces"});
  check(std::string(100, '\xff'), {"not a tokenizer of llama2.c"});
  std::string negative = good;
  std::memcpy(negative.data() + 8, "\xff\xff\xff\xff", 4);
  check(negative, {"piece 0 has -1 bytes"});
  pieces[20].text = "<0x00>";
  check(test::llama2c_tokenizer(pieces), {"piece 20 is \"<0x00>\" instead of \"<0x11>\""});
  pieces = test::llama2c_pieces();
  pieces.back().text = "ab";
  check(test::llama2c_tokenizer(pieces), {"\"ab\", which is there already"});
  pieces.back().text = "\xff";
  check(test::llama2c_tokenizer(pieces), {"piece 269 is not UTF-8"});
}

TEST_F(Llama2c, NothingIsOverwritten) {
  fs::create_directories(out());
  write_file_atomically(out() / "file", "x");
  EXPECT_THAT([&] { convert(Llama2cHeader()); }, throws({"not empty"}));
}

// The real tokenizer, over real text.
TEST_F(Llama2c, TokenizesStoriesAsLlama2cDoes) {
  SOL_SKIP_WITHOUT_SHARED();
  const fs::path models = test::shared_dir() / "data/models/stories260k-llama2c";
  convert_llama2c(models / "stories260K.bin", models / "tok512.bin", out());
  const auto ours = Tokenizer::load(out());
  std::vector<test::Llama2cPiece> pieces;
  const std::string file = read_file(models / "tok512.bin");
  for (size_t at = 4; at < file.size();) {
    test::Llama2cPiece piece;
    int32_t length;
    std::memcpy(&piece.score, file.data() + at, 4);
    std::memcpy(&length, file.data() + at + 4, 4);
    piece.text = file.substr(at + 8, static_cast<size_t>(length));
    at += 8 + static_cast<size_t>(length);
    pieces.push_back(piece);
  }
  ASSERT_EQ(pieces.size(), 512u);
  const std::string text = read_file(test::shared_dir() / "data/text/tinystories_head.txt");
  for (size_t at = 0; at < 12000; at += 150) {
    // Cut where a character begins.
    size_t begin = at, end = at + 150;
    while ((static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) ++begin;
    while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    const std::string part = text.substr(begin, end - begin);
    EXPECT_EQ(ours->encode(part, {.add_special_tokens = false}),
              test::llama2c_encode(pieces, part));
  }
}

}  // namespace
}  // namespace sol
