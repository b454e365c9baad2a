#include "model/torch_checkpoint.h"

#include <zlib.h>

#include "base/file_io.h"
#include "model/pickle.h"
#include "model/safetensors.h"
#include "model/zip_archive.h"
#include "support.h"
#include "throws.h"

namespace sol {
namespace {

namespace fs = std::filesystem;
using test::throws;

fs::path saved(const char* name) {
  return test::test_data() / "torch" / name;
}

Pickle unpickle(std::string_view text) {
  return {std::as_bytes(std::span(text)), "x.pkl"};
}

std::string little(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

// A zip archive of stored entries.
std::string zip(const std::vector<std::pair<std::string, std::string>>& entries, int method = 0,
                int flags = 0) {
  std::string file, directory;
  for (const auto& [name, content] : entries) {
    const auto crc =
        crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
    const std::string common = little(0, 2) + little(static_cast<uint64_t>(flags), 2) +
                               little(static_cast<uint64_t>(method), 2) + little(0, 4) +
                               little(crc, 4) + little(content.size(), 4) +
                               little(content.size(), 4) + little(name.size(), 2) + little(0, 2);
    directory += little(0x02014b50, 4) + little(0, 2) + common + little(0, 10) +
                 little(file.size(), 4) + name;
    file += little(0x04034b50, 4) + common + name + content;
  }
  return file + directory + little(0x06054b50, 4) + little(0, 4) + little(entries.size(), 2) +
         little(entries.size(), 2) + little(directory.size(), 4) + little(file.size(), 4) +
         little(0, 2);
}

class TorchCheckpointTest : public testing::Test {
 protected:
  fs::path write(const std::string& bytes) {
    write_file_atomically(dir_.path() / "x.pt", bytes);
    return dir_.path() / "x.pt";
  }
  test::TemporaryDirectory dir_;
};

TEST_F(TorchCheckpointTest, ReadsEveryKindOfTensor) {
  const TorchCheckpoint c = read_torch_checkpoint(saved("tensors.pt"));
  ASSERT_EQ(c.state.size(), 5u);
  const auto& transposed = c.state.at("transposed");
  EXPECT_EQ(transposed.shape, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(transposed.values, (std::vector<float>{1, 7, 13, 19, 2, 8, 14, 20, 3, 9, 15, 21}));
  EXPECT_EQ(c.state.at("shared").values, (std::vector<float>{20, 21, 22, 23}));
  EXPECT_EQ(c.state.at("half").values, (std::vector<float>{0.5, -2}));
  EXPECT_EQ(c.state.at("bf16").shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(c.state.at("bf16").values, (std::vector<float>{1, -3}));
  EXPECT_TRUE(c.state.at("scalar").shape.empty());
  EXPECT_EQ(c.state.at("scalar").values, (std::vector<float>{7}));
  EXPECT_EQ(to_text(c.settings), R"({"a":[1,2.5,"x"],"b":null,"c":null,"n":-70000,"dtype":null})");
}

TEST_F(TorchCheckpointTest, ReadsWhatTheAuthorsTrainingWrites) {
  const TorchCheckpoint c =
      read_torch_checkpoint(test::test_data() / "golden/sol/policy_p1_nested.pt");
  const auto expected =
      TensorStore::open_file(test::test_data() / "golden/sol/policy_p1.safetensors");
  size_t compared = 0;
  for (const auto& [name, tensor] : expected.tensors()) {
    if (!name.starts_with("param.")) continue;
    EXPECT_EQ(c.state.at(name.substr(6)).values, tensor.to_floats()) << name;
    EXPECT_EQ(c.state.at(name.substr(6)).shape, tensor.shape) << name;
    ++compared;
  }
  EXPECT_EQ(c.state.size(), compared);
  EXPECT_EQ(c.settings.at("rollout_len"), 16);
}

TEST_F(TorchCheckpointTest, WhatOnlyCodeCouldReadIsAnError) {
  EXPECT_THAT([] { read_torch_checkpoint(saved("module.pt")); },
              throws({"module.pt", "torch.nn.modules.linear.Linear"}));
  EXPECT_THAT([] { read_torch_checkpoint(saved("legacy.pt")); },
              throws({"legacy.pt", "not a zip archive", "1.6"}));
  EXPECT_THAT([] { unpickle("cos\nsystem\n(X\x04\0\0\0trueetR."); }, throws({"os.system"}));
  EXPECT_THAT(
      [] {
        unpickle(
            "\x80\x04\x8c\x08"
            "builtins\x8c\x04"
            "eval\x93.");
      },
      throws({"builtins.eval"}));
  // Known names do only what they are known for.
  EXPECT_THAT([] { unpickle("ctorch\nfloat32\n)R."); }, throws({"calls torch.float32"}));
  EXPECT_THAT([] { unpickle("ccollections\nOrderedDict\n(K\x01tR."); }, throws({"OrderedDict"}));
  EXPECT_THAT([] { unpickle("ccollections\nOrderedDict\n)\x81."); }, throws({"0x81"}));
}

TEST_F(TorchCheckpointTest, MalformedPicklesAreErrors) {
  for (const std::string_view text : {"",
                                      ".",
                                      "(.",
                                      "K",
                                      "X\xff\xff\xff\xff"
                                      "a.",
                                      "K\x01K\x02s.",
                                      "}K\x01"
                                      "e.",
                                      "u.",
                                      "h\x01.",
                                      "]K\x01q",
                                      "t.",
                                      "\x85.",
                                      "R.",
                                      "Q.",
                                      "b.",
                                      "\x8a\x09"
                                      "123456789.",
                                      "\x80\x05N.",
                                      "(K\x01(u.",
                                      "}(K\x01u.",
                                      "ctorch._utils\n_rebuild_tensor_v2\n)R.",
                                      "K\x01Q.",
                                      "N)R."})
    EXPECT_THROW(unpickle(text), Error) << testing::PrintToString(text);
  // A dictionary within itself is odd, but data.
  const Pickle circle = unpickle({"}q\x01X\x01\0\0\0ah\x01s.", 13});
  ASSERT_TRUE(circle.root().as<PickleDict>());
}

TEST_F(TorchCheckpointTest, DamagedFilesAreErrors) {
  const std::string good = read_file(saved("tensors.pt"));
  for (size_t n = 0; n < good.size(); n += 7)
    EXPECT_THROW(read_torch_checkpoint(write(good.substr(0, n))), Error) << n;
  // Whatever a changed byte does, it is an error or has no effect on the numbers.
  const auto expected = read_torch_checkpoint(saved("tensors.pt"));
  for (size_t n = 0; n < good.size(); n += 5) {
    std::string bad = good;
    bad[n] = static_cast<char>(bad[n] ^ 0x5a);
    try {
      const auto read = read_torch_checkpoint(write(bad));
      for (const auto& [name, tensor] : read.state)
        EXPECT_EQ(tensor.values, expected.state.at(name).values) << n;
    } catch (const Error&) {
    }
  }
}

TEST_F(TorchCheckpointTest, ArchivesThatTorchDoesNotWriteAreErrors) {
  const auto open = [&](const std::string& bytes) { return ZipArchive(write(bytes)); };
  EXPECT_EQ(open(zip({{"a", "12"}, {"b", ""}})).entries().size(), 2u);
  EXPECT_THAT([&] { open(zip({{"a", "12"}}, 8)); }, throws({"x.pt", "a is compressed (method 8)"}));
  EXPECT_THAT([&] { open(zip({{"a", "12"}}, 0, 1)); }, throws({"a is encrypted"}));
  EXPECT_THAT([&] { open(zip({{"a", "12"}, {"a", "3"}})); }, throws({"a is there twice"}));
  std::string wrong = zip({{"a", "12"}});
  wrong[31] = 'x';
  EXPECT_THAT([&] { open(wrong); }, throws({"a is damaged"}));
  EXPECT_THAT([&] { read_torch_checkpoint(write(zip({{"a", "12"}}))); }, throws({"no data.pkl"}));
  EXPECT_THAT(
      [&] {
        read_torch_checkpoint(write(zip({{"x/data.pkl", "N."}})));
      },
      throws({"holds no dictionary"}));
  EXPECT_THAT(
      [&] {
        read_torch_checkpoint(write(zip({{"x/data.pkl", "}."}})));
      },
      throws({"holds no tensors"}));
  EXPECT_THAT(
      [&] {
        read_torch_checkpoint(write(zip({{"x/data.pkl", "}."}, {"x/byteorder", "big"}})));
      },
      throws({"little-endian"}));
}

// The pickle of {"w": a tensor of a float storage "0" of four elements}.
std::string tensor_pickle(const std::string& offset, const std::string& shape,
                          const std::string& strides) {
  return std::string("}X\x01\0\0\0w", 7) + "ctorch._utils\n_rebuild_tensor_v2\n((X" +
         std::string(
             "\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0"
             "0X\x03\0\0\0cpuK\x04tQ",
             49) +
         offset + "(" + shape + "t(" + strides + "t\x89NtRs.";
}

TEST_F(TorchCheckpointTest, TensorsOutsideTheirStorageAreErrors) {
  const auto read = [&](const std::string& pickle, size_t bytes = 16) {
    return read_torch_checkpoint(
        write(zip({{"x/data.pkl", pickle}, {"x/data/0", std::string(bytes, '\0')}})));
  };
  EXPECT_EQ(read(tensor_pickle("K\x01", "K\x03", "K\x01")).state.at("w").values.size(), 3u);
  EXPECT_THAT([&] { read(tensor_pickle("K\x02", "K\x03", "K\x01")); },
              throws({"w", "beyond its storage"}));
  EXPECT_THAT([&] { read(tensor_pickle("J\xff\xff\xff\xff", "K\x01", "K\x01")); },
              throws({"beyond its storage"}));
  EXPECT_THAT([&] { read(tensor_pickle(std::string("K\0", 2), "K\x05", "K\x01")); },
              throws({"larger than its storage"}));
  EXPECT_THAT([&] { read(tensor_pickle(std::string("K\0", 2), "K\x02", "K\x01K\x01")); },
              throws({"strides"}));
  EXPECT_THAT(
      [&] {
        read(tensor_pickle(std::string("K\0", 2), "K\x02",
                           std::string("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", 10)));
      },
      throws({"beyond its storage"}));
  EXPECT_THAT([&] { read(tensor_pickle(std::string("K\0", 2), "K\x02", "K\x01"), 15); },
              throws({"3 elements instead of 4"}));
}

}  // namespace
}  // namespace sol
