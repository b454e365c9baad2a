#include "text/block_dataset.h"

#include <sys/stat.h>

#include <chrono>
#include <numeric>

#include "base/threads.h"
#include "support.h"
#include "text/block_cache.h"
#include "throws.h"

namespace sol {
namespace {

namespace fs = std::filesystem;
using test::throws;

std::vector<int32_t> all_ids(const BlockDataset& dataset) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const auto block = dataset.block(i);
    ids.insert(ids.end(), block.begin(), block.end());
  }
  return ids;
}

class BlockDatasetTest : public testing::Test {
 protected:
  BlockDatasetTest() {
    // The shipped model's own tokenizer.
    tokenizer_ = Tokenizer::load(test::source_dir() / "models" / "default");
    write_file_atomically(text(),
                          "Once upon a time\n<|endoftext|>\nthere was a house.\n"
                          "And a garden.\n<|endoftext|>\nThe end.\n");
  }
  fs::path text() const { return dir_.path() / "a.txt"; }
  fs::path cache() const { return dir_.path() / "cache"; }
  BlockDataset open(int block_length, bool cached = true) {
    return BlockDataset::open({text()}, {}, *tokenizer_, block_length,
                              cached ? cache() : fs::path());
  }
  std::vector<fs::path> cache_files() const {
    std::vector<fs::path> files;
    if (fs::exists(cache()))
      for (const auto& entry : fs::directory_iterator(cache())) files.push_back(entry.path());
    return files;
  }
  fs::path only_cache_file() const {
    const auto files = cache_files();
    EXPECT_EQ(files.size(), 1u);
    return files.at(0);
  }

  test::TemporaryDirectory dir_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

TEST_F(BlockDatasetTest, DocumentsCanStandBetweenBeginAndEndToken) {
  TextOptions framed;
  framed.framed = true;
  const auto plain = open(1), with = BlockDataset::open({text()}, framed, *tokenizer_, 1, cache());
  std::vector<int32_t> expected;
  for (const char* document :
       {"Once upon a time", "there was a house.\nAnd a garden.", "The end."}) {
    const auto ids = tokenizer_->encode(document, {.add_special_tokens = false});
    expected.push_back(tokenizer_->bos_token_id());
    expected.insert(expected.end(), ids.begin(), ids.end());
    expected.push_back(tokenizer_->eos_token_id());
  }
  EXPECT_EQ(all_ids(with), expected);
  // Both are cached, apart.
  EXPECT_EQ(cache_files().size(), 2u);
  EXPECT_EQ(open(1).token_count(), static_cast<int64_t>(expected.size()) - 6);
}

TEST_F(BlockDatasetTest, AStopLeavesNothingBehind) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(BlockDataset::open({text()}, {}, *tokenizer_, 4, cache(), stop.get_token()),
               Cancelled);
  EXPECT_TRUE(cache_files().empty());
  EXPECT_GT(open(4).size(), 0);
}

TEST(BlockDataset, CutsIdsAndDropsTheRest) {
  std::vector<int32_t> ids(23);
  std::iota(ids.begin(), ids.end(), 0);
  const BlockDataset dataset = BlockDataset::from_ids(ids, 5);
  ASSERT_EQ(dataset.size(), 4);
  EXPECT_EQ(dataset.block_length(), 5);
  EXPECT_EQ(dataset.block(3)[0], 15);
  EXPECT_EQ(dataset.block(3)[4], 19);
  const BlockDataset copy = dataset;
  EXPECT_EQ(copy.block(0).data(), dataset.block(0).data());
}

TEST(BlockDataset, TooFewIds) {
  EXPECT_THAT([] { BlockDataset::from_ids({1, 2, 3}, 4); }, throws({"3 token ids", "block of 4"}));
  EXPECT_THAT([] { BlockDataset::from_ids({}, 1); }, throws({"0 token ids"}));
  EXPECT_THAT([] { BlockDataset::from_ids({1}, 0); }, throws({"at least one"}));
}

