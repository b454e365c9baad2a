// Tables that are HTML, Markdown, CSV and JSON lines at once: what a reader sees is what a program
// reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace sol {

// One value: as people read it, and as it is.
struct Figure {
  std::string text;
  Json value;

  Figure(std::string shown, Json exact) : text(std::move(shown)), value(std::move(exact)) {}
  Figure(const std::string& name) : text(name), value(name) {}
  Figure(const char* name) : Figure(std::string(name)) {}
};
// With that many digits after the point; NaN is shown as n/a.
Figure number(double value, int digits = 2);
Figure count(int64_t value);
Figure share_of(double share);  // in percent
Figure signed_figure(double value, int digits = 3);
Figure signed_percent(double share);

class FigureTable {
 public:
  struct Column {
    std::string key;      // in CSV and JSON
    std::string heading;  // for people
  };
  // `name`: of the CSV file, and "table" in the JSON lines.
  FigureTable(std::string name, std::string caption, std::vector<Column> columns);

  void add(std::vector<Figure> row);  // as many as there are columns
  bool empty() const { return rows_.empty(); }
  const std::string& name() const { return name_; }
  std::string html() const;      // empty without a row
  std::string markdown() const;  // likewise: a caption and a table
  std::string csv() const;
  std::string jsonl() const;

 private:
  std::string name_, caption_;
  std::vector<Column> columns_;
  std::vector<std::vector<Figure>> rows_;
};

// A part of the report.
struct Section {
  std::string id, title;
  std::string html;
  std::vector<FigureTable> tables;  // for the files: those shown, and those that plots stand for
  std::string markdown = {};
  std::vector<std::string> plots = {};  // <svg> elements, for the files

  // In both forms.
  void heading(const std::string& text, int level = 3);
  // Plots side by side, and links to their files; nothing where there is none.
  void draw(const std::vector<std::string>& svgs);
  // Shows a table and keeps it.
  void show(FigureTable table);
  // Text, in both forms: as small print, and as what the figures say.
  void note(const std::string& text);
  void verdict(const std::string& text);
};

// The file of a section's n-th plot, n from 1.
std::string plot_file(const std::string& section, size_t n);

}  // namespace sol
