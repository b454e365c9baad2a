#include "text/prepare_corpus.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>
#include <set>
#include <thread>

#include "base/file_io.h"
#include "base/threads.h"
#include "compressed.h"
#include "support.h"
#include "text/block_dataset.h"
#include "throws.h"

namespace sol {
namespace {

namespace fs = std::filesystem;
using test::gzip;
using test::throws;
using test::zstd;

std::string document(int i) {
  return "Document " + std::to_string(i) + " of " + std::string(static_cast<size_t>(i % 40), 'x') +
         " houses.";
}

std::string json_line(const std::string& text) {
  return Json{{"id", 1}, {"text", text}}.dump() + "\n";
}

std::string json_lines(int begin, int end) {
  std::string lines;
  for (int i = begin; i < end; ++i) lines += json_line(document(i));
  return lines;
}

class PrepareCorpusTest : public testing::Test {
 protected:
  PrepareCorpusTest() {
    tokenizer_ = Tokenizer::load(test::source_dir() / "models" / "default");
    write("a.jsonl.gz", gzip(json_lines(0, 120)));
    write("deep/er/b.jsonl.zst", zstd(json_lines(120, 260)));
    write("deep/c.json.gz", gzip(json_lines(260, 300)));
    write("d.jsonl", json_lines(300, 400));
    write("README.md", "not text to train on");
  }
  ~PrepareCorpusTest() override { set_thread_count(0); }

  void write(const std::string& name, const std::string& content) const {
    fs::create_directories((corpus() / name).parent_path());
    write_file_atomically(corpus() / name, content);
  }
  fs::path corpus() const { return dir_.path() / "corpus"; }
  fs::path out(const std::string& name = "out") const { return dir_.path() / name; }
  PreparedManifest prepare(const std::string& name = "out", const PrepareCallbacks& callbacks = {},
                           std::stop_token stop = {}) const {
    return prepare_corpus(corpus(), out(name), options_, *tokenizer_, true, callbacks, stop);
  }
  std::vector<std::string> files(const std::string& name) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(out(name)))
      names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
  }
  void expect_same(const std::string& one, const std::string& other) const {
    ASSERT_EQ(files(one), files(other));
    for (const std::string& name : files(one))
      EXPECT_EQ(read_file(out(one) / name), read_file(out(other) / name)) << name;
  }
  // The texts of all documents, in the order in which they were prepared.
  std::vector<std::string> texts(const std::string& name = "out") const {
    const BlockDataset data = BlockDataset::open_prepared(out(name), *tokenizer_, 1);
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < data.size(); ++i) ids.push_back(data.block(i)[0]);
    std::string all = tokenizer_->decode(ids);
    std::vector<std::string> found;
    for (size_t begin = 0, end; (end = all.find("houses.", begin)) != all.npos; begin = end + 7)
      found.push_back(all.substr(begin, end + 7 - begin));
    return found;
  }

  test::TemporaryDirectory dir_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  CorpusOptions options_{.window_bytes = 4096};
};

TEST_F(PrepareCorpusTest, EveryDocumentIsThereOnceInAShuffledOrder) {
  const PreparedManifest made = prepare();
  EXPECT_TRUE(made.complete);
  EXPECT_EQ(made.documents(), 400);
  EXPECT_GT(made.shards.size(), 5u);
  const std::vector<std::string> order = texts();
  ASSERT_EQ(order.size(), 400u);
  std::vector<std::string> expected;
  for (int i = 0; i < 400; ++i) expected.push_back(document(i));
  EXPECT_NE(order, expected);
  EXPECT_TRUE(std::ranges::is_permutation(order, expected));
  // Neighbours in a file are rarely neighbours after it.
  const auto number = [](const std::string& text) { return std::stoi(text.substr(9)); };
  int neighbours = 0;
  for (size_t i = 1; i < order.size(); ++i)
    neighbours += number(order[i]) == number(order[i - 1]) + 1;
  EXPECT_LT(neighbours, 40);
  EXPECT_EQ(BlockDataset::open_prepared(out(), *tokenizer_, 1).token_count(), made.tokens());

  options_.seed = 5;
  prepare("other");
  EXPECT_NE(texts("other"), order);
  EXPECT_TRUE(std::ranges::is_permutation(texts("other"), order));
}

