#include "model/safetensors.h"

#include <bit>
#include <cmath>
#include <limits>

#include "base/bfloat16.h"
#include "model_files.h"
#include "throws.h"

namespace sol {
namespace {

using test::safetensors_bytes;
using test::throws;

class SafetensorsTest : public testing::Test {
 protected:
  // Opens a file with this content.
  TensorStore open(const std::string& bytes) {
    write_file_atomically(path(), bytes);
    return TensorStore::open_file(path());
  }
  TensorStore open(const std::string& header, size_t data_size) {
    return open(safetensors_bytes(header, data_size));
  }
  std::filesystem::path path() const { return dir_.path() / "x.safetensors"; }

  test::TemporaryDirectory dir_;
};

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

TEST_F(SafetensorsTest, WhatIsWrittenIsRead) {
  const std::vector<float> floats{1.5f, -2.0f, 0.0f, 3.25f, 1e-30f, 7.0f};
  const std::vector<bf16> halves{to_bf16(1.0f), to_bf16(-3.0f)};
  const std::vector<int64_t> ints{1, -2, int64_t{1} << 40};
  const std::vector<uint8_t> bytes{1, 0, 1};
  const std::vector<TensorToWrite> tensors{{"bytes", DType::u8, {3}, bytes_of(bytes)},
                                           {"ints", DType::i64, {3}, bytes_of(ints)},
                                           {"halves", DType::bf16, {2, 1}, bytes_of(halves)},
                                           {"floats", DType::f32, {2, 3}, bytes_of(floats)},
                                           {"empty", DType::f32, {0, 5}, {}},
                                           {"scalar", DType::f32, {}, bytes_of(floats).first(4)}};
  write_safetensors(path(), tensors, {{"format", "pt"}, {"note", "ünï \"quoted\""}});
  const TensorStore store = TensorStore::open_file(path());
  EXPECT_EQ(store.tensors().size(), 6u);
  EXPECT_EQ(store.get("floats").to_floats(), floats);
  EXPECT_EQ(store.get("floats").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(store.get("halves").to_floats(), (std::vector<float>{1.0f, -3.0f}));
  EXPECT_EQ(store.get("ints").to_ints(), ints);
  EXPECT_EQ(store.get("bytes").to_ints(), (std::vector<int64_t>{1, 0, 1}));
  EXPECT_EQ(store.get("empty").count(), 0);
  EXPECT_EQ(store.get("scalar").count(), 1);
  EXPECT_EQ(store.metadata().at("note"), "ünï \"quoted\"");
  EXPECT_EQ(store.get("halves").describe(), "halves BF16 [2, 1] of " + path().string());
  for (const auto& [name, tensor] : store.tensors())
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.bytes.data()) % size_of(tensor.type), 0u) << name;
}

TEST_F(SafetensorsTest, FindsTheFirstElementThatIsNotFinite) {
  const std::vector<uint16_t> bf16s{0x3f80, 0x7f7f, 0xff80}, halves{0x7bff, 0x7e00}, fine{0x7f7f};
  const std::vector<double> doubles{1e308, std::numeric_limits<double>::quiet_NaN()};
  const std::vector<float> floats{1.0f, 3e38f, -std::numeric_limits<float>::infinity()};
  const std::vector<int32_t> ints{1};
  const std::vector<TensorToWrite> tensors{
      {"d", DType::f64, {2}, bytes_of(doubles)}, {"f", DType::f32, {3}, bytes_of(floats)},
      {"i", DType::i32, {1}, bytes_of(ints)},    {"b", DType::bf16, {3}, bytes_of(bf16s)},
      {"h", DType::f16, {2}, bytes_of(halves)},  {"fine", DType::bf16, {1}, bytes_of(fine)}};
  write_safetensors(path(), tensors);
  const TensorStore store = TensorStore::open_file(path());
  EXPECT_EQ(store.get("f").first_not_finite(), 2);
  EXPECT_EQ(store.get("b").first_not_finite(), 2);
  EXPECT_EQ(store.get("h").first_not_finite(), 1);
  EXPECT_EQ(store.get("d").first_not_finite(), 1);
  EXPECT_EQ(store.get("fine").first_not_finite(), std::nullopt);
  EXPECT_THAT([&] { store.get("i").first_not_finite(); }, throws({"i I32", path().string()}));
}

TEST_F(SafetensorsTest, HalfPrecisionIsConvertedExactly) {
  const std::vector<uint16_t> bits{0x3c00, 0xc000, 0x0001, 0x03ff, 0x0400, 0x7bff, 0x7c00, 0x7e00};
  const std::vector<TensorToWrite> tensors{{"h", DType::f16, {8}, bytes_of(bits)}};
  write_safetensors(path(), tensors);
  const std::vector<float> values = TensorStore::open_file(path()).get("h").to_floats();
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(values[1], -2.0f);
  EXPECT_EQ(values[2], 0x1p-24f);
  EXPECT_EQ(values[3], 0x1p-14f - 0x1p-24f);
  EXPECT_EQ(values[4], 0x1p-14f);
  EXPECT_EQ(values[5], 65504.0f);
  EXPECT_EQ(values[6], std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(values[7]));
}

TEST_F(SafetensorsTest, ConversionsOfTheWrongKindAreErrors) {
  const TensorStore store = open(R"({"f":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                                 R"("i":{"dtype":"I32","shape":[1],"data_offsets":[4,8]}})",
                                 8);
  EXPECT_THAT([&] { store.get("f").to_ints(); }, throws({"f F32 [1]", "no integers"}));
  EXPECT_THAT([&] { store.get("i").to_floats(); }, throws({"i I32 [1]", "floating-point"}));
}

