#include "evaluation/report_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <iterator>

#include "evaluation/svg.h"

namespace sol {
namespace {

constexpr std::string_view style = R"css(
:root{color-scheme:light}
body{font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;color:#1f262d;background:#fff;
max-width:1000px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:25px;margin:0 0 2px}
h2{font-size:18px;margin:38px 0 8px;padding-top:14px;border-top:1px solid #dde1e6}
p{margin:8px 0;max-width:75ch}
.sub{color:#5b6570;margin:0 0 18px}
.verdict{border-left:4px solid #0072B2;background:#f3f8fc;padding:12px 16px;margin:16px 0}
.note{color:#5b6570;font-size:13px}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:14px;margin:10px 0 4px;font-variant-numeric:tabular-nums}
caption{text-align:left;font-weight:600;padding:8px 0 4px;white-space:nowrap}
th,td{padding:5px 12px 5px 0;border-bottom:1px solid #e3e6ea;text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left}
th{color:#5b6570;font-weight:600}
table.settings td{text-align:left;white-space:normal;overflow-wrap:anywhere;vertical-align:top}
table.settings td:first-child{color:#5b6570;white-space:nowrap}
svg{max-width:100%;height:auto}
.row{display:flex;flex-wrap:wrap;gap:6px}
code{font:13px ui-monospace,Menlo,Consolas,monospace}
@media print{body{padding:0;font-size:11pt}h2,table,svg{break-inside:avoid}h2{break-after:avoid}
.scroll{overflow:visible}.verdict{background:none}}
)css";

}  // namespace

std::string html_page_beginning(std::string_view title) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}",
      escape_xml(title));
}

std::string html_page(std::string_view title, std::string_view body) {
  return html_page_beginning(title) +
         fmt::format(
             "</title>\n<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n{2}</body>\n"
             "</html>\n",
             escape_xml(title), style, body);
}

const char* baseline_colour(size_t index) {
  constexpr const char* colours[] = {"#D55E00", "#009E73", "#CC79A7", "#8a6d00"};
  return colours[index % std::size(colours)];
}

std::string signed_number(double value, int digits) {
  return fmt::format("{}{:.{}f}", value < 0 ? "\u2212" : "+", std::abs(value), digits);
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string p_value(double p) {
  if (std::isnan(p)) return "n/a";
  if (p < 1e-10) return "< 1e-10";
  return p < 0.001 ? fmt::format("{:.1e}", p) : fmt::format("{:.3f}", p);
}

std::string with_deviation(const MeanDeviation& value) {
  return fmt::format("{:.3f} ± {:.3f}", value.mean, value.deviation);
}

std::string budget_text(const Budget& budget) {
  return fmt::format("κ {:.3f}, ρ {:.3f}, {:.2f} bits", budget.kappa, budget.rho, budget.eta * 16);
}

std::string levels_in_words(const ActionSpace& space) {
  std::string words;
  const auto add = [&](Axis axis, const char* symbol, const auto& levels) {
    if (!space.on(axis) && space.levels(axis).front() == 1) return;
    constexpr size_t most_named = 4;
    const std::string named =
        levels.size() > most_named
            ? fmt::format("{} levels {} .. {}", levels.size(), levels.front(), levels.back())
            : fmt::format("{}", fmt::join(levels, ", "));
    words += fmt::format("{}{} {{{}}}", words.empty() ? "" : ", ", symbol, named);
  };
  add(Axis::kappa, "κ", space.kappa());
  add(Axis::rho, "ρ", space.rho());
  add(Axis::eta, "q", space.bits());
  return words;
}

std::string settings_row(std::string_view name, std::string_view value) {
  if (value.empty()) return {};
  return fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", name, escape_xml(value));
}

std::string run_rows(const RunInfo& run) {
  std::string rows = settings_row("Seed", std::to_string(run.seed));
  rows += settings_row("Program", fmt::format("sol {}, commit {}", run.version, run.commit));
  rows += settings_row("Machine", fmt::format("{}; instruction set {}, {}, {} weights, {} thread{}",
                                              run.cpu, run.isa, run.precision, run.weights,
                                              run.threads, run.threads == 1 ? "" : "s"));
  if (run.device != native_device) rows += settings_row("Device", run.device);
  if (!run.outside_paper.empty())
    rows += settings_row("Outside the paper",
                         fmt::format("--{}", fmt::join(run.outside_paper, ", --")));
  if (!run.command.empty())
    rows +=
        fmt::format("<tr><td>Command</td><td><code>{}</code></td></tr>\n", escape_xml(run.command));
  return rows;
}

}  // namespace sol
