// The Jinja subset of chat templates. Expected strings are worked out by hand from Jinja's rules
// with trim_blocks and lstrip_blocks on.
#include "model/chat_template.h"

#include <fstream>

#include "support.h"
#include "throws.h"

namespace sol::test {
namespace {

std::string rendered(std::string_view source, const Json& messages = Json::array(),
                     const ChatTemplateOptions& options = {}) {
  return ChatTemplate(source, "made", "<s>", "</s>").apply(messages, options);
}

std::string with(const Json& variables, std::string_view source) {
  ChatTemplateOptions options;
  options.variables = variables;
  return rendered(source, Json::array(), options);
}

const Json talk = {{{"role", "system"}, {"content", " Be brief. "}},
                   {{"role", "user"}, {"content", "Hi"}},
                   {{"role", "assistant"}, {"content", "Hello!"}},
                   {{"role", "user"}, {"content", "Bye"}}};

TEST(ChatTemplate, WhiteSpaceAroundTags) {
  EXPECT_EQ(rendered("a\n{% if true %}\nb\n{% endif %}\nc\n"), "a\nb\nc");
  EXPECT_EQ(rendered("  {% if true %}  \n b{% endif %}"), "  \n b");
  EXPECT_EQ(rendered("x {% if true %}y{% endif %} z"), "x y z");  // the line has more than spaces
  EXPECT_EQ(rendered("a \n {%- if true -%} \n b \n {%- endif %} c"), "ab c");
  EXPECT_EQ(rendered("a\n  {{ 'b' }}\nc"), "a\n  b\nc");  // expressions keep their space
  EXPECT_EQ(rendered("a\n  {{- 'b' -}}\n c"), "abc");
  EXPECT_EQ(rendered("a\n  {# no #}\nb"), "a\nb");
  EXPECT_EQ(rendered("a {#- no -#} b"), "ab");
  EXPECT_EQ(rendered("a\n  {%+ if true %}b{% endif +%}\nc"), "a\n  b\nc");
  EXPECT_EQ(rendered("{% if true %}\n  {% if true %}\nx{% endif %}{% endif %}"), "x");
  EXPECT_EQ(rendered("a\r\nb\r\n"), "a\nb");
  EXPECT_EQ(rendered("a\n\n"), "a\n");
  EXPECT_EQ(rendered("{ a }} %} #}"), "{ a }} %} #}");
}

TEST(ChatTemplate, Literals) {
  EXPECT_EQ(rendered(R"({{ 'a\n\t\'\"\\\x41\u00e9\q' }})"), "a\n\t'\"\\A\u00e9\\q");
  EXPECT_EQ(rendered("{{ 'a' \"b\" }}"), "ab");
  EXPECT_EQ(rendered("{{ 1 }} {{ -2 }} {{ 1.5 }} {{ true }} {{ False }} {{ none }}"),
            "1 -2 1.5 True False None");
  EXPECT_EQ(rendered("{{ [1, 'a', [none]] }} {{ {'k': \"it's\"} }} {{ (1, 2) }}"),
            "[1, 'a', [None]] {'k': \"it's\"} [1, 2]");
  EXPECT_EQ(rendered("{{ {'a': {'b': 1}}}}"), "{'a': {'b': 1}}");
}

TEST(ChatTemplate, OperatorsAndPrecedence) {
  EXPECT_EQ(rendered("{{ 1 + 2 * 3 - 4 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }}"),
            "3 3 -4 2 3.5");
  EXPECT_EQ(rendered("{{ 'a' ~ 2 * 3 ~ none }}{{ 'a' + 'b' ~ 1 }}"), "a6Noneab1");
  // ~ binds more tightly than +.
  EXPECT_THAT([] { rendered("{{ 'a' ~ 1 + 1 }}"); }, throws({"a string + a number"}));
  EXPECT_EQ(rendered("{{ [1] + [2] }}{{ 2 - -1 }}"), "[1, 2]3");
}

TEST(ChatTemplate, Comparisons) {
  EXPECT_EQ(rendered("{{ 1 == 1.0 }}{{ 'a' != 'b' }}{{ 2 < 3 }}{{ 'b' > 'a' }}{{ 3 <= 2 }}"),
            "TrueTrueTrueTrueFalse");
  EXPECT_EQ(
      rendered("{{ 'a' in 'cat' }}{{ 2 in [1, 2] }}{{ 'k' in {'k': 1} }}{{ 'x' not in 'cat' }}"),
      "TrueTrueTrueTrue");
  EXPECT_EQ(rendered("{{ not true or true and false }}{{ not 'a' in 'b' }}"), "FalseTrue");
  EXPECT_EQ(rendered("{{ '' or 'b' }}{{ 'a' and 'c' }}{{ missing or 'd' }}"), "bcd");
  EXPECT_EQ(rendered("{{ 'a' if 1 > 2 else 'b' }}{{ 'c' if false }}|"), "b|");
  EXPECT_EQ(rendered("{{ 1 if true else 2 if true else 3 }}"), "1");
  EXPECT_EQ(rendered("{{ missing == missing }}{{ missing == none }}"), "TrueFalse");
}

TEST(ChatTemplate, FieldsElementsAndSlices) {
  const Json values = {
      {"m", {{"a", {{"b", "x"}}}, {"items", 1}}}, {"l", {1, 2, 3, 4}}, {"s", "h\u00e9llo"}};
  EXPECT_EQ(with(values, "{{ m.a.b }}{{ m['a']['b'] }}{{ m.no }}{{ m['items'] }}"), "xx1");
  EXPECT_EQ(with(values, "{{ l[0] }}{{ l[-1] }}{{ l[9] }}{{ s[1] }}"), "14\u00e9");
  EXPECT_EQ(with(values, "{{ l[1:] }}{{ l[:-1] }}{{ l[::-1] }}{{ l[::2] }}{{ l[3:1:-1] }}"),
            "[2, 3, 4][1, 2, 3][4, 3, 2, 1][1, 3][4, 3]");
  EXPECT_EQ(with(values, "{{ l[10:] }}{{ l[-10:1] }}"), "[][1]");
  EXPECT_EQ(with(values, "{{ s[::-1] }}"), "oll\u00e9h");
  EXPECT_EQ(with(values, "{{ s[1:3] }}"), "\u00e9l");
  EXPECT_THAT([&] { with(values, "\n{{ no.field }}"); },
              throws({"made: line 2", "'no' is undefined"}));
  EXPECT_THAT([&] { with(values, "{{ m.items }}"); }, throws({"items", "method"}));
}

TEST(ChatTemplate, SetAndScopes) {
  EXPECT_EQ(rendered("{% set a = 1 %}{% if true %}{% set a = 2 %}{% endif %}{{ a }}"), "2");
  // What a loop sets is gone after each turn.
  EXPECT_EQ(
      rendered(
          "{% set a = 1 %}{% for i in [1, 2] %}{{ a }}{% set a = 5 %}{{ a }}{% endfor %}{{ a }}"),
      "15151");
  EXPECT_EQ(rendered("{% set ns = namespace(n=1) %}{% for i in [1, 2] %}{% set ns.n = ns.n + i %}"
                     "{% endfor %}{{ ns.n }}{{ ns.no }}"),
            "4");
  EXPECT_EQ(rendered("{% set a, b = [1, 2] %}{{ b }}{{ a }}"), "21");
  EXPECT_EQ(rendered("{% set a %}x{{ 1 }}{% endset %}{{ a|length }}"), "2");
  EXPECT_THAT([] { rendered("{% set a = {} %}{% set a.b = 1 %}"); }, throws({"namespace"}));
}

TEST(ChatTemplate, Loops) {
  EXPECT_EQ(
      rendered("{% for x in ['a', 'b'] %}{{ loop.index }}{{ loop.index0 }}{{ x }}"
               "{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }} {% endfor %}"),
      "10aTrueFalse22 21bFalseTrue21 ");
  EXPECT_EQ(
      rendered("{% for x in [1, 2, 3, 4] if x % 2 == 0 %}{{ loop.index }}{{ x }}{% endfor %}"),
      "1224");
  EXPECT_EQ(rendered("{% for x in [] %}a{% else %}b{% endfor %}"), "b");
  EXPECT_EQ(rendered("{% for x in missing %}a{% endfor %}"), "");
  EXPECT_EQ(rendered("{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}{{ v }}{% endfor %}"),
            "a1b2");
  EXPECT_EQ(rendered("{% for k in {'a': 1} %}{{ k }}{% endfor %}"), "a");
  EXPECT_EQ(rendered("{% for i in range(2) %}{% for j in range(1, 3) %}{{ i }}{{ j }} {% endfor %}"
                     "{{ loop.index }}{% endfor %}"),
            "01 02 111 12 2");
  EXPECT_EQ(
      rendered("{% for x in [1, 2, 3] %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% endfor %}"
               "{% for x in [1, 2] %}{{ x }}{% break %}{% endfor %}"),
      "131");
  EXPECT_THAT([] { rendered("{% for x in [1] %}{{ loop.cycle('a') }}{% endfor %}"); },
              throws({"cycle", "not supported"}));
  EXPECT_THAT([] { rendered("{% for x in 5 %}{% endfor %}"); }, throws({"loop over a number"}));
}

TEST(ChatTemplate, Conditions) {
  EXPECT_EQ(rendered("{% if false %}a{% elif 1 %}b{% else %}c{% endif %}"), "b");
  EXPECT_EQ(rendered("{% if false %}a{% elif 0 %}b{% elif '' %}d{% else %}c{% endif %}"), "c");
  EXPECT_EQ(rendered("{% generation %}x{% endgeneration %}"), "x");
}

TEST(ChatTemplate, Filters) {
  EXPECT_EQ(rendered("{{ ' a ' | trim }}{{ 'xax' | trim('x') }}"), "aa");
  EXPECT_EQ(rendered("{{ 'h\u00e9' | length }}{{ [1, 2] | count }}{{ missing | length }}"), "220");
  EXPECT_EQ(
      rendered("{{ 'aB' | upper }}{{ 'aB' | lower }}{{ 'aB' | capitalize }}{{ 'a b' | title }}"),
      "ABabAbA B");
  EXPECT_EQ(
      rendered("{{ 'ab' | list }}{{ [1, 2] | first }}{{ [1, 2] | last }}{{ [1, 2] | reverse }}"),
      "['a', 'b']12[2, 1]");
  EXPECT_EQ(rendered("{{ [1, 'b'] | join('-') }}{{ ['a'] | join }}"), "1-ba");
  EXPECT_EQ(rendered("{{ missing | default('d') }}{{ '' | default('e') }}{{ '' | d('f', true) }}"),
            "df");
  EXPECT_EQ(rendered("{{ '3' | int + 1 }}{{ 4 | string + '5' }}{{ 'x' | int(7) }}"), "4457");
  EXPECT_EQ(rendered("{{ 'aXa' | replace('a', 'b') }}{% for k, v in {'q': 2} | items %}{{ k }}{{ v "
                     "}}{% endfor %}"),
            "bXbq2");
  const Json people = {{"p", {{{"n", "a"}, {"k", 1}}, {{"n", "b"}}, {{"n", "c"}, {"k", nullptr}}}}};
  EXPECT_EQ(with(people, "{{ p | map(attribute='n') | join(',') }}"), "a,b,c");
  EXPECT_EQ(with(people, "{{ p | selectattr('n', 'equalto', 'b') | list | length }}"), "1");
  EXPECT_EQ(with(people, "{{ p | selectattr('k', 'defined') | map(attribute='n') | join }}"), "ac");
  EXPECT_EQ(with(people, "{{ p | rejectattr('k') | map(attribute='n') | join }}"), "bc");
  EXPECT_EQ(
      rendered("{{ ['a', 'b'] | reject('equalto', 'a') | join }}{{ [0, 1] | select | list }}"),
      "b[1]");
  // A filter binds more tightly than +.
  EXPECT_EQ(rendered("{{ 'a ' + ' b ' | trim }}"), "a b");
}

// The filter, which is not Python's method of that name.
TEST(ChatTemplate, TitlesByFilterAndByMethod) {
  const Json values = {{"s", "don't user_name a-B (cD) e\u00a0\u00e9F"}};
  EXPECT_EQ(with(values, "{{ s | title }}"), "Don't User_name A-B (Cd) E\u00a0\u00c9f");
  EXPECT_EQ(with(values, "{{ s.title() }}"), "Don'T User_Name A-B (Cd) E\u00a0\u00c9f");
}

TEST(ChatTemplate, TextReversedIsText) {
  EXPECT_EQ(rendered("{{ 'h\u00e9l' | reverse }}{{ '' | reverse }}|"), "l\u00e9h|");
}

TEST(ChatTemplate, IntegersAreReadAsPythonReadsThem) {
  EXPECT_EQ(rendered("{{ '4.2' | int }} {{ '+5' | int }} {{ ' -7.9\\n' | int }} {{ '1e3' | int }} "
                     "{{ '1_000' | int }} {{ '.5' | int }} {{ -2.5 | int }} {{ true | int }}"),
            "4 5 -7 1000 1000 0 -2 1");
  EXPECT_EQ(rendered("{{ '+-5' | int(9) }}{{ '_1' | int(9) }}{{ '1__0' | int(9) }}"
                     "{{ 'inf' | int(9) }}{{ 'nan' | int(9) }}{{ '' | int(9) }}{{ none | int(9) }}"
                     "{{ [] | int(9) }}{{ '4 2' | int }}"),
            "999999990");
  for (const char* large : {"'99999999999999999999'", "'1e300'", "(99999999999.0 * 99999999999.0)"})
    EXPECT_THAT([&] { rendered(std::string("{{ ") + large + " | int }}"); }, throws({"too large"}));
  EXPECT_THAT([] { rendered("{{ missing | int }}"); }, throws({"int", "undefined"}));
}

TEST(ChatTemplate, TextIsSplitAtAnyWhiteSpace) {
  const Json values = {{"s", "\u3000a\u00a0b\u2003 c\u00e0\u3000d "}};
  EXPECT_EQ(with(values, "{{ s.split() | join('|') }}"), "a|b|c\u00e0|d");
  EXPECT_EQ(with(values, "{{ s.split(none, 1) | join('|') }}"), "a|b\u2003 c\u00e0\u3000d ");
}

TEST(ChatTemplate, FieldsOfWhatHasNoneAreUndefined) {
  EXPECT_EQ(rendered("{{ none.x is defined }}{{ none['x'] is defined }}{{ none[0] is defined }}"
                     "{{ 5 [0] is defined }}{{ true['x'] is defined }}"),
            "FalseFalseFalseFalseFalse");
  const Json values = {{"m", {{"call", nullptr}}}};
  EXPECT_EQ(with(values, "{{ m.call.name or 'nobody' }}"), "nobody");
  EXPECT_THAT([&] { with(values, "{{ m.call.name.first }}"); }, throws({"undefined"}));
  EXPECT_THAT([] { rendered("{{ range['x'] }}"); }, throws({"function", "no elements"}));
}

TEST(ChatTemplate, JsonAsPythonWritesIt) {
  const Json value = {{"v", {{"b", {1, 2.5, nullptr}}, {"a", "\"\u00e9\n"}, {"e", Json::array()}}}};
  EXPECT_EQ(with(value, "{{ v | tojson }}"), R"({"b": [1, 2.5, null], "a": "\"é\n", "e": []})");
  EXPECT_EQ(with(value, "{{ v | tojson(indent=2) }}"),
            "{\n  \"b\": [\n    1,\n    2.5,\n    null\n  ],\n  \"a\": \"\\\"\u00e9\\n\",\n  "
            "\"e\": []\n}");
  EXPECT_THAT([] { rendered("{{ missing | tojson }}"); }, throws({"tojson", "undefined"}));
}

TEST(ChatTemplate, Tests) {
  EXPECT_EQ(
      rendered("{{ x is defined }}{{ x is undefined }}{{ x is not defined }}{{ none is none }}"),
      "FalseTrueTrueTrue");
  EXPECT_EQ(rendered("{{ 'a' is string }}{{ {} is mapping }}{{ [] is iterable }}{{ 1 is number }}"
                     "{{ true is true }}{{ 1 is integer }}{{ 'a' is sequence }}{{ 1 is boolean }}"),
            "TrueTrueTrueTrueTrueTrueTrueFalse");
  EXPECT_EQ(rendered("{{ 3 is odd }}{{ 3 is even }}{{ 'a' is equalto 'a' }}{{ 1 is in [1] }}"),
            "TrueFalseTrueTrue");
  EXPECT_EQ(rendered("{{ not x is defined }}{{ x is not none and true }}"), "TrueTrue");
}

TEST(ChatTemplate, Methods) {
  EXPECT_EQ(
      rendered("{{ 'a,b,c'.split(',')[-1] }}{{ ' a  b '.split() }}{{ 'a-b-c'.split('-', 1) }}"),
      "c['a', 'b']['a', 'b-c']");
  EXPECT_EQ(rendered("{{ '\nx\n'.strip('\n') }}|{{ '  x '.lstrip() }}|{{ ' x '.rstrip() }}|"),
            "x|x | x|");
  EXPECT_EQ(
      rendered(
          "{{ 'abc'.startswith('ab') }}{{ 'abc'.endswith('b') }}{{ 'a'.startswith(('b', 'a')) }}"),
      "TrueFalseTrue");
  EXPECT_EQ(rendered("{{ 'ab'.upper() }}{{ 'AB'.lower() }}{{ 'ab'.replace('a', '') }}{{ "
                     "','.join(['x', 'y']) }}"),
            "ABabbx,y");
  EXPECT_EQ(
      rendered("{{ {'a': 1}.get('a') }}{{ {}.get('b') }}{{ {}.get('c', 2) }}{{ {'d': 3}.keys() }}"),
      "1None2['d']");
}

TEST(ChatTemplate, VariablesOfAConversation) {
  EXPECT_EQ(
      rendered("{{ bos_token }}{{ eos_token }}{{ messages | length }}{{ add_generation_prompt }}"
               "{{ tools is none }}",
               talk),
      "<s></s>4TrueTrue");
  EXPECT_EQ(ChatTemplate("{{ bos_token is defined }}", "made").apply(Json::array()), "False");
  EXPECT_EQ(rendered("{{ strftime_now is defined }}"), "False");
  ChatTemplateOptions options;
  options.date = "2024-07-06";
  EXPECT_EQ(rendered("{{ strftime_now('%d %b %Y|%B|%j') }}", talk, options),
            "06 Jul 2024|July|188");
  EXPECT_THAT([&] { rendered("{{ strftime_now('%H') }}", Json(talk), options); }, throws({"%H"}));
  options.date = "2024-02-31";
  EXPECT_THAT([&] { rendered("{{ strftime_now('%d') }}", talk, options); }, throws({"no date"}));
}

// Excerpts of what the three families do, in our own words.
TEST(ChatTemplate, HeadersAndTurns) {
  const std::string_view source =
      "{{- bos_token }}\n"
      "{%- if not date_string is defined %}\n"
      "    {%- set date_string = '26 Jul 2024' %}\n"
      "{%- endif %}\n"
      "\n"
      "{#- The system message goes first. #}\n"
      "{%- if messages[0]['role'] == 'system' %}\n"
      "    {%- set system_message = messages[0]['content']|trim %}\n"
      "    {%- set messages = messages[1:] %}\n"
      "{%- else %}\n"
      "    {%- set system_message = '' %}\n"
      "{%- endif %}\n"
      "{{- '<|h|>system<|/h|>\\n\\n' }}\n"
      "{{- 'Today: ' + date_string + '\\n\\n' }}\n"
      "{{- system_message }}\n"
      "{%- for message in messages %}\n"
      "    {{- '<|h|>' + message['role'] + '<|/h|>\\n\\n'+ message['content'] | trim + '<|e|>' }}\n"
      "{%- endfor %}\n"
      "{%- if add_generation_prompt %}\n"
      "    {{- '<|h|>assistant<|/h|>\\n\\n' }}\n"
      "{%- endif %}\n";
  EXPECT_EQ(rendered(source, talk),
            "<s><|h|>system<|/h|>\n\nToday: 26 Jul 2024\n\nBe brief.<|h|>user<|/h|>\n\nHi<|e|>"
            "<|h|>assistant<|/h|>\n\nHello!<|e|><|h|>user<|/h|>\n\nBye<|e|>"
            "<|h|>assistant<|/h|>\n\n");
}

TEST(ChatTemplate, AlternatingRolesOrRefusal) {
  const std::string_view source =
      "{{ bos_token }}{% for message in messages %}"
      "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
      "{{ raise_exception('Roles must alternate!') }}{% endif %}"
      "{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}"
      "{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token}}{% endif %}"
      "{% endfor %}";
  const std::vector<ChatMessage> good{{"user", "a"}, {"assistant", "b"}, {"user", "c"}};
  EXPECT_EQ(ChatTemplate(source, "made", "<s>", "</s>").apply(good),
            "<s>[INST] a [/INST]b</s>[INST] c [/INST]");
  EXPECT_THAT([&] { rendered(source, talk); }, throws({"refuses", "Roles must alternate!"}));
}

TEST(ChatTemplate, LastUserTurnByReversedSlice) {
  const std::string_view source =
      "{%- set ns = namespace(found=false, last=messages|length - 1) %}\n"
      "{%- for message in messages[::-1] %}\n"
      "    {%- set index = (messages|length - 1) - loop.index0 %}\n"
      "    {%- if not ns.found and message.role == \"user\" and "
      "not(message.content.startswith('<t>') "
      "and message.content.endswith('</t>')) %}\n"
      "        {%- set ns.found = true %}\n"
      "        {%- set ns.last = index %}\n"
      "    {%- endif %}\n"
      "{%- endfor %}\n"
      "{{- ns.last }}";
  EXPECT_EQ(rendered(source, talk), "3");
  Json with_tool = talk;
  with_tool.push_back({{"role", "user"}, {"content", "<t>x</t>"}});
  EXPECT_EQ(rendered(source, with_tool), "3");
}

TEST(ChatTemplate, WhatIsOutsideTheSubsetIsNamedWithItsLine) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases{
      {"a\n{% macro f() %}{% endmacro %}", {"line 2", "{% macro %}", "not supported"}},
      {"{% include 'x' %}", {"include"}},
      {"{% raw %}x{% endraw %}", {"raw"}},
      {"\n\n{{ 1 | frobnicate }}", {"line 3", "filter frobnicate"}},
      {"{{ 1 is frobnicated }}", {"test frobnicated"}},
      {"{{ 'a'.frobnicate() }}", {"method frobnicate", "strings"}},
      {"{{ frobnicate() }}", {"'frobnicate' is not a function"}},
      {"{{ 'a' * 3 }}", {"a string * a number"}},
      {"{{ 'a' + 1 }}", {"a string + a number"}},
      {"{{ missing + 1 }}", {"undefined + a number"}},
      {"{{ 2 ** 3 }}", {"**"}},
      {"{{ 1 < 2 < 3 }}", {"chained"}},
      {"{{ 1 // 0 }}", {"division by zero"}},
      {"{{ 9223372036854775807 }}", {"digits"}},
      {"{{ f(*a) }}", {"*"}},
      {"{% for x in [1] recursive %}{% endfor %}", {"recursive"}},
      {"{% if true %}", {"not closed"}},
      {"{{ 'a", {"string is not closed"}},
      {"{{ 1", {"not closed by }}"}},
      {"{# a", {"comment"}},
      {"{% endif %}", {"endif"}},
      {"{{ }}", {"ends too early"}},
      {"{{ 1 2 }}", {"expected }}", "'2'"}},
      {"{{ ) }}", {"unexpected ')'"}},
      {"{{ $ }}", {"unexpected character '$'"}},
      {"{% break %}", {"outside a loop"}},
      {"{% set a %}", {"not closed"}},
      {"{{ namespace(1) }}", {"named arguments"}},
      {"{{ namespace() }}", {"a namespace has no text"}},
      {"{{ [namespace()] }}", {"cannot be an element"}},
      {"{{ range(1000000) }}", {"range is longer"}},
      {"{{ '\\u12' }}", {"hexadecimal"}},
      {"{{ " + std::string(300, '(') + " }}", {"too deeply"}},
      {"{{ 1" + std::string(4000, '+') + " }}", {"unexpected"}}};
  for (const auto& [source, message] : cases)
    EXPECT_THAT([&] { rendered(source, talk); }, throws(message)) << source.substr(0, 80);
  std::string sum = "{{ 1";
  for (int i = 0; i < 3000; ++i) sum += "+1";
  EXPECT_THAT([&] { rendered(sum + " }}"); }, throws({"too many operators"}));
  EXPECT_THAT(
      [] {
        rendered("{{ 1 }}", Json{{{"content", "no role"}}});
      },
      throws({"message 0", "role"}));
}

