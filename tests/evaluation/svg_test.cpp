#include "evaluation/svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "xml_check.h"

namespace sol {
namespace {

using test::check_xml;
using test::count_of;
using testing::HasSubstr;
using testing::Not;

TEST(CheckXml, FindsFaults) {
  EXPECT_EQ(check_xml("<a x=\"1\"><b/>t &amp; u</a>"), "");
  EXPECT_NE(check_xml("<a><b></a></b>"), "");
  EXPECT_NE(check_xml("<a>"), "");
  EXPECT_NE(check_xml("<a x=1></a>"), "");
  EXPECT_NE(check_xml("<a>1 & 2</a>"), "");
  EXPECT_NE(check_xml("<a x=\"1\" x=\"2\"></a>"), "");
}

Plot example() {
  Plot plot{.title = "A <title> & \"more\"", .x = {.label = "x < 1"}, .y = {.label = "y > 1"}};
  PlotSeries line{.label = "line & dots", .colour = "#0072B2", .line = true, .dashed = true};
  line.points = {{0.1, 10, "a <note>"}, {0.5, 8, ""}, {0.9, 7.5, ""}};
  PlotSeries squares{.label = "squares", .colour = "red", .marker = Marker::square};
  squares.points = {{0.2, 9, "s"}};
  plot.series = {line, squares};
  plot.levels = {{7.0, "level"}};
  plot.identity = true;
  return plot;
}

TEST(Svg, IsWellFormedAndComplete) {
  for (const Marker marker :
       {Marker::circle, Marker::square, Marker::triangle, Marker::diamond, Marker::none}) {
    Plot plot = example();
    plot.series[0].marker = marker;
    const std::string svg = render_svg(plot);
    EXPECT_EQ(check_xml(svg), "");
    EXPECT_THAT(svg, HasSubstr("A &lt;title&gt; &amp; &quot;more&quot;"));
    EXPECT_THAT(svg, HasSubstr("x &lt; 1"));
    EXPECT_THAT(svg, HasSubstr("y &gt; 1"));
    EXPECT_THAT(svg, HasSubstr("line &amp; dots"));
    EXPECT_THAT(svg, HasSubstr("level"));
    EXPECT_THAT(svg, Not(HasSubstr("no data")));
  }
  EXPECT_THAT(render_svg(example()), HasSubstr("a &lt;note&gt;"));
}

TEST(Svg, AreasLieBelowSeriesAndAreInTheLegend) {
  Plot plot = example();
  PlotArea area{.label = "a <band>", .colour = "green", .opacity = 0.25, .note = "n & m"};
  area.outline = {{0.1, 10}, {0.9, 12}, {0.5, 14}};
  plot.areas = {area};
  const std::string svg = render_svg(plot);
  EXPECT_EQ(check_xml(svg), "");
  EXPECT_THAT(svg, HasSubstr("a &lt;band&gt;"));
  EXPECT_THAT(svg, HasSubstr("n &amp; m"));
  const size_t polygon = svg.find("fill=\"green\" fill-opacity=\"0.25\">");
  ASSERT_NE(polygon, std::string::npos);
  EXPECT_LT(polygon, svg.rfind("stroke=\"#0072B2\""));
  // The range covers it: 14 lies above everything else.
  EXPECT_THAT(svg, HasSubstr(">14</text>"));

  plot.areas[0].outline[1].y = std::nan("");
  EXPECT_EQ(render_svg(plot).find("fill=\"green\" fill-opacity=\"0.25\">"), std::string::npos);
}

TEST(Svg, NamedTicksReplaceNumbers) {
  Plot plot = example();
  plot.x.ticks = {{0.2, "first <one>"}, {0.8, "second"}};
  const std::string svg = render_svg(plot);
  EXPECT_EQ(check_xml(svg), "");
  EXPECT_THAT(svg, HasSubstr(">first &lt;one&gt;</text>"));
  EXPECT_THAT(svg, HasSubstr(">second</text>"));
  EXPECT_THAT(svg, Not(HasSubstr(">0.4</text>")));
}

TEST(Svg, LeavesOutWhatIsNotFinite) {
  Plot plot{.x = {.label = "x"}, .y = {.label = "y", .logarithmic = true}};
  PlotSeries series{.label = "", .colour = "blue"};
  series.points = {{1, 10, "good"},
                   {NAN, 10, "bad"},
                   {2, INFINITY, "bad"},
                   {3, -1, "bad"},  // no logarithm
                   {4, 100, "good"}};
  plot.series = {series};
  const std::string svg = render_svg(plot);
  EXPECT_EQ(check_xml(svg), "");
  EXPECT_EQ(count_of(svg, "<title>good</title>"), 2u);
  EXPECT_EQ(count_of(svg, "bad"), 0u);
  EXPECT_EQ(count_of(svg, "nan"), 0u);
  EXPECT_EQ(count_of(svg, "inf"), 0u);
}

TEST(Svg, SaysWhenThereIsNoData) {
  const std::string svg = render_svg(Plot{.x = {.label = "x"}, .y = {.label = "y"}});
  EXPECT_EQ(check_xml(svg), "");
  EXPECT_THAT(svg, HasSubstr("no data"));
}

TEST(Svg, EscapesEverything) {
  EXPECT_EQ(escape_xml("a<b>&\"'\x01\n"), "a&lt;b&gt;&amp;&quot;&#39;\xEF\xBF\xBD\n");
  EXPECT_EQ(escape_xml("κ = 1"), "κ = 1");
}

TEST(Ticks, AreRound) {
  EXPECT_THAT(linear_ticks(0, 1, 5),
              testing::Pointwise(testing::DoubleNear(1e-12), {0.0, 0.2, 0.4, 0.6, 0.8, 1.0}));
  EXPECT_THAT(linear_ticks(-0.3, 0.31, 3),
              testing::Pointwise(testing::DoubleNear(1e-12), {-0.2, 0.0, 0.2}));
  EXPECT_THAT(logarithmic_ticks(60, 600),
              testing::Pointwise(testing::DoubleNear(1e-9), {100.0, 200.0, 500.0}));
  EXPECT_GE(logarithmic_ticks(70, 74).size(), 3u);
}

RC_GTEST_PROP(Svg, SurvivesAnyPoints, ()) {
  Plot plot{.title = *rc::gen::arbitrary<std::string>(), .x = {.label = "x"}, .y = {.label = "y"}};
  plot.x.logarithmic = *rc::gen::arbitrary<bool>();
  plot.y.logarithmic = *rc::gen::arbitrary<bool>();
  PlotSeries series{.label = *rc::gen::arbitrary<std::string>(), .colour = "#123456", .line = true};
  for (const auto& [x, y] : *rc::gen::arbitrary<std::vector<std::pair<double, double>>>())
    series.points.push_back({x, y, *rc::gen::arbitrary<std::string>()});
  plot.series = {series};
  RC_ASSERT(check_xml(render_svg(plot)) == "");
}

RC_GTEST_PROP(Ticks, LieWithinTheRange, ()) {
  const double low = *rc::gen::inRange(-100000, 100000) / 1000.0;
  const double high = low + *rc::gen::inRange(1, 100000) / 997.0;
  const int count = *rc::gen::inRange(2, 12);
  const auto ticks = linear_ticks(low, high, count);
  RC_ASSERT(!ticks.empty());
  RC_ASSERT(ticks.size() <= 2 * static_cast<size_t>(count) + 1);
  for (const double tick : ticks) RC_ASSERT(tick >= low - 1e-6 && tick <= high + 1e-6);
}

TEST(Ticks, OfNumbersNearTheLargestEnd) {
  EXPECT_EQ(linear_ticks(0.0, 1e308, 5).front(), 0.0);
  EXPECT_LE(linear_ticks(-1.7e308, 1.7e308, 5).size(), 12u);
  EXPECT_LE(linear_ticks(1e17, 1e17 + 64, 8).size(), 12u);
}

}  // namespace
}  // namespace sol
