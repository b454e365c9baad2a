#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/fail.h"
#include "base/mapped_file.h"
#include "model/llama2c.h"
#include "model/utf8.h"

namespace sol {
namespace {

constexpr int unknown_id = 0, begin_id = 1, end_id = 2, first_byte_id = 3;
constexpr int first_piece_id = first_byte_id + 256;

struct Piece {
  float score;
  std::string text;
};

// The file: the longest piece's length, then for each piece its score, its length and its bytes.
std::vector<Piece> read_pieces(const std::filesystem::path& path, int count) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  size_t at = 0;
  const auto take = [&](void* to, size_t size, int piece) {
    if (size > bytes.size() - at) {
      fail("{}: ends within piece {} of {}: truncated, or the tokenizer of another model",
           path.string(), piece, count);
    }
    std::memcpy(to, bytes.data() + at, size);
    at += size;
  };
  int32_t longest = 0;
  take(&longest, sizeof(longest), 0);
  if (longest < 1 || longest > 1 << 16)
    fail("{}: not a tokenizer of llama2.c: its longest piece would have {} bytes", path.string(),
         longest);
  std::vector<Piece> pieces(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    Piece& piece = pieces[static_cast<size_t>(i)];
    int32_t length = 0;
    take(&piece.score, sizeof(piece.score), i);
    take(&length, sizeof(length), i);
    // Special and byte pieces are written out and may be longer than the file says.
    if (length < 1 || (length > longest && i >= first_piece_id))
      fail("{}: piece {} has {} bytes, but they have 1 to {}", path.string(), i, length, longest);
    if (std::isnan(piece.score)) fail("{}: piece {} has no score", path.string(), i);
    piece.text.resize(static_cast<size_t>(std::min(length, 1 << 16)));
    take(piece.text.data(), piece.text.size(), i);
  }
  if (at != bytes.size())
    fail("{}: goes on for {} bytes after {} pieces: the tokenizer of another model", path.string(),
         bytes.size() - at, count);
  return pieces;
}

void check_pieces(const std::filesystem::path& path, const std::vector<Piece>& pieces) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string expected = fmt::format("<0x{:02X}>", byte);
    const std::string& found = pieces[static_cast<size_t>(first_byte_id + byte)].text;
    if (found != expected)
      fail("{}: piece {} is \"{}\" instead of \"{}\": not a tokenizer of llama2.c", path.string(),
           first_byte_id + byte, found, expected);
  }
  for (size_t i = first_piece_id; i < pieces.size(); ++i)
    if (valid_utf8_prefix(pieces[i].text) != pieces[i].text.size())
      fail("{}: piece {} is not UTF-8", path.string(), i);
}

// Every way to join two pieces to a third, the third's score deciding the rank. Ways of one score
// are ordered by their left part, so that the result is always the same.
Json merges_of(const std::filesystem::path& path, const std::vector<Piece>& pieces) {
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t i = first_piece_id; i < pieces.size(); ++i)
    if (!ids.emplace(pieces[i].text, i).second)
      fail("{}: piece {} is \"{}\", which is there already", path.string(), i, pieces[i].text);
  struct Merge {
    float score;
    std::string_view left, right;
  };
  std::vector<Merge> merges;
  for (size_t i = first_piece_id; i < pieces.size(); ++i) {
    const std::string_view text = pieces[i].text;
    for (size_t cut = 1; cut < text.size(); ++cut)
      if (ids.contains(text.substr(0, cut)) && ids.contains(text.substr(cut)))
        merges.push_back({pieces[i].score, text.substr(0, cut), text.substr(cut)});
  }
  std::ranges::stable_sort(merges,
                           [](const Merge& a, const Merge& b) { return a.score > b.score; });
  Json out = Json::array();
  for (const Merge& m : merges) out.push_back({std::string(m.left), std::string(m.right)});
  return out;
}

Json special_token(int id, const char* content) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

}  // namespace

Json read_llama2c_tokenizer(const std::filesystem::path& path, int vocab_size) {
  if (vocab_size < first_piece_id)
    fail("{}: {} pieces are fewer than the {} special and byte pieces", path.string(), vocab_size,
         first_piece_id);
  const std::vector<Piece> pieces = read_pieces(path, vocab_size);
  check_pieces(path, pieces);
  const Json merges = merges_of(path, pieces);
  // The file writes "\n<s>\n"; everybody else calls it "<s>".
  Json vocabulary{{"<unk>", unknown_id}, {"<s>", begin_id}, {"</s>", end_id}};
  for (size_t i = first_byte_id; i < pieces.size(); ++i) {
    if (vocabulary.contains(pieces[i].text))
      fail("{}: piece {} is \"{}\", which is there already", path.string(), i, pieces[i].text);
    vocabulary[pieces[i].text] = i;
  }
  const Json begin{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}};
  return {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens",
       {special_token(unknown_id, "<unk>"), special_token(begin_id, "<s>"),
        special_token(end_id, "</s>")}},
      {"normalizer", {{"type", "Prepend"}, {"prepend", " "}}},
      {"pre_tokenizer", nullptr},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single", {begin, {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
        {"pair",
         {begin,
          {{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
          {{"SpecialToken", {{"id", "<s>"}, {"type_id", 1}}}},
          {{"Sequence", {{"id", "B"}, {"type_id", 1}}}}}},
        {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {begin_id}}, {"tokens", {"<s>"}}}}}}}},
      {"decoder",
       {{"type", "Sequence"},
        {"decoders",
         {{{"type", "ByteFallback"}},
          {{"type", "Fuse"}},
          {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}}},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", "<unk>"},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", true},
        {"byte_fallback", true},
        {"vocab", vocabulary},
        {"merges", merges}}}};
}

}  // namespace sol
