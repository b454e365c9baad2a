#include "evaluation/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace sol {

std::string escape_xml(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t')
          out += "\xEF\xBF\xBD";
        else
          out += c;
    }
  }
  return out;
}

std::vector<double> linear_ticks(double low, double high, int count) {
  if (!(high > low) || count < 1) return {low};
  const double rough = (high - low) / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  // The round step nearest to the wanted one, by ratio.
  const double ratio = rough / power;
  const double step = power * (ratio >= 7.07 ? 10 : ratio >= 3.16 ? 5 : ratio >= 1.41 ? 2 : 1);
  std::vector<double> ticks;
  // Of numbers so large or so near to each other that steps do not count.
  if (!std::isfinite(step) || std::max(std::abs(low), std::abs(high)) / step > 1e12)
    return {low, high};
  const double first = std::ceil(low / step - 1e-9);
  for (double i = first; i * step <= high + 1e-9 * step; ++i)
    ticks.push_back(i == 0 ? 0.0 : i * step);
  return ticks;
}

std::vector<double> logarithmic_ticks(double low, double high) {
  if (!(low > 0) || !(high > low)) return {low};
  std::vector<double> powers, all;
  for (int e = static_cast<int>(std::floor(std::log10(low))); std::pow(10.0, e) <= high; ++e)
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10.0, e);
      if (value < low * (1 - 1e-9) || value > high * (1 + 1e-9)) continue;
      all.push_back(value);
      if (factor == 1.0) powers.push_back(value);
    }
  if (powers.size() >= 5) return powers;
  if (all.size() >= 3) return all;
  return linear_ticks(low, high, 5);
}

namespace {

struct Scale {
  double low, high;  // data
  double from, to;   // pixels
  bool logarithmic;

  double operator()(double value) const {
    const double share =
        logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
    return from + share * (to - from);
  }
};

bool usable(double value, bool logarithmic) {
  return std::isfinite(value) && (!logarithmic || value > 0);
}

bool usable(const PlotPoint& point, const Plot& plot) {
  return usable(point.x, plot.x.logarithmic) && usable(point.y, plot.y.logarithmic);
}

bool usable(const PlotArea& area, const Plot& plot) {
  return area.outline.size() > 2 &&
         std::ranges::all_of(area.outline, [&](const PlotPoint& p) { return usable(p, plot); });
}

// The data's range with a little room, or what the axis says.
Scale make_scale(const PlotAxis& axis, double low, double high, double from, double to) {
  if (!(low <= high)) {  // no data at all
    low = axis.logarithmic ? 1 : 0;
    high = axis.logarithmic ? 10 : 1;
  }
  if (low == high) {
    const double room = low == 0 ? 1 : std::abs(low) * 0.05;
    low -= room;
    high += room;
  } else if (axis.logarithmic) {
    const double room = std::pow(high / low, 0.05);
    low /= room;
    high *= room;
  } else {
    const double room = (high - low) * 0.05;
    low -= room;
    high += room;
  }
  if (axis.low) low = *axis.low;
  if (axis.high) high = *axis.high;
  if (!(high > low)) high = low + 1;
  return {low, high, from, to, axis.logarithmic};
}

std::string marker_shape(Marker marker, double x, double y, double r) {
  switch (marker) {
    case Marker::none:
      return {};
    case Marker::circle:
      return fmt::format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{:.2f}\"", x, y, r);
    case Marker::square:
      return fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"",
                         x - r, y - r, 2 * r, 2 * r);
    case Marker::triangle:
      return fmt::format("<path d=\"M{:.2f} {:.2f}L{:.2f} {:.2f}L{:.2f} {:.2f}Z\"", x, y - 1.2 * r,
                         x - 1.1 * r, y + 0.8 * r, x + 1.1 * r, y + 0.8 * r);
    case Marker::diamond:
      return fmt::format("<path d=\"M{:.2f} {:.2f}L{:.2f} {:.2f}L{:.2f} {:.2f}L{:.2f} {:.2f}Z\"", x,
                         y - 1.3 * r, x + 1.3 * r, y, x, y + 1.3 * r, x - 1.3 * r, y);
  }
  return {};
}

