#include "reproduction/figures.h"

#include <cmath>

#include "support.h"

namespace sol {
namespace {

TEST(FigureTable, ShowsTheSameInAllForms) {
  FigureTable table("t", "A <caption>", {{"name", "Name"}, {"x", "x & y"}, {"n", "n"}});
  EXPECT_EQ(table.html(), "");
  EXPECT_EQ(table.markdown(), "");
  table.add({"a, \"b\"", number(-1.0 / 3, 2), count(7)});
  table.add({"c", number(std::nan("")), share_of(0.25)});
  EXPECT_EQ(table.csv(), "name,x,n\n\"a, \"\"b\"\"\",-0.3333333333333333,7\nc,,0.25\n");
  EXPECT_EQ(table.jsonl(),
            "{\"table\":\"t\",\"name\":\"a, \\\"b\\\"\",\"x\":-0.3333333333333333,\"n\":7}\n"
            "{\"table\":\"t\",\"name\":\"c\",\"x\":null,\"n\":0.25}\n");
  EXPECT_EQ(table.markdown(),
            "A <caption>:\n\n| Name | x & y | n |\n|---|---|---|\n| a, \"b\" | \u22120.33 | 7 |\n"
            "| c | n/a | 25.0 % |\n\n");
  const std::string html = table.html();
  for (const char* part :
       {"A &lt;caption&gt;", "x &amp; y", "a, &quot;b&quot;", "\u22120.33", "n/a", "25.0 %"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
}

TEST(FigureTable, KeepsMarkdownCellsApart) {
  FigureTable table("t", "A caption", {{"name", "a|b"}});
  table.add({"x|y\nz"});
  EXPECT_EQ(table.markdown(), "A caption:\n\n| a\\|b |\n|---|\n| x\\|y z |\n\n");
}

TEST(Section, ShowsATableOnThePageAndInMarkdown) {
  Section section;
  FigureTable table("t", "A caption", {{"name", "Name"}});
  section.show(table);
  EXPECT_TRUE(section.tables.empty());
  table.add({"x"});
  section.show(table);
  EXPECT_EQ(section.html, table.html());
  EXPECT_EQ(section.markdown, table.markdown());
  EXPECT_EQ(section.tables.size(), 1U);
}

TEST(Section, SaysThingsOnThePageAndInMarkdown) {
  Section section;
  section.note("a < b");
  section.verdict("So.");
  EXPECT_EQ(section.html, "<p class=\"note\">a &lt; b</p>\n<p class=\"verdict\">So.</p>\n");
  EXPECT_EQ(section.markdown, "a < b\n\n**So.**\n\n");
}

TEST(Section, DrawsOnThePageAndLinksToFilesInMarkdown) {
  Section section{"id", "Title", {}, {}};
  section.draw({});
  EXPECT_EQ(section.html + section.markdown, "");
  section.heading("a < b");
  section.draw({"<svg>1</svg>", "<svg>2</svg>"});
  section.heading("c", 4);
  section.draw({"<svg>3</svg>"});
  EXPECT_EQ(section.html,
            "<h3>a &lt; b</h3>\n<div class=\"row\">\n<svg>1</svg><svg>2</svg></div>\n"
            "<h4>c</h4>\n<div class=\"row\">\n<svg>3</svg></div>\n");
  EXPECT_EQ(section.markdown,
            "### a < b\n\n![Title, plot 1](plots/id-1.svg)\n![Title, plot 2](plots/id-2.svg)\n\n"
            "#### c\n\n![Title, plot 3](plots/id-3.svg)\n\n");
  EXPECT_EQ(section.plots.size(), 3U);
}

}  // namespace
}  // namespace sol