TEST_F(SafetensorsTest, AMissingTensorComesWithTheNearestNames) {
  const TensorStore store = TensorStore::open_file(test::golden("tiny_tied_f32/model.safetensors"));
  EXPECT_FALSE(store.has("model.layers.0.mlp.up_prj.weight"));
  EXPECT_THAT([&] { store.get("model.layers.0.mlp.up_prj.weight"); },
              throws({"model.safetensors", "\"model.layers.0.mlp.up_prj.weight\"",
                      "nearest names are model.layers.0.mlp.up_proj.weight"}));
}

// An unpadded header, as old writers made: elements are aligned all the same.
TEST_F(SafetensorsTest, UnalignedDataIsAligned) {
  const std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]} })";
  ASSERT_NE(header.size() % 4, 0u);
  std::string bytes = safetensors_bytes(header, 8);
  const float value = 2.5f;
  std::memcpy(bytes.data() + 8 + header.size() + 4, &value, 4);
  const TensorStore store = open(bytes);
  const TensorView& tensor = store.get("a");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.bytes.data()) % 4, 0u);
  EXPECT_EQ(tensor.to_floats(), (std::vector<float>{0.0f, 2.5f}));
}

TEST_F(SafetensorsTest, AnEmptyHeaderHoldsNothing) {
  EXPECT_TRUE(open("{}  ", 0).tensors().empty());
  EXPECT_TRUE(open(R"({"__metadata__":{"a":"b"}})", 0).tensors().empty());
}

TEST_F(SafetensorsTest, FilesTooShortForAHeader) {
  EXPECT_THAT([&] { open(""); }, throws({"x.safetensors", "only 0 bytes"}));
  EXPECT_THAT([&] { open("1234567"); }, throws({"only 7 bytes"}));
}

TEST_F(SafetensorsTest, HeaderLengthsThatCannotBe) {
  const auto with_length = [](uint64_t length) {
    std::string bytes = safetensors_bytes("{}", 100);
    std::memcpy(bytes.data(), &length, sizeof(length));
    return bytes;
  };
  for (const uint64_t length :
       {UINT64_MAX, UINT64_MAX - 7, UINT64_MAX - 8, uint64_t{1} << 63, uint64_t{100'000'001}})
    EXPECT_THAT([&] { open(with_length(length)); }, throws({"x.safetensors", "more than the"}));
  for (const uint64_t length : {uint64_t{103}, uint64_t{110}, uint64_t{100'000'000}})
    EXPECT_THAT([&] { open(with_length(length)); }, throws({"x.safetensors", "truncated"}));
  EXPECT_THAT([&] { open(with_length(0)); }, throws({"not valid JSON"}));
}

struct BadHeader {
  const char* name;
  const char* header;
  size_t data_size;
  std::vector<std::string> message;
};

class BadHeaderTest : public SafetensorsTest, public testing::WithParamInterface<BadHeader> {};

TEST_P(BadHeaderTest, IsAnErrorThatNamesThePlace) {
  std::vector<std::string> message = GetParam().message;
  message.push_back("x.safetensors");
  EXPECT_THAT([&] { open(GetParam().header, GetParam().data_size); }, throws(message));
}