std::string draw_series(const PlotSeries& series, const Plot& plot, const Scale& x,
                        const Scale& y) {
  const std::string colour = escape_xml(series.colour);
  std::string out;
  if (series.line) {
    std::string path;
    for (const PlotPoint& point : series.points)
      if (usable(point, plot))
        path += fmt::format("{}{:.2f} {:.2f}", path.empty() ? 'M' : 'L', x(point.x), y(point.y));
    if (!path.empty())
      out += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"{}/>\n",
                         path, colour, series.dashed ? " stroke-dasharray=\"6 4\"" : "");
  }
  if (series.marker == Marker::none) return out;
  out += fmt::format("<g fill=\"{}\" fill-opacity=\"{}\">\n", colour, series.opacity);
  for (const PlotPoint& point : series.points) {
    if (!usable(point, plot)) continue;
    out += marker_shape(series.marker, x(point.x), y(point.y), series.size);
    if (point.note.empty())
      out += "/>\n";
    else
      out += fmt::format("><title>{}</title></{}>\n", escape_xml(point.note),
                         series.marker == Marker::circle   ? "circle"
                         : series.marker == Marker::square ? "rect"
                                                           : "path");
  }
  return out + "</g>\n";
}

std::string draw_area(const PlotArea& area, const Plot& plot, const Scale& x, const Scale& y) {
  if (!usable(area, plot)) return {};
  std::string path;
  for (const PlotPoint& point : area.outline)
    path += fmt::format("{}{:.2f} {:.2f}", path.empty() ? 'M' : 'L', x(point.x), y(point.y));
  path = fmt::format("<path d=\"{}Z\" fill=\"{}\" fill-opacity=\"{:.3g}\"", path,
                     escape_xml(area.colour), area.opacity);
  if (area.note.empty()) return path + "/>\n";
  return path + fmt::format("><title>{}</title></path>\n", escape_xml(area.note));
}

constexpr const char* grid_colour = "#e3e6ea";
constexpr const char* axis_colour = "#5b6570";
constexpr const char* level_colour = "#5b6570";

std::vector<PlotTick> axis_ticks(const PlotAxis& axis, const Scale& scale, int count) {
  if (!axis.ticks.empty()) return axis.ticks;
  std::vector<PlotTick> ticks;
  for (const double at : scale.logarithmic ? logarithmic_ticks(scale.low, scale.high)
                                           : linear_ticks(scale.low, scale.high, count))
    ticks.push_back({at, fmt::format("{:.6g}", at)});
  return ticks;
}

std::string draw_axes(const Plot& plot, const Scale& x, const Scale& y) {
  std::string out;
  const int x_count = std::max(2, static_cast<int>((x.to - x.from) / 60));
  const int y_count = std::max(2, static_cast<int>((y.from - y.to) / 50));
  for (const auto& [tick, label] : axis_ticks(plot.x, x, x_count)) {
    const double at = x(tick);
    out += fmt::format(
        "<path d=\"M{0:.2f} {1:.2f}V{2:.2f}\" stroke=\"{3}\"/>"
        "<text x=\"{0:.2f}\" y=\"{4:.2f}\" text-anchor=\"middle\">{5}</text>\n",
        at, y.from, y.to, grid_colour, y.from + 17, escape_xml(label));
  }
  for (const auto& [tick, label] : axis_ticks(plot.y, y, y_count)) {
    const double at = y(tick);
    out += fmt::format(
        "<path d=\"M{0:.2f} {1:.2f}H{2:.2f}\" stroke=\"{3}\"/>"
        "<text x=\"{4:.2f}\" y=\"{5:.2f}\" text-anchor=\"end\">{6}</text>\n",
        x.from, at, x.to, grid_colour, x.from - 7, at + 4, escape_xml(label));
  }
  out +=
      fmt::format("<path d=\"M{0:.2f} {1:.2f}V{2:.2f}H{3:.2f}\" fill=\"none\" stroke=\"{4}\"/>\n",
                  x.from, y.to, y.from, x.to, axis_colour);
  out += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"middle\">{}</text>\n",
                     (x.from + x.to) / 2, y.from + 38, escape_xml(plot.x.label));
  const double middle = (y.from + y.to) / 2;
  out += fmt::format(
      "<text x=\"16\" y=\"{0:.2f}\" text-anchor=\"middle\" transform=\"rotate(-90 16 "
      "{0:.2f})\">{1}</text>\n",
      middle, escape_xml(plot.y.label));
  return out;
}