TEST_F(BlockDatasetTest, DocumentsAreJoinedWithoutTokensBetween) {
  std::vector<int32_t> expected;
  for (const char* document :
       {"Once upon a time", "there was a house.\nAnd a garden.", "The end."}) {
    const auto ids = tokenizer_->encode(document, {.add_special_tokens = false});
    expected.insert(expected.end(), ids.begin(), ids.end());
  }
  EXPECT_EQ(all_ids(open(1, false)), expected);
  EXPECT_EQ(all_ids(open(1, true)), expected);
  EXPECT_EQ(all_ids(open(1, true)), expected);
}

TEST_F(BlockDatasetTest, WikitextRecordsKeepTheirNewlines) {
  const fs::path raw = dir_.path() / "a.raw";
  write_file_atomically(raw, " = Title = \n \n Some text . \n");
  const TextOptions options{.format = TextOptions::Format::wikitext};
  std::vector<int32_t> expected;
  for (const char* record : {" = Title = \n", " Some text . \n"}) {
    const auto ids = tokenizer_->encode(record, {.add_special_tokens = false});
    expected.insert(expected.end(), ids.begin(), ids.end());
  }
  EXPECT_EQ(all_ids(BlockDataset::open({raw}, options, *tokenizer_, 1, {})), expected);
}

TEST_F(BlockDatasetTest, FilesFollowEachOther) {
  const fs::path second = dir_.path() / "b.jsonl";
  write_file_atomically(second, "{\"text\": \"More.\"}\n");
  std::vector<int32_t> expected = all_ids(open(1, false));
  const auto more = tokenizer_->encode("More.", {.add_special_tokens = false});
  expected.insert(expected.end(), more.begin(), more.end());
  EXPECT_EQ(all_ids(BlockDataset::open({text(), second}, {}, *tokenizer_, 1, {})), expected);
}

TEST_F(BlockDatasetTest, ThreadsDoNotChangeTheIds) {
  std::string content;
  for (int i = 0; i < 3000; ++i)
    content += "Document " + std::to_string(i * i) + " tells of a house.\n<|endoftext|>\n";
  write_file_atomically(text(), content);
  set_thread_count(1);
  const auto alone = all_ids(open(1, false));
  set_thread_count(4);
  EXPECT_EQ(all_ids(open(1, false)), alone);
  set_thread_count(0);
}

TEST_F(BlockDatasetTest, TheCacheServesEveryBlockLength) {
  open(1);
  const fs::path file = only_cache_file();
  const auto time = fs::last_write_time(file);
  EXPECT_EQ(open(3).block_length(), 3);
  EXPECT_EQ(fs::last_write_time(only_cache_file()), time);
}

TEST_F(BlockDatasetTest, TheCacheIsUsed) {
  const auto before = all_ids(open(1));
  // Same key, other ids: they must come from the file.
  const std::string key = block_cache_key({text()}, {}, tokenizer_->fingerprint());
  BlockCacheWriter writer(only_cache_file(), key);
  const std::vector<int32_t> planted{5, 6, 7};
  writer.append(planted);
  writer.commit();
  EXPECT_EQ(all_ids(open(1)), planted);
  EXPECT_NE(before, planted);
}

TEST_F(BlockDatasetTest, AnythingThatChangesTheIdsMakesThemAnew) {
  open(1);
  // Another tokenizer.json in the same place, as after an update of the model.
  const fs::path model = dir_.path() / "model";
  fs::create_directory(model);
  const std::string json = read_file(test::source_dir() / "models" / "default" / "tokenizer.json");
  write_file_atomically(model / "tokenizer.json", json);
  tokenizer_ = Tokenizer::load(model);
  open(1);
  EXPECT_EQ(cache_files().size(), 1u);  // the same bytes elsewhere
  write_file_atomically(model / "tokenizer.json", json + "\n");
  tokenizer_ = Tokenizer::load(model);
  open(1);
  EXPECT_EQ(cache_files().size(), 2u);
  write_file_atomically(text(), "Something else.\n");
  const auto expected = tokenizer_->encode("Something else.", {.add_special_tokens = false});
  EXPECT_EQ(all_ids(open(1)), expected);
  EXPECT_EQ(cache_files().size(), 3u);
  // The same size, another time of change.
  fs::last_write_time(text(), fs::last_write_time(text()) + std::chrono::seconds(1));
  open(1);
  EXPECT_EQ(cache_files().size(), 4u);
}