// More than a process can address.
TEST_F(PrepareCorpusTest, TheBufferTakesNoMoreThanThereIs) {
  options_.window_bytes = uint64_t{1} << 50;
  const PreparedManifest made = prepare();
  EXPECT_EQ(made.documents(), 400);
  EXPECT_EQ(made.shards.size(), 1u);
}

TEST_F(PrepareCorpusTest, NamesMayBeInUpperCase) {
  write("UP.JSONL", json_lines(400, 410));
  write("UP.JSONL.GZ", gzip(json_lines(410, 420)));
  EXPECT_EQ(prepare().documents(), 420);
}

TEST_F(PrepareCorpusTest, AFileMayHoldNothingButAByteOrderMark) {
  write("e.jsonl", "\xef\xbb\xbf");
  write("f.jsonl", "\xef\xbb\xbf" + json_lines(400, 401));
  write("g.jsonl", "");
  EXPECT_EQ(prepare().documents(), 401);
}

TEST_F(PrepareCorpusTest, ThreadsDoNotChangeTheFiles) {
  set_thread_count(1);
  prepare("one");
  set_thread_count(4);
  prepare("four");
  expect_same("one", "four");
}

TEST_F(PrepareCorpusTest, AKilledPreparationGoesOn) {
  prepare("whole");
  for (const int64_t shards : {0, 1, 4}) {
    const std::string name = "killed" + std::to_string(shards);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      prepare(name, {.on_progress = [&](const PrepareProgress& p) {
                if (p.shards == shards) raise(SIGKILL);
              }});
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    EXPECT_THAT([&] { BlockDataset::open_prepared(out(name), *tokenizer_, 8); },
                throws({name, "only in part"}));
    std::vector<std::string> notes;
    PrepareProgress last;
    const PreparedManifest made =
        prepare(name, {.on_progress = [&](const PrepareProgress& p) { last = p; },
                       .on_note = [&](const std::string& text) { notes.push_back(text); }});
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_NE(notes[0].find(std::to_string(shards) + " finished shard"), std::string::npos)
        << notes[0];
    // Only what was not finished was made again.
    int64_t finished = 0;
    for (int64_t i = 0; i < shards; ++i) finished += made.shards[static_cast<size_t>(i)].documents;
    EXPECT_EQ(last.documents, 400 - finished);
    expect_same("whole", name);  // and nothing temporary is left
  }
}

TEST_F(PrepareCorpusTest, AStopKeepsFinishedShards) {
  std::stop_source stop;
  EXPECT_THROW(prepare("out",
                       {.on_progress =
                            [&](const PrepareProgress& p) {
                              if (p.shards == 2) stop.request_stop();
                            }},
                       stop.get_token()),
               Cancelled);
  EXPECT_EQ(files("out"), (std::vector<std::string>{"00000.ids", "00001.ids", "manifest.json"}));
  prepare("whole");
  prepare();
  expect_same("out", "whole");
}

TEST_F(PrepareCorpusTest, ProcessesTakeTurns) {
  std::atomic<int> worked{0}, waited{0};
  const auto one = [&] {
    bool tokenised = false;
    prepare("out", {.on_progress =
                        [&](const PrepareProgress&) {
                          tokenised = true;
                          std::this_thread::sleep_for(std::chrono::milliseconds(5));
                        },
                    .on_note = [&](const std::string&) { ++waited; }});
    worked += tokenised;
  };
  { std::jthread first(one), second(one); }
  EXPECT_EQ(worked, 1);
  EXPECT_EQ(waited, 1);
}