INSTANTIATE_TEST_SUITE_P(
    Safetensors, BadHeaderTest,
    testing::Values(
        BadHeader{"truncated_data",
                  R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})",
                  15,
                  {"\"a\"", "truncated"}},
        BadHeader{"trailing_bytes",
                  R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})",
                  17,
                  {"last 1 bytes belong to no tensor"}},
        BadHeader{"trailing_bytes_without_tensors", "{}", 3, {"last 3 bytes"}},
        BadHeader{"gap_at_the_start",
                  R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                  8,
                  {"4 bytes before tensor \"a\""}},
        BadHeader{"gap_between",
                  R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                  R"("b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}})",
                  5,
                  {"1 bytes before tensor \"b\""}},
        BadHeader{"overlap",
                  R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                  R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
                  6,
                  {"\"a\"", "\"b\"", "overlap"}},
        BadHeader{"same_bytes_twice",
                  R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                  R"("b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
                  4,
                  {"\"a\"", "\"b\"", "overlap"}},
        BadHeader{"reversed_offsets",
                  R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[16,0]}})",
                  16,
                  {"\"a\"", "reversed: [16, 0]"}},
        BadHeader{"negative_begin",
                  R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[-16,0]}})",
                  16,
                  {"\"a\"", "data_offsets", "negative number -16"}},
        BadHeader{"offsets_near_2_64",
                  R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[18446744073709551612,)"
                  R"(18446744073709551615]}})",
                  4,
                  {"\"a\"", "truncated"}},
        BadHeader{"offset_beyond_64_bits",
                  R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,18446744073709551620]}})",
                  4,
                  {"\"a\"", "data_offsets", "18446744073709551620"}},
        BadHeader{"fractional_offset",
                  R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4.5]}})",
                  4,
                  {"\"a\"", "4.5"}},
        BadHeader{"offsets_disagree_with_shape",
                  R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,16]}})",
                  16,
                  {"\"a\"", "need 12 bytes", "give it 16"}},
        BadHeader{"offsets_disagree_with_dtype",
                  R"({"a":{"dtype":"BF16","shape":[4],"data_offsets":[0,16]}})",
                  16,
                  {"\"a\"", "need 8 bytes", "give it 16"}},
        // 2^32 * 2^32 wraps to 0, 2^62 F32 elements to 0 bytes.
        BadHeader{"shape_product_wraps",
                  R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})",
                  0,
                  {"\"a\"", "more elements"}},
        BadHeader{"byte_count_wraps",
                  R"({"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})",
                  0,
                  {"\"a\"", "more elements"}},
        BadHeader{"wraps_to_the_right_size",
                  R"({"a":{"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]}})",
                  4,
                  {"\"a\"", "more elements"}},
        BadHeader{"negative_dimension",
                  R"({"a":{"dtype":"U8","shape":[-2,-2],"data_offsets":[0,4]}})",
                  4,
                  {"\"a\"", "shape", "negative number -2"}},
        BadHeader{"dimension_of_64_bits",
                  R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,4]}})",
                  4,
                  {"\"a\"", "18446744073709551615"}},
        BadHeader{"unknown_dtype",
                  R"({"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}})",
                  4,
                  {"\"a\"", "F8_E4M3"}},
        BadHeader{"no_dtype", R"({"a":{"shape":[4],"data_offsets":[0,4]}})", 4, {"\"a\"", "dtype"}},
        BadHeader{
            "no_shape", R"({"a":{"dtype":"U8","data_offsets":[0,4]}})", 4, {"\"a\"", "shape"}},
        BadHeader{
            "no_offsets", R"({"a":{"dtype":"U8","shape":[4]}})", 4, {"\"a\"", "data_offsets"}},
        BadHeader{"one_offset",
                  R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4]}})",
                  4,
                  {"\"a\"", "two numbers"}},
        BadHeader{"three_offsets",
                  R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4,4]}})",
                  4,
                  {"\"a\"", "two numbers"}},
        BadHeader{"unknown_field",
                  R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],"strides":[1]}})",
                  4,
                  {"\"a\"", "\"strides\""}},
        BadHeader{"field_twice",
                  R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],"shape":[2]}})",
                  4,
                  {"\"a\"", "\"shape\"", "twice"}},
        BadHeader{"duplicate_name",
                  R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                  R"("a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
                  8,
                  {"\"a\" occurs twice"}},
        BadHeader{"duplicate_metadata",
                  R"({"__metadata__":{},"__metadata__":{}})",
                  0,
                  {"__metadata__", "twice"}},
        BadHeader{"metadata_of_numbers", R"({"__metadata__":{"a":1}})", 0, {"a number"}},
        BadHeader{"nested_metadata", R"({"__metadata__":{"a":{}}})", 0, {"an object"}},
        BadHeader{"nested_shape",
                  R"({"a":{"dtype":"U8","shape":[[4]],"data_offsets":[0,4]}})",
                  4,
                  {"\"a\"", "an array"}},
        BadHeader{"shape_of_strings",
                  R"({"a":{"dtype":"U8","shape":["4"],"data_offsets":[0,4]}})",
                  4,
                  {"\"a\"", "a string"}},
        BadHeader{"tensor_is_a_number", R"({"a":4})", 0, {"\"a\"", "a number"}},
        BadHeader{"tensor_is_null", R"({"a":null})", 0, {"\"a\"", "null"}},
        BadHeader{"an_array", "[]", 0, {"an array"}},
        BadHeader{"cut_off", R"({"a":{"dtype":"U8","sha)", 0, {"not valid JSON"}},
        BadHeader{"text_behind", "{} {}", 0, {"not valid JSON"}},
        BadHeader{"not_utf8", "{\"\xff\":{}}", 0, {"not valid JSON"}},
        BadHeader{"binary", "\x01\x02\x03", 0, {"not valid JSON"}}),
    [](const auto& test) { return std::string(test.param.name); });

