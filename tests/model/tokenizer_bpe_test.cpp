// Merging against its definition.
#include <algorithm>

#include "base/random.h"
#include "model/bpe.h"
#include "tokenizer_files.h"

namespace sol::test {
namespace {

using Ids = std::vector<int32_t>;

// The definition: while some neighbours are a merge, join the pair of lowest rank, leftmost first.
std::vector<std::string> merge_by_definition(const std::string& text,
                                             const std::vector<std::string>& merges) {
  std::vector<std::string> pieces;
  for (const char c : text) pieces.emplace_back(1, c);
  while (true) {
    size_t best = merges.size(), at = 0;
    for (size_t i = 0; i + 1 < pieces.size(); ++i) {
      for (size_t rank = 0; rank < best; ++rank) {
        if (merges[rank] == pieces[i] + " " + pieces[i + 1]) {
          best = rank;
          at = i;
        }
      }
    }
    if (best == merges.size()) return pieces;
    pieces[at] += pieces[at + 1];
    pieces.erase(pieces.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
}

struct MadeModel {
  nlohmann::json json;
  std::vector<std::string> merges;
};

// Random merges over a few letters; later ones build on earlier ones.
MadeModel made_model(Random& random, const std::string& letters, int count) {
  MadeModel made{small_tokenizer(), {}};
  nlohmann::json vocabulary;
  std::vector<std::string> pieces;
  const auto add = [&](const std::string& piece) {
    if (vocabulary.contains(piece)) return;
    vocabulary[piece] = pieces.size();
    pieces.push_back(piece);
  };
  for (const char c : letters) add(std::string(1, c));
  for (int i = 0; i < count; ++i) {
    const auto pick = [&] { return pieces[random.below(static_cast<uint32_t>(pieces.size()))]; };
    const std::string left = pick(), right = pick();
    if (left.size() + right.size() > 12) continue;
    const std::string merge = left + " " + right;
    if (std::find(made.merges.begin(), made.merges.end(), merge) != made.merges.end()) continue;
    made.merges.push_back(merge);
    add(left + right);
  }
  // Ranks are not in the order of what builds on what.
  for (size_t i = made.merges.size(); i > 1; --i) {
    std::swap(made.merges[i - 1], made.merges[random.below(static_cast<uint32_t>(i))]);
  }
  made.json["model"]["vocab"] = vocabulary;
  made.json["model"]["merges"] = made.merges;
  made.json["model"]["unk_token"] = nullptr;
  return made;
}

TEST(TokenizerBpe, MergesAsDefined) {
  Random random({.seed = 11});
  for (int model = 0; model < 30; ++model) {
    const std::string letters = model % 2 ? "abc" : "abcdefgh";
    const MadeModel made = made_model(random, letters, 3 + static_cast<int>(random.below(30)));
    TokenizerFile file = TokenizerFile::parse(made.json.dump(), "made");
    const Bpe bpe(file, false);
    Bpe::Scratch scratch;
    for (int round = 0; round < 100; ++round) {
      std::string text;
      for (uint32_t n = random.below(40); n > 0; --n) {
        text += letters[random.below(static_cast<uint32_t>(letters.size()))];
      }
      Ids ids;
      bpe.encode(text, scratch, ids);
      std::vector<std::string> pieces;
      for (const int32_t id : ids) pieces.emplace_back(bpe.vocabulary().piece(id));
      EXPECT_EQ(pieces, merge_by_definition(text, made.merges))
          << text << " " << made.json["model"];
    }
  }
}

// Merges that reach into the spelling of a fallback byte forbid cutting a text by its characters.
TEST(TokenizerBpe, MergesOfFallbackBytesAreKept) {
  nlohmann::json json = small_tokenizer();
  json["added_tokens"] = nlohmann::json::array();
  json["model"]["byte_fallback"] = true;
  json["model"]["vocab"] = {
      {"?", 0}, {"a", 1}, {"<0xC3>", 2}, {"<0xA9>", 3}, {"<0xC3><0xA9>", 4}, {"a<0xC3><0xA9>", 5}};
  json["model"]["merges"] = {"<0xC3> <0xA9>", "a <0xC3><0xA9>"};
  EXPECT_EQ(load_made(json)->encode("a\xC3\xA9\xC3\xA9"
                                    "aa\xC3\xA9"),
            (Ids{5, 4, 1, 5}));
}

TEST(TokenizerBpe, OfTwoEqualMergesTheLastCounts) {
  nlohmann::json json = small_tokenizer();
  json["model"]["vocab"] = {{"?", 0}, {"a", 1}, {"b", 2}, {"c", 3}, {"ab", 4}, {"bc", 5}};
  json["model"]["merges"] = {"a b", "b c", "a b"};
  EXPECT_EQ(load_made(json)->encode("abc"), (Ids{1, 5}));
}

}  // namespace
}  // namespace sol::test