TEST_F(PrepareCorpusTest, BlocksLieWithinShards) {
  const PreparedManifest made = prepare();
  constexpr int length = 50;
  const BlockDataset data = BlockDataset::open_prepared(out(), *tokenizer_, length);
  int64_t blocks = 0;
  for (size_t s = 0; s < made.shards.size(); ++s) {
    const CachedIds shard = open_prepared_shard(out(), made, s, CacheCheck::checksum);
    for (size_t at = 0; at + length <= shard.ids.size(); at += length, ++blocks)
      ASSERT_TRUE(std::ranges::equal(data.block(blocks), shard.ids.subspan(at, length)));
  }
  EXPECT_EQ(data.size(), blocks);
  EXPECT_THAT([&] { BlockDataset::open_prepared(out(), *tokenizer_, 1 << 20); },
              throws({"none of its", "1048576 token ids"}));
}

TEST_F(PrepareCorpusTest, BadLinesAreNamed) {
  const std::string good = json_lines(0, 2);
  const auto expect_bad = [&](const std::string& line, const std::vector<std::string>& parts) {
    write("e.jsonl.gz", gzip(good + line + good));
    std::vector<std::string> all{"e.jsonl.gz, line 3"};
    all.insert(all.end(), parts.begin(), parts.end());
    EXPECT_THAT([&] { prepare(); }, throws(all));
    fs::remove_all(out());
  };
  expect_bad("{\"text\": \"x\"\n", {"not valid JSON"});
  expect_bad("{\"id\": 1}\n", {"\"text\"", "missing"});
  expect_bad("{\"text\": 1}\n", {"\"text\"", "a string"});
  expect_bad("{\"text\": \"\xff\"}\n", {"not valid JSON", "UTF-8"});
  expect_bad("[]\n", {"object"});
}

TEST_F(PrepareCorpusTest, BadLinesCanBeSkippedAndAreCounted) {
  write("e.jsonl", "{\n" + json_lines(400, 402) + "{\"text\": \"\xff\"}\n{\"text\": \"\"}\n\n");
  options_.skip_bad_lines = true;
  const PreparedManifest made = prepare();
  EXPECT_EQ(made.documents(), 402);
  EXPECT_EQ(made.skipped(), 2);
  const auto shard = std::ranges::find_if(made.shards, [](const auto& s) { return s.skipped > 0; });
  EXPECT_NE(shard->first_skipped.find("e.jsonl, line "), std::string::npos);
  const auto read = read_prepared_manifest(out());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->skipped(), 2);
}

TEST_F(PrepareCorpusTest, TruncatedFilesAreNamedWithTheLastLine) {
  const std::string lines = json_lines(0, 20);
  options_.skip_bad_lines = true;  // does not cover it
  for (const auto& [name, content] :
       {std::pair<std::string, std::string>{"e.jsonl.gz", gzip(lines) + gzip(lines)},
        {"e.jsonl.zst", zstd(lines) + zstd(lines)}}) {
    write(name, content.substr(0, content.size() - 9));
    EXPECT_THAT([&] { prepare(); }, throws({name, "truncated", "(after line "}));
    fs::remove(corpus() / name);
    fs::remove_all(out());
  }
}