TEST_F(BlockDatasetTest, ACacheMadeForAnotherKeyIsReplaced) {
  const auto expected = all_ids(open(1));
  const fs::path file = only_cache_file();
  BlockCacheWriter writer(file, std::string(32, '0'));
  writer.append(std::vector<int32_t>{1, 2, 3});
  writer.commit();
  EXPECT_EQ(all_ids(open(1)), expected);
  EXPECT_EQ(only_cache_file(), file);
}

TEST_F(BlockDatasetTest, EveryDamageToTheCacheIsAnError) {
  open(1);
  const fs::path file = only_cache_file();
  const std::string whole = read_file(file);
  for (size_t length = 0; length < whole.size(); length += 3) {
    write_file_atomically(file, whole.substr(0, length));
    EXPECT_THAT([&] { open(1); }, throws({file.string(), "damaged", "delete it"})) << length;
  }
  for (const size_t position : {size_t{0}, size_t{64}, whole.size() / 2, whole.size() - 1,
                                whole.size() - 9, whole.size() - 17}) {
    std::string damaged = whole;
    damaged[position] = static_cast<char>(damaged[position] ^ 0x10);
    write_file_atomically(file, damaged);
    EXPECT_THAT([&] { open(1); }, throws({file.string(), "damaged"})) << position;
  }
  write_file_atomically(file, whole + "xxxx");
  EXPECT_THAT([&] { open(1); }, throws({file.string(), "damaged"}));
  write_file_atomically(file, whole);
  EXPECT_GT(open(1).size(), 0);
}

TEST_F(BlockDatasetTest, IdsThatTheTokenizerLacksAreNamedWithTheirPlace) {
  open(1);
  const fs::path file = only_cache_file();
  const std::string key = block_cache_key({text()}, {}, tokenizer_->fingerprint());
  for (const int32_t bad : {-1, tokenizer_->vocab_size()}) {
    BlockCacheWriter writer(file, key);
    writer.append(std::vector<int32_t>{0, tokenizer_->vocab_size() - 1, bad, 3});
    writer.commit();
    EXPECT_THAT([&] { open(1); },
                throws({file.string(), "token " + std::to_string(bad) + " at position 2",
                        std::to_string(tokenizer_->vocab_size())}));
  }
}

TEST_F(BlockDatasetTest, ACrashWhileMakingTheCacheLeavesNothing) {
  write_file_atomically(dir_.path() / "bad.jsonl", "{\"text\": \"good\"}\n{\"text\": \n");
  EXPECT_THAT([&] { BlockDataset::open({dir_.path() / "bad.jsonl"}, {}, *tokenizer_, 1, cache()); },
              throws({"bad.jsonl, line 2"}));
  EXPECT_TRUE(cache_files().empty());
}

TEST_F(BlockDatasetTest, TooLittleTextIsNamed) {
  EXPECT_THAT([&] { open(1000); }, throws({"a.txt", "token ids", "block of 1000"}));
  EXPECT_THAT([&] { open(0); }, throws({"at least one"}));
  EXPECT_THAT([&] { BlockDataset::open({}, {}, *tokenizer_, 1, {}); }, throws({"no text files"}));
  write_file_atomically(text(), "");
  EXPECT_THAT([&] { open(1); }, throws({"a.txt", "no text"}));
}

TEST_F(BlockDatasetTest, APipeIsNoText) {
  const fs::path pipe = dir_.path() / "pipe.txt";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const fs::path& cache_dir : {cache(), fs::path()})
    EXPECT_THAT([&] { BlockDataset::open({pipe}, {}, *tokenizer_, 1, cache_dir); },
                throws({"pipe.txt: is not a regular file"}));
}

TEST_F(BlockDatasetTest, ACacheThatCannotBeWrittenIsNamed) {
  write_file_atomically(cache(), "a file where the directory should be");
  EXPECT_THAT([&] { open(1); }, throws({"cache"}));
}

}  // namespace
}  // namespace sol
