// Small plots as SVG text, for reports that must stand alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sol {

// Text for XML and HTML, in elements and in attributes. Control characters that XML forbids become
// U+FFFD.
std::string escape_xml(std::string_view text);

enum class Marker { none, circle, square, triangle, diamond };

struct PlotPoint {
  double x = 0, y = 0;
  std::string note = {};   // shown when pointed at; may be empty
  std::string label = {};  // stands beside its mark; may be empty
};

struct PlotSeries {
  std::string label;   // in the legend; empty: not there
  std::string colour;  // CSS
  Marker marker = Marker::circle;
  double size = 3;     // half a marker's width, pixels
  double opacity = 1;  // of the markers
  bool line = false;   // joins the points in their order
  bool dashed = false;
  std::vector<PlotPoint> points = {};  // those that are not finite are left out
};

// A filled polygon in the data's coordinates: a distribution's outline, a band around a line.
struct PlotArea {
  std::string label;   // in the legend; empty: not there
  std::string colour;  // CSS
  double opacity = 0.3;
  std::string note = {};                // shown when pointed at; may be empty
  std::vector<PlotPoint> outline = {};  // one that holds a point that is not finite is left out
};

// A place on an axis that has a name instead of a number.
struct PlotTick {
  double at = 0;
  std::string label;
};

struct PlotAxis {
  std::string label;  // with its unit
  bool logarithmic = false;
  std::optional<double> low = {}, high = {};  // else from the data
  std::vector<PlotTick> ticks = {};           // instead of numbers, where given
};

// A horizontal line across the plot, labelled in the legend.
struct PlotLevel {
  double y = 0;
  std::string label;
};

struct Plot {
  std::string title = {};
  PlotAxis x, y;
  std::vector<PlotSeries> series = {};  // the first lies on top and leads the legend
  std::vector<PlotArea> areas = {};     // below all series
  std::vector<PlotLevel> levels = {};
  bool identity = false;  // draws y = x
  int width = 760, height = 460;
};

// A complete <svg> element. A plot without any finite point shows its axes and says that there is
// no data.
std::string render_svg(const Plot& plot);

// Ticks at 1, 2 or 5 times a power of ten, about `count` of them within [low, high].
std::vector<double> linear_ticks(double low, double high, int count);
// At 1, 2 and 5 times powers of ten, or only the powers when those alone suffice; falls back to
// linear ones for a range that would hold fewer than two.
std::vector<double> logarithmic_ticks(double low, double high);

}  // namespace sol
