#include "text/text_reader.h"

#include <chrono>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "compressed.h"
#include "support.h"
#include "text/byte_source.h"
#include "throws.h"

namespace sol {
namespace {

using test::gzip;
using test::throws;
using test::zstd;
using namespace std::chrono_literals;
using Documents = std::vector<std::string>;

class TextReaderTest : public testing::Test {
 protected:
  Documents read(const std::string& name, const std::string& content, TextOptions options = {}) {
    write_file_atomically(dir_.path() / name, content);
    return read_existing(name, options);
  }
  Documents read_existing(const std::string& name, TextOptions options = {}) {
    Documents documents;
    read_documents(dir_.path() / name, options,
                   [&](std::string&& text) { documents.push_back(std::move(text)); });
    return documents;
  }
  Documents wikitext(const std::string& name, const std::string& content) {
    return read(name, content, {.format = TextOptions::Format::wikitext});
  }

  test::TemporaryDirectory dir_;
};

TEST_F(TextReaderTest, DocumentsEndWithALine) {
  EXPECT_EQ(read("a.txt", "one\ntwo\n<|endoftext|>\n\nthree\n\n<|endoftext|>\n"),
            (Documents{"one\ntwo", "\nthree\n"}));
  // The last one may lack the line, and its newline.
  EXPECT_EQ(read("a.txt", "one\n<|endoftext|>\ntwo"), (Documents{"one", "two"}));
  EXPECT_EQ(read("a.txt", "just text\n"), (Documents{"just text"}));
  // Only a line of its own ends a document.
  EXPECT_EQ(read("a.txt", "one <|endoftext|>\n<|endoftext|> two\n"),
            (Documents{"one <|endoftext|>\n<|endoftext|> two"}));
}

TEST_F(TextReaderTest, EmptyDocumentsAreLeftOut) {
  EXPECT_EQ(read("a.txt", "<|endoftext|>\n \n<|endoftext|>\nx\n<|endoftext|>\n<|endoftext|>\n"),
            (Documents{"x"}));
}

TEST_F(TextReaderTest, LinesThatEndInCarriageReturns) {
  EXPECT_EQ(read("a.txt", "one\r\ntwo\r\n<|endoftext|>\r\nthree\r\n"),
            (Documents{"one\r\ntwo", "three"}));
}

TEST_F(TextReaderTest, WikitextLinesKeepTheirNewlineAndBlankOnesGo) {
  EXPECT_EQ(wikitext("a.raw", " \n = Title = \n \n Text . \n\nlast"),
            (Documents{" = Title = \n", " Text . \n", "last"}));
}

TEST_F(TextReaderTest, JsonLines) {
  EXPECT_EQ(read("a.jsonl",
                 "{\"text\": \"one\\ntwo\"}\n\n{\"id\": 3, \"text\": \"é\"}\r\n{\"text\": \"\"}"),
            (Documents{"one\ntwo", "é"}));
  EXPECT_EQ(read("a.jsonl", "{\"content\": \"x\", \"text\": \"y\"}\n", {.text_field = "content"}),
            (Documents{"x"}));
}

// What a line holds beside its text is nobody's business.
TEST_F(TextReaderTest, OtherFieldsOfJsonLinesMayHoldAnyNumber) {
  EXPECT_EQ(read("a.jsonl", "{\"n\": 1e400, \"text\": \"1e400\", \"m\": -1E+12345}\n"),
            (Documents{"1e400"}));
}

TEST_F(TextReaderTest, OnlyAFileMayBeginWithAByteOrderMark) {
  const std::string mark = "\xef\xbb\xbf", line = "{\"text\": \"x\"}\n";
  EXPECT_EQ(read("a.jsonl", mark + line + line), (Documents{"x", "x"}));
  EXPECT_EQ(read("a.jsonl", mark + "\n" + line), (Documents{"x"}));
  EXPECT_THAT([&] { read("a.jsonl", line + mark + line); },
              throws({"a.jsonl, line 2", "byte order mark"}));
  EXPECT_THAT([&] { read("a.jsonl", mark + mark + line); },
              throws({"a.jsonl, line 1", "byte order mark"}));
  EXPECT_THAT([&] { read("a.jsonl", mark); }, throws({"a.jsonl", "holds no text"}));
}

TEST_F(TextReaderTest, AByteOrderMarkIsNoText) {
  const std::string mark = "\xef\xbb\xbf";
  EXPECT_EQ(read("a.txt", mark + "one\n<|endoftext|>\n" + mark + "two"),
            (Documents{"one", mark + "two"}));
  EXPECT_EQ(read("a.txt", mark + "<|endoftext|>\nx\n"), (Documents{"x"}));
  EXPECT_EQ(wikitext("a.raw", mark + " = T = \n" + mark + "x\n"),
            (Documents{" = T = \n", mark + "x\n"}));
  EXPECT_EQ(wikitext("a.raw", mark + "\nx\n"), (Documents{"x\n"}));
  EXPECT_EQ(read("a.txt.gz", gzip(mark + "x")), (Documents{"x"}));
  EXPECT_THAT([&] { read("a.txt", mark + "\n"); }, throws({"a.txt", "holds no text"}));
  // It counts where a place is told in bytes.
  EXPECT_THAT([&] { read("a.txt", mark + "x\n\xff"); },
              throws({"a.txt, line 2", "byte 5 of the file"}));
}

TEST_F(TextReaderTest, ExtensionsMayBeInUpperCase) {
  EXPECT_EQ(read("A.TXT", "x"), (Documents{"x"}));
  EXPECT_EQ(read("A.JSONL.GZ", gzip("{\"text\": \"x\"}")), (Documents{"x"}));
  EXPECT_EQ(read("A.Json.Zst", zstd("{\"text\": \"x\"}")), (Documents{"x"}));
}

TEST_F(TextReaderTest, MalformedJsonLinesAreNamed) {
  EXPECT_THAT([&] { read("a.jsonl", "{\"text\": \"x\"}\n{\"text\": "); },
              throws({"a.jsonl, line 2", "not valid JSON"}));
  EXPECT_THAT([&] { read("a.jsonl", "\n{\"content\": \"x\"}\n"); },
              throws({"a.jsonl, line 2", "\"text\"", "missing"}));
  EXPECT_THAT([&] { read("a.jsonl", "{\"text\": 3}\n"); },
              throws({"a.jsonl, line 1", "\"text\"", "a string"}));
  EXPECT_THAT([&] { read("a.jsonl", "[1]\n"); }, throws({"a.jsonl, line 1", "object"}));
}

// Larger than every buffer on the way, with lines of very different lengths.
TEST_F(TextReaderTest, CompressedFilesGiveTheSameText) {
  std::string content;
  for (int i = 0; i < 3000; ++i)
    content += std::string(static_cast<size_t>(i % 700), static_cast<char>('a' + i % 26)) +
               std::to_string(i) + (i % 100 == 99 ? "\n<|endoftext|>\n" : "\n");
  content += std::string(400'000, 'z');
  const Documents plain = read("a.txt", content);
  EXPECT_EQ(plain.size(), 31u);
  EXPECT_EQ(read("a.txt.gz", gzip(content)), plain);
  EXPECT_EQ(read("a.txt.zst", zstd(content)), plain);
  // Several members or frames one after another are one text.
  const std::string half = content.substr(0, 300'001), rest = content.substr(300'001);
  EXPECT_EQ(read("a.txt.gz", gzip(half) + gzip(rest)), plain);
  EXPECT_EQ(read("a.txt.zst", zstd(half) + zstd(rest)), plain);
}

TEST_F(TextReaderTest, CompressionAndKindCombine) {
  EXPECT_EQ(read("a.jsonl.gz", gzip("{\"text\": \"x\"}")), (Documents{"x"}));
  EXPECT_EQ(read("a.json.gz", gzip("{\"text\": \"x\"}")), (Documents{"x"}));
  EXPECT_EQ(wikitext("a.raw.zst", zstd("x\n\ny\n")), (Documents{"x\n", "y\n"}));
}

TEST_F(TextReaderTest, EveryTruncationOfACompressedFileIsAnError) {
  const std::string text = "some text\nand a second line\n";
  const std::vector<std::pair<std::string, std::string>> files{{"a.txt.gz", gzip(text)},
                                                               {"a.txt.zst", zstd(text)}};
  for (const auto& file : files)
    for (size_t length = 0; length < file.second.size(); ++length)
      EXPECT_THAT([&] { read(file.first, file.second.substr(0, length)); },
                  throws({file.first, "truncated"}))
          << length;
}

TEST_F(TextReaderTest, LinesCanBeLimited) {
  write_file_atomically(dir_.path() / "a.txt", "short\n" + std::string(1 << 20, 'x'));
  std::string line;
  LineReader lines(open_byte_source(dir_.path() / "a.txt"), 1000);
  EXPECT_TRUE(lines.next(line));
  EXPECT_THAT([&] { lines.next(line); }, throws({"a.txt, line 2", "1000 bytes"}));
}

TEST_F(TextReaderTest, DamagedCompressedFilesAreNamed) {
  EXPECT_THAT([&] { read("a.txt.gz", "not compressed at all"); },
              throws({"a.txt.gz", "damaged gzip"}));
  EXPECT_THAT([&] { read("a.txt.zst", "not compressed at all"); },
              throws({"a.txt.zst", "damaged zstd"}));
  EXPECT_THAT([&] { read("a.txt.gz", gzip("text") + "garbage"); }, throws({"a.txt.gz", "damaged"}));
  EXPECT_THAT([&] { read("a.txt.zst", zstd("text") + "garbage"); },
              throws({"a.txt.zst", "damaged"}));
  std::string checksum = gzip("text that is long enough to be worth it");
  checksum[checksum.size() - 6] ^= 1;
  EXPECT_THAT([&] { read("a.txt.gz", checksum); }, throws({"a.txt.gz", "damaged"}));
}

TEST_F(TextReaderTest, FilesWithoutTextAreErrors) {
  EXPECT_THAT([&] { read("a.txt", ""); }, throws({"a.txt", "no text"}));
  EXPECT_THAT([&] { read("a.txt", " \n\n<|endoftext|>\n"); }, throws({"a.txt", "no text"}));
  EXPECT_THAT([&] { read("a.jsonl", "\n"); }, throws({"a.jsonl", "no text"}));
  EXPECT_THAT([&] { read("a.txt.gz", gzip("")); }, throws({"a.txt.gz", "no text"}));
  EXPECT_THAT([&] { wikitext("a.raw", "\n \n"); }, throws({"a.raw", "no text"}));
}

TEST_F(TextReaderTest, UnknownKindsAreErrors) {
  for (const char* name : {"a.csv", "a", "a.gz", "a.parquet.zst", "a.json"})
    EXPECT_THAT([&] { read(name, "x"); }, throws({name, ".jsonl"}));
}

TEST_F(TextReaderTest, UnreadableFilesAreNamed) {
  EXPECT_THAT([&] { read_existing("none.txt"); }, throws({"none.txt", "cannot open"}));
  std::filesystem::create_directory(dir_.path() / "dir.txt");
  EXPECT_THAT([&] { read_existing("dir.txt"); }, throws({"dir.txt", "directory"}));
}

// One rule for every kind of file: UTF-8 without zero bytes.
TEST_F(TextReaderTest, TextThatIsNotUtf8IsNamedWithItsPlace) {
  using namespace std::string_literals;
  EXPECT_EQ(read("a.txt", "\xef\xbb\xbf\u00e9\u20ac\U0001f600\n").size(), 1u);
  EXPECT_THAT([&] { read("a.txt", "one\n\u00e9 \xff\n"); },
              throws({"a.txt, line 2", "not UTF-8", "byte 7 of the file is 0xff"}));
  EXPECT_THAT([&] { wikitext("a.raw", "one\n\n\xc3"); },
              throws({"a.raw, line 3", "byte 5 of the file is 0xc3"}));  // cut in a character
  EXPECT_THAT([&] { read("a.txt.gz", gzip("one\n\xe9t\xe9\n")); },
              throws({"a.txt.gz, line 2", "byte 4 of the decompressed text is 0xe9"}));
  EXPECT_THAT([&] { read("a.txt", "one\ntw\0o\n"s); },
              throws({"a.txt, line 2", "byte 6 of the file is 0x00", "UTF-16"}));
  EXPECT_THAT([&] { read("a.txt", "a\xc3\0\n"s); }, throws({"byte 1 of the file is 0xc3"}));
  EXPECT_THAT([&] { read("a.txt", "\xff\xfeo\0n\0e\0"s); }, throws({"byte 0 of the file"}));
  EXPECT_THAT([&] { read("a.jsonl", "{\"text\": \"\xff\"}\n"); },
              throws({"a.jsonl, line 1", "UTF-8"}));
}

TEST_F(TextReaderTest, NothingBehindAZeroByteIsPassedOver) {
  using namespace std::string_literals;
  const std::string lines = "{\"text\": \"x\"}\n{\"text\": \"y\"}\0{\"text\": \"z\"}\n"s;
  const std::vector<std::pair<std::string, std::string>> files{
      {"a.jsonl", lines}, {"a.jsonl.gz", gzip(lines)}, {"a.jsonl.zst", zstd(lines)}};
  for (const auto& file : files)
    EXPECT_THAT([&] { read(file.first, file.second); },
                throws({file.first + ", line 2", "a zero byte at column 14"}));
}

TEST_F(TextReaderTest, AFileThatIsChangedWhileItIsReadIsNamed) {
  const auto path = dir_.path() / "a.txt";
  write_file_atomically(path, "one\n<|endoftext|>\ntwo\n");
  const auto during = [&](const std::function<void()>& change) {
    read_documents(path, {}, [&](std::string&& text) {
      if (text == "one") change();
    });
  };
  EXPECT_THAT([&] { during([&] { std::ofstream(path, std::ios::app) << "three\n"; }); },
              throws({"a.txt: was changed while it was read", "it had 22 bytes and has 28"}));
  EXPECT_THAT(
      [&] {
        during([&] {
          std::filesystem::last_write_time(path,
                                           std::filesystem::file_time_type::clock::now() + 1h);
        });
      },
      throws({"a.txt: was changed", "time of change"}));
  EXPECT_THAT([&] { during([&] { std::filesystem::remove(path); }); }, throws({"a.txt"}));
}

// What the callback throws comes through: a caller can stop early.
TEST_F(TextReaderTest, CallbacksMayThrow) {
  write_file_atomically(dir_.path() / "a.txt", "x\n<|endoftext|>\ny\n");
  EXPECT_THROW(read_documents(dir_.path() / "a.txt", {}, [](std::string&&) { throw 5; }), int);
}

}  // namespace
}  // namespace sol