// Characters, not bytes: labels hold Greek letters.
double text_width(std::string_view text) {
  const auto characters = std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u;
  });
  return 6.6 * static_cast<double>(characters);
}

// Pixels.
struct Box {
  double left, top, right, bottom;

  bool meets(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

// The points that have a label and lie where they can be drawn.
template <typename Use>
void for_labelled(const Plot& plot, const Use& use) {
  for (const PlotSeries& series : plot.series)
    for (const PlotPoint& point : series.points)
      if (!point.label.empty() && usable(point, plot)) use(series, point);
}

// Each label on the first side of its mark where it covers neither a mark that has one nor another
// label; to the right where no side is free.
std::string draw_labels(const Plot& plot, const Scale& x, const Scale& y) {
  constexpr double font = 11, half = font / 2;
  std::vector<Box> taken;
  for_labelled(plot, [&](const PlotSeries& series, const PlotPoint& point) {
    const double at_x = x(point.x), at_y = y(point.y), r = series.size;
    taken.push_back({at_x - r, at_y - r, at_x + r, at_y + r});
  });
  const auto has_room = [&](const Box& box) {
    return box.left >= x.from && box.right <= x.to && box.top >= y.to && box.bottom <= y.from &&
           std::ranges::none_of(taken, [&](const Box& other) { return box.meets(other); });
  };
  std::string out;
  for_labelled(plot, [&](const PlotSeries& series, const PlotPoint& point) {
    const double at_x = x(point.x), at_y = y(point.y), away = series.size + 4;
    const double width = text_width(point.label) * font / 12;
    const auto beside = [&](double left, double middle) {
      return Box{left, middle - half, left + width, middle + half};
    };
    const std::array<Box, 4> sides{beside(at_x + away, at_y), beside(at_x - away - width, at_y),
                                   beside(at_x - width / 2, at_y - away - half),
                                   beside(at_x - width / 2, at_y + away + half)};
    const auto found = std::ranges::find_if(sides, has_room);
    const Box& box = found == sides.end() ? sides.front() : *found;
    taken.push_back(box);
    out += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" font-size=\"{}\" fill=\"{}\">{}</text>\n",
                       box.left, box.bottom - 1.5, font, escape_xml(series.colour),
                       escape_xml(point.label));
  });
  return out;
}

// Legend entries left to right, wrapped; returns its height.
double draw_legend(const Plot& plot, double left, double top, double right, std::string& out) {
  double x = left, y = top;
  bool any = false;
  const auto place = [&](const std::string& label) {
    const double width = 30 + text_width(label) + 16;
    if (any && x + width > right) {
      x = left;
      y += 18;
    }
    any = true;
    out += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\">{}</text>\n", x + 30, y + 4,
                       escape_xml(label));
    const double at = x;
    x += width;
    return at;
  };
  for (const PlotSeries& series : plot.series) {
    if (series.label.empty()) continue;
    const double at = place(series.label);
    const std::string colour = escape_xml(series.colour);
    if (series.line)
      out += fmt::format("<path d=\"M{:.2f} {:.2f}h24\" stroke=\"{}\" stroke-width=\"1.8\"{}/>\n",
                         at, y, colour, series.dashed ? " stroke-dasharray=\"6 4\"" : "");
    if (series.marker != Marker::none)
      out += marker_shape(series.marker, at + 12, y, std::max(series.size, 3.0)) +
             fmt::format(" fill=\"{}\" fill-opacity=\"{}\"/>\n", colour,
                         std::max(series.opacity, 0.6));
  }
  for (const PlotArea& area : plot.areas) {
    if (area.label.empty()) continue;
    const double at = place(area.label);
    out += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"24\" height=\"10\" fill=\"{}\" "
        "fill-opacity=\"{:.3g}\"/>\n",
        at, y - 5, escape_xml(area.colour), std::max(area.opacity, 0.3));
  }
  for (const PlotLevel& level : plot.levels) {
    const double at = place(level.label);
    out += fmt::format("<path d=\"M{:.2f} {:.2f}h24\" stroke=\"{}\" stroke-dasharray=\"2 3\"/>\n",
                       at, y, level_colour);
  }
  return any ? y - top + 18 : 0;
}

}  // namespace