TEST(ChatTemplate, WhatDoesNotEndIsStopped) {
  EXPECT_THAT(
      [] {
        rendered(
            "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}"
            "{% endfor %}{% endfor %}{% endfor %}");
      },
      throws({"too many steps"}));
  EXPECT_THAT(
      [] {
        rendered(
            "{% set ns = namespace(s='0123456789') %}{% for a in range(60) %}{% set ns.s = ns.s ~ "
            "ns.s %}"
            "{% endfor %}");
      },
      throws({"too long"}));
}

struct ChatTemplateFiles : testing::Test {
  void write(const char* name, const std::string& content) const {
    std::ofstream(dir.path() / name) << content;
  }
  TemporaryDirectory dir;
};

TEST_F(ChatTemplateFiles, AStringAListOrAFileOfItsOwn) {
  EXPECT_FALSE(ChatTemplate::find(dir.path()).has_value());
  EXPECT_THAT([&] { ChatTemplate::load(dir.path()); }, throws({"no chat template"}));
  write("tokenizer_config.json",
        R"({"bos_token": {"content": "<b>"}, "eos_token": "<e>",
            "chat_template": "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}"})");
  const std::vector<ChatMessage> one{{"user", "x"}};
  EXPECT_EQ(ChatTemplate::load(dir.path()).apply(one), "<b>x<e>");
  write("tokenizer_config.json",
        R"({"chat_template": [{"name": "tool_use", "template": "t"},
                              {"name": "default", "template": "d"}]})");
  EXPECT_EQ(ChatTemplate::load(dir.path()).apply(one), "d");
  write("chat_template.jinja", "own");
  EXPECT_EQ(ChatTemplate::load(dir.path()).apply(one), "own");
  EXPECT_EQ(ChatTemplate::load(dir.path()).fingerprint().size(), 32u);
  write("chat_template.jinja", "a\n{% macro %}");
  EXPECT_THAT([&] { ChatTemplate::load(dir.path()); },
              throws({"chat_template.jinja: line 2", "macro"}));
}

TEST_F(ChatTemplateFiles, MalformedOnes) {
  write("tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "t"}]})");
  EXPECT_THAT([&] { ChatTemplate::find(dir.path()); }, throws({"default", "rag"}));
  write("tokenizer_config.json", R"({"chat_template": 5})");
  EXPECT_THAT([&] { ChatTemplate::find(dir.path()); }, throws({"tokenizer_config.json", "string"}));
  write("tokenizer_config.json", R"({"bos_token": {"id": 1}, "chat_template": "x"})");
  EXPECT_THAT([&] { ChatTemplate::find(dir.path()); }, throws({"bos_token", "content"}));
}

TEST(ChatTemplate, WhatIsNoTextIsNoTemplate) {
  for (const std::string& source : {std::string("\xff{{ messages }}"), std::string("a\0b", 3)})
    EXPECT_THAT([&] { ChatTemplate(source, "chat.jinja"); },
                test::throws({"chat.jinja", "is no text"}));
}

}  // namespace
}  // namespace sol::test
