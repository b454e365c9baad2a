#include "base/yaml.h"

#include "support.h"
#include "throws.h"

namespace sol {
namespace {

using test::throws;

YamlMap parse(const std::string& text) {
  return YamlMap::parse(text, "c.yaml");
}

TEST(Yaml, GetsEveryType) {
  YamlMap map = parse(
      "b: true\ni: -5\nl: 9000000000\nd: 1e-4\ns: word\nq: \"12\"\nds: [1, 2.5]\nss: [s60, "
      "s100]\n");
  EXPECT_EQ(map.get<bool>("b"), true);
  EXPECT_EQ(map.get<int>("i"), -5);
  EXPECT_EQ(map.get<int64_t>("l"), 9000000000);
  EXPECT_EQ(map.get<double>("d"), 1e-4);
  EXPECT_EQ(map.get<std::string>("s"), "word");
  EXPECT_EQ(map.get<std::string>("q"), "12");
  EXPECT_EQ(map.get<std::vector<double>>("ds"), (std::vector<double>{1, 2.5}));
  EXPECT_EQ(map.get<std::vector<std::string>>("ss"), (std::vector<std::string>{"s60", "s100"}));
  EXPECT_EQ(map.get_or<int>("none", 3), 3);
  EXPECT_TRUE(map.has("i"));
  EXPECT_FALSE(map.has("none"));
  map.reject_unknown();
}

TEST(Yaml, ErrorsNameFileLineAndKey) {
  YamlMap map = parse("a: 1\nb: x\nc: [1, x]\nsub:\n  deep: 1.5\nnothing:\n");
  EXPECT_THAT([&] { map.get<int>("b"); },
              throws({"c.yaml", "line 2", "b must be", "whole number"}));
  EXPECT_THAT([&] { map.get<std::vector<double>>("c"); }, throws({"line 3", "list of numbers"}));
  EXPECT_THAT([&] { map.get<int>("none"); }, throws({"c.yaml", "none is missing"}));
  EXPECT_THAT([&] { map.get<std::string>("nothing"); }, throws({"line 6", "nothing must be"}));
  EXPECT_THAT([&] { map.map("a"); }, throws({"line 1", "a must be a mapping"}));
  EXPECT_THAT([&] { map.map("none"); }, throws({"none is missing"}));
  YamlMap sub = map.map("sub");
  EXPECT_THAT([&] { sub.get<int>("deep"); }, throws({"line 5", "sub.deep", "1.5"}));
}

TEST(Yaml, KeysOfTheUsersOwnAndValuesAsText) {
  YamlMap map = parse("own:\n  b.c: [s60, 'q5']\n  a: 0.5\n  m: {x: 1}\n");
  YamlMap own = map.map("own");
  EXPECT_EQ(own.keys(), (std::vector<std::string>{"b.c", "a", "m"}));
  own.reject_unknown();
  // What is written is what a later override reads.
  YamlMap other = parse("s: 1\n");
  other.override_value("list", own.yaml_text("b.c"));
  other.override_value("s", own.yaml_text("a"));
  EXPECT_EQ(other.get<std::vector<std::string>>("list"), (std::vector<std::string>{"s60", "q5"}));
  EXPECT_EQ(other.get<double>("s"), 0.5);
  EXPECT_EQ(own.yaml_text("m"), "{x: 1}");
  EXPECT_THAT([&] { own.yaml_text("none"); }, throws({"own.none is missing"}));
}

TEST(Yaml, NumbersMustFitAndBeFinite) {
  YamlMap map = parse(
      "big: 9000000000\ninf: .inf\nnan: nan\nquoted: '5'\nhex: 0x10\nlow: -9000000000\n"
      "huge: 1e999\nlong: 9999999999x\n");
  EXPECT_THAT([&] { map.get<int>("big"); },
              throws({"big must be a whole number of at most 2147483647, not \"9000000000\""}));
  EXPECT_THAT([&] { map.get<int>("low"); },
              throws({"low must be a whole number of at least -2147483648"}));
  EXPECT_THAT([&] { map.get<double>("huge"); },
              throws({"huge must be a number that double precision holds"}));
  EXPECT_THAT([&] { map.get<int>("long"); }, throws({"long must be a whole number, not"}));
  EXPECT_THAT([&] { map.get<double>("inf"); }, throws({"inf"}));
  EXPECT_THAT([&] { map.get<double>("nan"); }, throws({"nan"}));
  EXPECT_THAT([&] { map.get<int>("quoted"); }, throws({"quoted"}));
  EXPECT_THAT([&] { map.get<int>("hex"); }, throws({"hex"}));
}

TEST(Yaml, UnknownKeysAreRejected) {
  YamlMap map = parse("known: 1\ntypo: 2\n");
  map.get<int>("known");
  map.get_or<int>("other", 1);
  EXPECT_THAT([&] { map.reject_unknown(); },
              throws({"c.yaml", "line 2", "unknown key typo", "known, other"}));
}

TEST(Yaml, KeysThatWereLookedForAreKnown) {
  YamlMap map = parse("typo: 2\n");
  EXPECT_FALSE(map.has("optional"));
  EXPECT_THAT([&] { map.reject_unknown(); }, throws({"typo", "known here: optional"}));
}

TEST(Yaml, PlacesAreThoseInTheFile) {
  const YamlMap map = parse("a: 1\n\nsub:\n  x: 2\n  empty:\n");
  EXPECT_EQ(map.place("a"), "c.yaml, line 1");
  EXPECT_EQ(map.place("sub"), "c.yaml, line 3");
  EXPECT_EQ(map.place("sub.x"), "c.yaml, line 4");
  EXPECT_EQ(map.place("sub.empty"), "c.yaml, line 5");
  EXPECT_EQ(map.place("sub.none"), "c.yaml, line 3");
  EXPECT_EQ(map.place("none.x"), "c.yaml, line 1");
}

TEST(Yaml, OverridesKeepTheLinesOfEverythingElse) {
  YamlMap map = parse("a: 1\n\n\nsub:\n  x: 2\n  y: z\n");
  map.override_value("sub.x", "[3, 4]");
  map.override_value("new.w", "true");
  map.override_value("a", "{b: c}");
  YamlMap sub = map.map("sub"), made = map.map("new"), replaced = map.map("a");
  EXPECT_EQ(sub.get<std::vector<double>>("x"), (std::vector<double>{3, 4}));
  EXPECT_TRUE(made.get<bool>("w"));
  EXPECT_THAT([&] { sub.get<int>("x"); }, throws({"c.yaml, override sub.x: sub.x must be"}));
  EXPECT_THAT([&] { sub.get<int>("y"); }, throws({"c.yaml, line 6: sub.y must be"}));
  EXPECT_THAT([&] { made.get<int>("w"); }, throws({"override new.w"}));
  EXPECT_THAT([&] { made.get<int>("v"); }, throws({"override new", "new.v is missing"}));
  EXPECT_THAT([&] { replaced.get<int>("b"); }, throws({"override a:", "a.b must be"}));
  EXPECT_THAT([&] { map.override_value("sub.y.deep", "1"); }, throws({"y is not a section"}));
  EXPECT_THAT([&] { map.override_value("sub..y", "1"); }, throws({"section.key=value"}));
  EXPECT_THAT([&] { map.override_value("a", "[1"); }, throws({"not a YAML value"}));
}

TEST(Yaml, AnOverrideChangesNoOtherKeyThatSharesAnAlias) {
  YamlMap map = parse("a: &s {x: &v 1, y: 2}\nb: *s\nc: *v\nd: {deep: *s}\n");
  map.override_value("b.x", "7");
  map.override_value("d.deep.y", "8");
  YamlMap a = map.map("a"), b = map.map("b"), deep = map.map("d").map("deep");
  EXPECT_EQ(a.get<int>("x"), 1);
  EXPECT_EQ(a.get<int>("y"), 2);
  EXPECT_EQ(b.get<int>("x"), 7);
  EXPECT_EQ(b.get<int>("y"), 2);
  EXPECT_EQ(map.get<int>("c"), 1);
  EXPECT_EQ(deep.get<int>("x"), 1);
  EXPECT_EQ(deep.get<int>("y"), 8);
  EXPECT_EQ(map.keys(), (std::vector<std::string>{"a", "b", "c", "d"}));  // the file's order
  map.override_value("c", "9");
  EXPECT_EQ(a.get<int>("x"), 1);
  EXPECT_EQ(map.get<int>("c"), 9);
  EXPECT_THAT([&] { map.get<int>("none"); }, throws({"c.yaml: none is missing"}));
  EXPECT_THAT([&] { b.get<int>("none"); }, throws({"c.yaml: b.none is missing"}));
}

TEST(Yaml, NullIsAsGoodAsAbsentWhereAValueIsOptional) {
  YamlMap map = parse("a: null\nb: 2\nc:\n");
  EXPECT_EQ(map.get_optional<int>("a"), std::nullopt);
  EXPECT_EQ(map.get_optional<int>("b"), 2);
  EXPECT_EQ(map.get_optional<int>("c"), std::nullopt);
  EXPECT_EQ(map.get_optional<int>("d"), std::nullopt);
  map.override_value("b", "null");
  EXPECT_EQ(map.get_optional<int>("b"), std::nullopt);
  map.override_value("b", "x");
  EXPECT_THAT([&] { map.get_optional<int>("b"); }, throws({"b must be a whole number"}));
  map.reject_unknown();
}

TEST(Yaml, KeysThatLieTooDeepAreRefusedAtOnce) {
  std::string key = "s";
  for (int i = 0; i < 50000; ++i) key += ".s";
  YamlMap map = parse("a: 1\n");
  EXPECT_THAT([&] { map.override_value(key, "1"); }, throws({"no section lies that deep"}));
}

TEST(Yaml, OptionalMaps) {
  YamlMap map = parse("sub: {x: 1}\n");
  auto sub = map.optional_map("sub");
  ASSERT_TRUE(sub);
  EXPECT_EQ(sub->get<int>("x"), 1);
  EXPECT_FALSE(map.optional_map("none"));
  map.reject_unknown();
}

TEST(Yaml, DuplicatesAreRejected) {
  EXPECT_THAT([] { parse("a: 1\nb: 2\na: 3\n"); },
              throws({"c.yaml", "line 3", "a is given twice"}));
}

TEST(Yaml, MergingIsRefusedByName) {
  EXPECT_THAT([] { parse("a: &s {x: 1}\nb:\n  <<: *s\n").map("b"); },
              throws({"c.yaml, line 3", "merging mappings (<<) is not supported"}));
}

TEST(Yaml, OtherDocumentsAreRejected) {
  EXPECT_THAT([] { parse("a: [1\nb: 2"); }, throws({"c.yaml", "not valid YAML"}));
  EXPECT_THAT([] { parse("- 1\n- 2\n"); }, throws({"must be a YAML mapping"}));
  EXPECT_THAT([] { parse(""); }, throws({"must be a YAML mapping"}));
  EXPECT_THAT([] { parse("a: 1\n---\nb: 2\n"); }, throws({"more than one"}));
  EXPECT_THAT([] { parse("? [a, b]\n: 1\n"); }, throws({"plain word"}));
  EXPECT_THAT([] { YamlMap::read("/nonexistent/c.yaml"); }, throws({"/nonexistent/c.yaml"}));
}

}  // namespace
}  // namespace sol
