#include "reproduction/figures.h"

#include <fmt/format.h>

#include <cassert>
#include <cmath>
#include <string_view>

#include "evaluation/report_page.h"
#include "evaluation/svg.h"

namespace sol {
namespace {

std::string csv_field(const Json& value) {
  if (value.is_null()) return {};
  if (!value.is_string()) return value.dump();
  const std::string text = value.get<std::string>();
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

// A cell's text, which must not end the cell.
std::string markdown_cell(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|') cell += '\\';
    cell += c == '\n' ? ' ' : c;
  }
  return cell;
}

}  // namespace

Figure number(double value, int digits) {
  if (!std::isfinite(value)) return {"n/a", nullptr};
  return {fmt::format("{}{:.{}f}", value < 0 ? "\u2212" : "", std::abs(value), digits), value};
}

Figure count(int64_t value) {
  return {std::to_string(value), value};
}

Figure share_of(double share) {
  if (!std::isfinite(share)) return {"n/a", nullptr};
  return {percent(share), share};
}

Figure signed_figure(double value, int digits) {
  if (!std::isfinite(value)) return {"n/a", nullptr};
  return {signed_number(value, digits), value};
}

Figure signed_percent(double share) {
  if (!std::isfinite(share)) return {"n/a", nullptr};
  return {signed_number(100 * share, 1) + " %", share};
}

FigureTable::FigureTable(std::string name, std::string caption, std::vector<Column> columns)
    : name_(std::move(name)), caption_(std::move(caption)), columns_(std::move(columns)) {}

void FigureTable::add(std::vector<Figure> row) {
  assert(row.size() == columns_.size());
  rows_.push_back(std::move(row));
}

std::string FigureTable::html() const {
  if (rows_.empty()) return {};
  std::string html =
      fmt::format("<div class=\"scroll\"><table><caption>{}</caption>\n<tr>", escape_xml(caption_));
  for (const Column& column : columns_)
    html += fmt::format("<th>{}</th>", escape_xml(column.heading));
  html += "</tr>\n";
  for (const auto& row : rows_) {
    html += "<tr>";
    for (const Figure& figure : row) html += fmt::format("<td>{}</td>", escape_xml(figure.text));
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

std::string FigureTable::markdown() const {
  if (rows_.empty()) return {};
  std::string text = caption_ + ":\n\n|";
  for (const Column& column : columns_) text += fmt::format(" {} |", markdown_cell(column.heading));
  text += "\n|";
  for (size_t i = 0; i < columns_.size(); ++i) text += "---|";
  text += "\n";
  for (const auto& row : rows_) {
    text += "|";
    for (const Figure& figure : row) text += fmt::format(" {} |", markdown_cell(figure.text));
    text += "\n";
  }
  return text + "\n";
}

std::string FigureTable::csv() const {
  std::string text;
  for (size_t i = 0; i < columns_.size(); ++i)
    text += (i == 0 ? "" : ",") + csv_field(columns_[i].key);
  text += "\n";
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) text += (i == 0 ? "" : ",") + csv_field(row[i].value);
    text += "\n";
  }
  return text;
}

std::string FigureTable::jsonl() const {
  std::string text;
  for (const auto& row : rows_) {
    Json line = {{"table", name_}};
    for (size_t i = 0; i < row.size(); ++i) line[columns_[i].key] = row[i].value;
    text += to_text(line) + "\n";
  }
  return text;
}

std::string plot_file(const std::string& section, size_t n) {
  return fmt::format("{}-{}.svg", section, n);
}

void Section::heading(const std::string& text, int level) {
  html += fmt::format("<h{0}>{1}</h{0}>\n", level, escape_xml(text));
  markdown += fmt::format("{:#<{}} {}\n\n", "", level, text);
}

void Section::draw(const std::vector<std::string>& svgs) {
  if (svgs.empty()) return;
  html += "<div class=\"row\">\n";
  for (const std::string& svg : svgs) {
    html += svg;
    plots.push_back(svg);
    markdown +=
        fmt::format("![{}, plot {}](plots/{})\n", title, plots.size(), plot_file(id, plots.size()));
  }
  html += "</div>\n";
  markdown += "\n";
}

void Section::show(FigureTable table) {
  html += table.html();
  markdown += table.markdown();
  if (!table.empty()) tables.push_back(std::move(table));
}

void Section::note(const std::string& text) {
  html += fmt::format("<p class=\"note\">{}</p>\n", escape_xml(text));
  markdown += text + "\n\n";
}

void Section::verdict(const std::string& text) {
  html += fmt::format("<p class=\"verdict\">{}</p>\n", escape_xml(text));
  markdown += fmt::format("**{}**\n\n", text);
}

}  // namespace sol
