#include "reproduction/figures.h"

#include <cmath>

#include "support.h"

namespace sol {
namespace {

TEST(FigureTable, ShowsTheSameInThreeForms) {
  FigureTable table("t", "A <caption>", {{"name", "Name"}, {"x", "x & y"}, {"n", "n"}});
  EXPECT_EQ(table.html(), "");
  table.add({"a, \"b\"", number(-1.0 / 3, 2), count(7)});
  table.add({"c", number(std::nan("")), share_of(0.25)});
  EXPECT_EQ(table.csv(), "name,x,n\n\"a, \"\"b\"\"\",-0.3333333333333333,7\nc,,0.25\n");
  EXPECT_EQ(table.jsonl(),
            "{\"table\":\"t\",\"name\":\"a, \\\"b\\\"\",\"x\":-0.3333333333333333,\"n\":7}\n"
            "{\"table\":\"t\",\"name\":\"c\",\"x\":null,\"n\":0.25}\n");
  const std::string html = table.html();
  for (const char* part :
       {"A &lt;caption&gt;", "x &amp; y", "a, &quot;b&quot;", "\u22120.33", "n/a", "25.0 %"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace sol
