#include "base/json.h"

#include "base/file_io.h"
#include "support.h"
#include "throws.h"

namespace sol {
namespace {

using test::throws;

const Json object = Json::parse(R"({"b": true, "i": 5, "n": -3, "f": 2.5, "whole": 7.0, "s": "x",
    "big": 18446744073709551615, "null": null, "huge": 1e300, "list": [1]})");

TEST(Json, GetsEveryType) {
  EXPECT_EQ(json_get<bool>(object, "b", "d"), true);
  EXPECT_EQ(json_get<int>(object, "i", "d"), 5);
  EXPECT_EQ(json_get<int>(object, "whole", "d"), 7);
  EXPECT_EQ(json_get<int64_t>(object, "n", "d"), -3);
  EXPECT_EQ(json_get<uint64_t>(object, "big", "d"), UINT64_MAX);
  EXPECT_EQ(json_get<float>(object, "f", "d"), 2.5f);
  EXPECT_EQ(json_get<double>(object, "i", "d"), 5.0);
  EXPECT_EQ(json_get<std::string>(object, "s", "d"), "x");
  EXPECT_EQ(json_get_or<int>(object, "none", 9, "d"), 9);
  EXPECT_EQ(json_get_or<int>(object, "i", 9, "d"), 5);
}

TEST(Json, ErrorsNameDocumentFieldAndType) {
  EXPECT_THAT([] { json_get<int>(object, "none", "file.json"); },
              throws({"file.json", "\"none\"", "missing"}));
  EXPECT_THAT([] { json_get<int>(object, "s", "file.json"); },
              throws({"file.json", "\"s\"", "whole number", "\"x\""}));
  EXPECT_THAT([] { json_get<int>(object, "f", "d"); }, throws({"whole number", "2.5"}));
  EXPECT_THAT([] { json_get<int>(object, "b", "d"); }, throws({"whole number", "true"}));
  EXPECT_THAT([] { json_get<bool>(object, "i", "d"); }, throws({"true or false"}));
  EXPECT_THAT([] { json_get<double>(object, "s", "d"); }, throws({"a number"}));
  EXPECT_THAT([] { json_get<std::string>(object, "i", "d"); }, throws({"a string", "5"}));
  EXPECT_THAT([] { json_get<std::string>(object, "list", "d"); }, throws({"an array"}));
  EXPECT_THAT([] { json_get_or<int>(object, "null", 1, "d"); }, throws({"\"null\"", "null"}));
  EXPECT_THAT([] { json_get<int>(Json(3), "x", "d"); }, throws({"expected an object"}));
}

TEST(Json, NumbersMustFit) {
  EXPECT_THAT([] { json_get<int>(object, "big", "d"); },
              throws({"\"big\" must be a whole number of at most 2147483647, not 1844"}));
  EXPECT_THAT([] { json_get<int64_t>(object, "big", "d"); },
              throws({"\"big\" must be a whole number of at most 9223372036854775807, not 1844"}));
  EXPECT_THAT(
      [] {
        json_get<int>(Json{{"low", -2147483649}}, "low", "d");
      },
      throws({"a whole number of at least -2147483648"}));
  EXPECT_THAT([] { json_get<uint64_t>(object, "huge", "d"); },
              throws({"a whole number of at most 18446744073709551615"}));
  EXPECT_THAT([] { json_get<int64_t>(object, "huge", "d"); }, throws({"\"huge\""}));
  EXPECT_THAT([] { json_get<uint64_t>(object, "n", "d"); }, throws({"not negative", "-3"}));
  EXPECT_THAT([] { json_get<float>(object, "huge", "d"); },
              throws({"\"huge\" must be a number that single precision holds"}));
  EXPECT_EQ(json_get<double>(object, "huge", "d"), 1e300);
}

TEST(Json, MalformedTextIsNamedWithItsPlace) {
  EXPECT_THAT([] { parse_json("{\"a\": \n]", "line 3 of x"); },
              throws({"line 3 of x", "not valid JSON", "line 2"}));
  EXPECT_THAT([] { parse_json("", "empty"); }, throws({"empty"}));
  EXPECT_THAT([] { parse_json("[1e999]", "d"); }, throws({"d"}));
  EXPECT_THAT([] { parse_json("\"\xff\"", "d"); }, throws({"d"}));
  EXPECT_THAT([] { parse_json(std::string(1000000, '['), "deep"); }, throws({"deep"}));
}

// The library takes one for the end of the text.
TEST(Json, AZeroByteIsAnErrorWithItsPlace) {
  using namespace std::string_literals;
  EXPECT_THAT([] { parse_json("{\"a\": 1}\0 more"s, "line 3 of x"); },
              throws({"line 3 of x: not valid JSON", "a zero byte at column 9"}));
  EXPECT_THAT([] { parse_json("{\"a\": 1}\n\n \0"s, "x.json"); },
              throws({"x.json", "a zero byte at line 3, column 2"}));
  for (const std::string& text : {"\0{}"s, "{\"a\0\": 1}"s, "{\"a\": \"\0\"}"s, "[1,\0]"s, "\0"s})
    EXPECT_THAT([&] { parse_json(text, "d"); }, throws({"d: not valid JSON", "zero byte"}));
  EXPECT_EQ(parse_json(R"("a\u0000b")", "d").get<std::string>(), "a\0b"s);
}

TEST(Json, OneKeyTwiceIsAnError) {
  EXPECT_THAT([] { parse_json(R"({"a": [{"b": 1, "b": 2}]})", "x.json"); },
              throws({"x.json", "\"b\"", "twice"}));
  EXPECT_EQ(parse_json(R"({"a": {"b": 1}, "b": {"b": 2}, "c": [{"b": 3}, {"b": 4}]})", "d").size(),
            3u);
}

TEST(Json, DeepNestingIsAnError) {
  const auto nested = [](size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  EXPECT_NO_THROW(parse_json(nested(200), "a"));
  EXPECT_THAT([&] { parse_json(nested(300), "a.json"); }, throws({"a.json", "nested"}));
  std::string objects;
  for (int i = 0; i < 300; ++i) objects += "{\"a\":";
  EXPECT_THAT([&] { parse_json(objects, "a.json"); }, throws({"nested"}));
}

TEST(Json, ErrorsAreForPeople) {
  const auto message = [](const char* text) {
    try {
      parse_json(text, "line 7 of x");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message("{\"a\": }").find("line 7 of x: not valid JSON: column 7: "), 0u)
      << message("{\"a\": }");
  EXPECT_EQ(message("[1e999]").find("json.exception"), std::string::npos);
}

TEST(Json, ErrorsAreUtf8) {
  EXPECT_THAT([] { parse_json("\"a\xff\"", "d"); }, throws({"d: not valid JSON", "\"a\ufffd"}));
}

// RFC 8259 allows them.
TEST(Json, NumbersBeyondADoubleAreErrorsOnlyForWhoReadsNumbers) {
  const std::string large = R"({"n": [-1e400, 1.5E+99999], "s": "1e400 \"12345\\"})";
  EXPECT_THAT([&] { parse_json(large, "x.json"); },
              throws({"x.json: a number is too large", "-1e400"}));
  const Json json = parse_json(large, "x.json", JsonNumbers::ignored);
  EXPECT_EQ(json_get<std::string>(json, "s", "x.json"), "1e400 \"12345\\");
  const std::string digits(400, '7');
  EXPECT_EQ(parse_json(R"({"n": )" + digits + "}", "d", JsonNumbers::ignored).size(), 1u);
  for (const char* malformed : {"[1e400, 0123]", "[1e400, 1e]", "[1e400, 1.]", "[1e400"})
    EXPECT_THAT([&] { parse_json(malformed, "d", JsonNumbers::ignored); },
                throws({"d: not valid JSON"}))
        << malformed;
}

TEST(Json, ATextThatIsNotUtf8IsWritten) {
  EXPECT_EQ(to_text(Json{{"name", "a\xff"}}), "{\"name\":\"a\ufffd\"}");
}

TEST(Error, ShowsControlCharacters) {
  EXPECT_STREQ(Error(std::string("a\0b\x1b[2J\nκ", 10)).what(), "a\\x00b\\x1b[2J\nκ");
}

TEST(Json, ReadsFiles) {
  const test::TemporaryDirectory dir;
  write_file_atomically(dir.path() / "x.json", "{\"a\": 1}");
  EXPECT_EQ(json_get<int>(read_json(dir.path() / "x.json"), "a", "x"), 1);
  EXPECT_THAT([&] { read_json(dir.path() / "y.json"); }, throws({"y.json"}));
}

}  // namespace
}  // namespace sol