TEST_F(SafetensorsTest, DeepNestingIsAnError) {
  EXPECT_THAT([&] { open(std::string(1'000'000, '['), 0); }, throws({"x.safetensors"}));
  std::string header;
  for (int i = 0; i < 100'000; ++i) header += "{\"a\":";
  EXPECT_THAT([&] { open(header, 0); }, throws({"x.safetensors"}));
}

// Every prefix of a real file is an error, never a crash or a shorter model.
TEST_F(SafetensorsTest, EveryTruncationIsAnError) {
  const std::string whole =
      safetensors_bytes(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                        R"("b":{"dtype":"BF16","shape":[2,2],"data_offsets":[8,16]}})",
                        16);
  EXPECT_EQ(open(whole).tensors().size(), 2u);
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_THAT([&] { open(whole.substr(0, length)); }, throws({"x.safetensors"})) << length;
}

TEST_F(SafetensorsTest, FilesThatCannotBeOpened) {
  EXPECT_THAT([] { TensorStore::open_file("/nonexistent/m.safetensors"); },
              throws({"/nonexistent/m.safetensors"}));
  EXPECT_THAT([&] { TensorStore::open_file(dir_.path()); }, throws({"is a directory"}));
}

TEST_F(SafetensorsTest, AChecksumIsOverEverythingInTheFile) {
  const std::vector<float> four{1, 2, 3, 4};
  const auto tensors = [&](const char* name, std::vector<int64_t> shape) {
    return std::vector<TensorToWrite>{{name, DType::f32, std::move(shape), bytes_of(four)}};
  };
  const auto require = [&] { require_checksum(TensorStore::open_file(path())); };
  write_checked_safetensors(path(), tensors("a", {4}), {{"k", "v"}});
  EXPECT_NO_THROW(require());
  const std::string checksum = TensorStore::open_file(path()).metadata().at("checksum");
  const auto throws_with = [&](const std::vector<TensorToWrite>& others,
                               std::map<std::string, std::string> metadata) {
    metadata["checksum"] = checksum;
    write_safetensors(path(), others, metadata);
    EXPECT_THAT(require, throws({"x.safetensors", "checksum is wrong"}));
  };
  throws_with(tensors("b", {4}), {{"k", "v"}});
  throws_with(tensors("a", {2, 2}), {{"k", "v"}});
  throws_with(tensors("a", {4}), {{"k", "w"}});
  throws_with(tensors("a", {4}), {});
  throws_with({}, {{"k", "v"}});
  const std::vector<float> other{1, 2, 3, 5};
  throws_with({{"a", DType::f32, {4}, bytes_of(other)}}, {{"k", "v"}});
  write_safetensors(path(), tensors("a", {4}), {{"k", "v"}});
  EXPECT_THAT(require, throws({"x.safetensors", "no checksum"}));
}

TEST_F(SafetensorsTest, TensorsThatCannotBeWrittenLeaveNothing) {
  const std::vector<float> four(4);
  const auto write = [&](std::vector<TensorToWrite> tensors) {
    write_safetensors(path(), tensors);
  };
  EXPECT_THAT(
      [&] {
        write({{"a", DType::f32, {3}, bytes_of(four)}});
      },
      throws({"x.safetensors", "\"a\"", "16 bytes"}));
  EXPECT_THAT([&] { write({{"a", DType::f32, {-4}, bytes_of(four)}}); }, throws({"\"a\""}));
  EXPECT_THAT(
      [&] {
        write({{"a", DType::f32, {4}, bytes_of(four)}, {"a", DType::f32, {0}, {}}});
      },
      throws({"\"a\"", "twice"}));
  EXPECT_THAT(
      [&] {
        write({{"__metadata__", DType::f32, {4}, bytes_of(four)}});
      },
      throws({"reserved"}));
  EXPECT_THAT([&] { write({{"\xff", DType::f32, {4}, bytes_of(four)}}); }, throws({"UTF-8"}));
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path()));
}

}  // namespace
}  // namespace sol