std::string render_svg(const Plot& plot) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double x_low = infinity, x_high = -infinity, y_low = infinity, y_high = -infinity;
  const auto cover = [&](const PlotPoint& point) {
    if (!usable(point, plot)) return;
    x_low = std::min(x_low, point.x);
    x_high = std::max(x_high, point.x);
    y_low = std::min(y_low, point.y);
    y_high = std::max(y_high, point.y);
  };
  for (const PlotSeries& series : plot.series)
    for (const PlotPoint& point : series.points) cover(point);
  for (const PlotArea& area : plot.areas)
    if (usable(area, plot))
      for (const PlotPoint& point : area.outline) cover(point);
  const bool empty = x_low > x_high;
  if (!empty)
    for (const PlotLevel& level : plot.levels)
      if (usable(level.y, plot.y.logarithmic)) {
        y_low = std::min(y_low, level.y);
        y_high = std::max(y_high, level.y);
      }

  const double left = 66, right = plot.width - 14.0, bottom = plot.height - 50.0;
  std::string legend;
  const double top = 34 + draw_legend(plot, left, 40, right, legend);
  const Scale x = make_scale(plot.x, x_low, x_high, left, right);
  const Scale y = make_scale(plot.y, y_low, y_high, bottom, top);

  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"12\" "
      "fill=\"#2b333b\">\n<title>{2}</title>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n"
      "<text x=\"{3}\" y=\"20\" font-size=\"14\" font-weight=\"600\">{2}</text>\n",
      plot.width, plot.height, escape_xml(plot.title), left);
  out += legend;
  out += draw_axes(plot, x, y);
  // Nested, so that a range given for an axis cuts off what lies outside it.
  out += fmt::format(
      "<svg x=\"{0:.2f}\" y=\"{1:.2f}\" width=\"{2:.2f}\" height=\"{3:.2f}\" viewBox=\"{0:.2f} "
      "{1:.2f} {2:.2f} {3:.2f}\">\n",
      left, top, right - left, bottom - top);
  for (const PlotArea& area : plot.areas) out += draw_area(area, plot, x, y);
  if (plot.identity) {
    const double low = std::max(x.low, y.low), high = std::min(x.high, y.high);
    if (high > low)
      out += fmt::format(
          "<path d=\"M{:.2f} {:.2f}L{:.2f} {:.2f}\" stroke=\"{}\" stroke-dasharray=\"4 4\"/>\n",
          x(low), y(low), x(high), y(high), axis_colour);
  }
  for (const PlotLevel& level : plot.levels)
    if (usable(level.y, plot.y.logarithmic))
      out += fmt::format(
          "<path d=\"M{:.2f} {:.2f}H{:.2f}\" stroke=\"{}\" stroke-dasharray=\"2 3\"/>\n", x.from,
          y(level.y), x.to, level_colour);
  for (auto series = plot.series.rbegin(); series != plot.series.rend(); ++series)
    out += draw_series(*series, plot, x, y);
  out += draw_labels(plot, x, y);
  out += "</svg>\n";
  if (empty)
    out += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"middle\">no data</text>\n",
                       (left + right) / 2, (top + bottom) / 2);
  return out + "</svg>\n";
}

}  // namespace sol