TEST_F(PrepareCorpusTest, OtherDataIsNeverMixedIn) {
  prepare();
  options_.seed = 9;
  EXPECT_THAT([&] { prepare(); }, throws({"prepared otherwise: --seed was 0 and is now 9."}));
  options_.seed = 0;
  write("d.jsonl", json_lines(300, 401));
  EXPECT_THAT([&] { prepare(); }, throws({"prepared otherwise: their size in bytes was "}));
  write("d.jsonl", json_lines(300, 400));
  fs::last_write_time(corpus() / "d.jsonl",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_THAT([&] { prepare(); }, throws({"times of change. Choose another directory"}));
  const fs::path cached = prepared_cache_path(out(), corpus(), options_, *tokenizer_);
  EXPECT_EQ(cached.parent_path(), out());
  write("d.jsonl", json_lines(300, 402));
  EXPECT_NE(prepared_cache_path(out(), corpus() / "", options_, *tokenizer_), cached);
  EXPECT_TRUE(cached.filename().string().starts_with("corpus-"));
}

TEST_F(PrepareCorpusTest, DamageIsFound) {
  const PreparedManifest made = prepare();
  const fs::path shard = prepared_shard_path(out(), 1);
  std::string bytes = read_file(shard);
  bytes[100] ^= 1;
  write_file_atomically(shard, bytes);
  EXPECT_THAT([&] { prepare(); }, throws({"00001.ids", "checksum", "`sol prepare "}));
  write_file_atomically(shard, bytes.substr(0, bytes.size() - 4));
  EXPECT_THAT([&] { BlockDataset::open_prepared(out(), *tokenizer_, 8); },
              throws({"00001.ids", "truncated", "`sol prepare "}));
  fs::remove(shard);
  EXPECT_THAT([&] { BlockDataset::open_prepared(out(), *tokenizer_, 8); },
              throws({"00001.ids", "is missing", "`sol prepare "}));
  fs::copy_file(prepared_shard_path(out(), 0), shard);
  EXPECT_THAT([&] { prepare(); }, throws({"00001.ids", "not the file"}));
  write_file_atomically(out() / "manifest.json", "{\"kind\": \"other\"}");
  EXPECT_THAT([&] { prepare(); }, throws({"manifest.json", "no manifest of prepared data"}));
  write_file_atomically(out() / "manifest.json", "{\"kind\": ");
  EXPECT_THAT([&] { prepare(); }, throws({"manifest.json: not valid JSON", "restore this file",
                                          "anew in another directory"}));
}

TEST_F(PrepareCorpusTest, DeletedShardsAreMadeAgain) {
  const PreparedManifest whole = prepare("whole");
  prepare();
  for (const size_t shard : {size_t{0}, size_t{3}, whole.shards.size() - 1})
    fs::remove(prepared_shard_path(out(), shard));
  PrepareProgress last;
  prepare("out", {.on_progress = [&](const PrepareProgress& p) { last = p; }});
  expect_same("whole", "out");
  EXPECT_EQ(last.documents, whole.shards.back().documents);  // the last call's: no others
}

// By whoever reads the first block of a shard; opening looks at sizes only.
TEST_F(PrepareCorpusTest, DamageIsFoundWhenAShardIsFirstRead) {
  const PreparedManifest made = prepare();
  const fs::path shard = prepared_shard_path(out(), 1);
  std::string bytes = read_file(shard);
  bytes[100] ^= 1;
  write_file_atomically(shard, bytes);
  const BlockDataset data = BlockDataset::open_prepared(out(), *tokenizer_, 8);
  const int64_t first = made.shards[0].tokens / 8;  // of the second shard
  EXPECT_NO_THROW(data.block(first - 1));
  EXPECT_NO_THROW(data.unverified_block(first));
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT([&] { data.block(first + 5); },
                throws({"00001.ids", "checksum", "delete it, and `sol prepare "}));
}

// Of whatever origin: their checksum is right.
TEST_F(PrepareCorpusTest, ShardsOfNoTextAreNamed) {
  options_.window_bytes = uint64_t{1} << 20;
  const PreparedManifest made = prepare();
  ASSERT_EQ(made.shards.size(), 1u);
  const auto replace = [&](const std::vector<int32_t>& ids) {
    BlockCacheWriter writer(prepared_shard_path(out(), 0), made.key());
    writer.append(ids);
    writer.commit();
  };
  std::vector<int32_t> ids(static_cast<size_t>(made.shards[0].tokens), 5);
  ASSERT_GT(ids.size(), 4096u);
  ids[1000] = tokenizer_->vocab_size();
  replace(ids);
  const BlockDataset unknown = BlockDataset::open_prepared(out(), *tokenizer_, 8);
  EXPECT_THAT([&] { unknown.block(0); },
              throws({"00000.ids", "token " + std::to_string(tokenizer_->vocab_size()),
                      "at position 1000", "delete it, and `sol prepare "}));
  std::ranges::fill(ids, 0);
  replace(ids);
  const BlockDataset zeros = BlockDataset::open_prepared(out(), *tokenizer_, 8);
  EXPECT_THAT([&] { zeros.block(0); }, throws({"00000.ids", "ids are 0"}));
  ids[7] = 1;
  replace(ids);
  EXPECT_NO_THROW(BlockDataset::open_prepared(out(), *tokenizer_, 8).block(0));
}

TEST_F(PrepareCorpusTest, ZeroBytesAreNamed) {
  write("e.jsonl.gz", gzip(json_line("x") + std::string("{\"text\": \"y\"}\0 and more\n", 24)));
  EXPECT_THAT([&] { prepare(); }, throws({"e.jsonl.gz, line 2", "zero byte"}));
  fs::remove(corpus() / "e.jsonl.gz");
  fs::remove_all(out());
  prepare();
  write_file_atomically(out() / "manifest.json",
                        read_file(out() / "manifest.json") + std::string(1, '\0'));
  EXPECT_THAT([&] { BlockDataset::open_prepared(out(), *tokenizer_, 8); },
              throws({"manifest.json", "zero byte at line "}));
}

TEST_F(PrepareCorpusTest, LinksThatLeadNowhereAndPipesAreNamed) {
  fs::create_symlink("nowhere", corpus() / "deep" / "dangling");
  EXPECT_THAT([&] { prepare(); },
              throws({"deep/dangling", "link to something that does not exist"}));
  fs::remove(corpus() / "deep" / "dangling");
  ASSERT_EQ(mkfifo((corpus() / "deep" / "pipe.jsonl").c_str(), 0600), 0);
  EXPECT_THAT([&] { prepare(); }, throws({"deep/pipe.jsonl", "a device or a pipe"}));
  fs::rename(corpus() / "deep" / "pipe.jsonl", corpus() / "deep" / "pipe");  // as any other file
  EXPECT_EQ(prepare().documents(), 400);
}

TEST_F(PrepareCorpusTest, LinksBackAreNamedAtTheFirst) {
  const fs::path loop = corpus() / "loop", other = corpus() / "other";
  const auto expect_named = [&](const fs::path& target, const fs::path& link) {
    fs::create_directory_symlink(target, link);
    EXPECT_THAT([&] { prepare(); }, throws({link.string() + ": is a link back to "}));
    fs::remove(link);
  };
  fs::create_directories(loop);
  fs::create_directories(other);
  expect_named(".", loop / "l");
  expect_named("../loop", loop / "m");
  expect_named("..", loop / "l");
  expect_named("../..", loop / "l");  // above the corpus
  // By two links, each of which leads elsewhere.
  fs::create_directory_symlink("../other", loop / "x");
  fs::create_directory_symlink("../loop", other / "y");
  EXPECT_THAT([&] { prepare(); }, throws({": is a link back to ", "a directory that it lies in"}));
  fs::remove(other / "y");
  EXPECT_EQ(prepare().documents(), 400);
}

// By whoever appends to a log, say.
TEST_F(PrepareCorpusTest, AFileThatIsChangedWhileItIsReadIsNamed) {
  const CorpusFiles found = find_corpus_files(corpus());
  for (const std::string name : {"d.jsonl", "a.jsonl.gz"}) {
    const std::string before = read_file(corpus() / name);
    std::ofstream(corpus() / name, std::ios::app | std::ios::binary) << "{";
    CorpusReader reader(found, 0, 4096);
    CorpusWindow window;
    EXPECT_THAT(
        [&] {
          while (reader.next(window, {})) {
          }
        },
        throws({name + ": was changed while it was read",
                "had " + std::to_string(before.size()) + " bytes"}));
    std::ofstream(corpus() / name, std::ios::binary) << before;
    const auto& file = *std::ranges::find(found.files, name, &CorpusFile::name);
    fs::last_write_time(corpus() / name,
                        fs::file_time_type(fs::file_time_type::duration(file.stamp.time)));
  }
}

TEST_F(PrepareCorpusTest, ARunLiesOutsideTheCorpus) {
  fs::create_directories(out("elsewhere") / "deep");
  fs::create_directory_symlink(out("elsewhere"), corpus() / "deep" / "link");
  for (const fs::path& inside :
       {corpus(), corpus() / "run", corpus() / "deep" / "new" / "run", corpus() / ".." / "corpus",
        out("elsewhere") / "deep" / "run", out("elsewhere")})
    EXPECT_THAT([&] { require_outside_corpus(inside, corpus()); },
                throws({inside.string() + ": lies in the corpus " + corpus().string()}));
  for (const fs::path& outside : {dir_.path(), out("corpus2"), out("new") / "run"})
    EXPECT_NO_THROW(require_outside_corpus(outside, corpus()));
}

TEST_F(PrepareCorpusTest, TheFirstBadLineIsNamed) {
  options_.window_bytes = size_t{1} << 20;
  fs::remove_all(corpus());
  write("a.jsonl", json_lines(0, 50) + "{\n" + json_lines(50, 90) + "{\n" + json_lines(90, 900) +
                       std::string("[]\n[]\n[]\n"));
  EXPECT_THAT([&] { prepare(); }, throws({"a.jsonl, line 51", "`sol prepare --skip-bad-lines`"}));
  options_.skip_bad_lines = true;  // nothing depends on how it was begun
  const PreparedManifest made = prepare();
  EXPECT_EQ(made.documents(), 900);
  EXPECT_EQ(made.skipped(), 5);
  EXPECT_THAT(made.shards[0].first_skipped, testing::HasSubstr("a.jsonl, line 51"));
  options_.skip_bad_lines = false;  // now it does
  EXPECT_THAT([&] { prepare(); }, throws({"--skip-bad-lines was true and is now false"}));
}

TEST_F(PrepareCorpusTest, ShardsLieInADirectoryOfTheirOwn) {
  fs::create_directory(out());
  prepare();
  fs::create_directory(out("model"));
  write_file_atomically(out("model") / "config.json", "{}");
  EXPECT_THAT([&] { prepare("model"); }, throws({"model", "other files (config.json)"}));
  EXPECT_THAT([&] { prepare("corpus"); }, throws({"corpus", "other files"}));
  EXPECT_EQ(files("model"), std::vector<std::string>{"config.json"});
  fs::remove(out() / "manifest.json");
  EXPECT_THAT([&] { prepare(); }, throws({"out: holds prepared data", "manifest.json is missing"}));
  EXPECT_THAT([&] { find_corpus_files(out()); }, throws({"out", "manifest.json is missing"}));
}

TEST_F(PrepareCorpusTest, AnotherTokenizerIsRefused) {
  prepare();
  const fs::path model = dir_.path() / "model";
  fs::create_directory(model);
  write_file_atomically(
      model / "tokenizer.json",
      read_file(test::source_dir() / "models" / "default" / "tokenizer.json") + "\n");
  const auto other = Tokenizer::load(model);
  EXPECT_THAT([&] { BlockDataset::open_prepared(out(), *other, 8); }, throws({"tokenizer"}));
  EXPECT_THAT([&] { BlockDataset::open_prepared(corpus(), *tokenizer_, 8); },
              throws({"manifest.json is missing"}));
}

TEST_F(PrepareCorpusTest, WithoutTextThereIsNothingToPrepare) {
  const fs::path empty = dir_.path() / "empty";
  const auto prepare_empty = [&] { prepare_corpus(empty, out(), options_, *tokenizer_); };
  EXPECT_THAT(prepare_empty, throws({"empty", "no such directory"}));
  fs::create_directory(empty);
  write_file_atomically(empty / "notes.txt", "x");
  EXPECT_THAT(prepare_empty, throws({"empty", ".jsonl.zst", "1 other"}));
  write_file_atomically(empty / "a.jsonl", "\n{\"text\": \" \"}\n");
  EXPECT_THAT(prepare_empty, throws({"empty", "holds no text"}));
  EXPECT_THAT(prepare_empty, throws({"empty", "holds no text"}));  // nor the second time
  options_.window_bytes = 10;
  EXPECT_THAT(prepare_empty, throws({"shuffle buffer", "1024"}));
}

TEST_F(PrepareCorpusTest, ALineMayBeLongerThanTheBuffer) {
  write("e.jsonl", json_line(std::string(20000, 'y') + " houses."));
  EXPECT_EQ(prepare().documents(), 401);
}

}  // namespace
}  // namespace sol
