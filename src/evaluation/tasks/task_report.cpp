// Results of tasks as one self-contained page of HTML with inline SVG.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "evaluation/report_page.h"
#include "evaluation/svg.h"
#include "evaluation/tasks/task_files.h"
#include "evaluation/tasks/task_means.h"

namespace sol {
namespace {

using Cells = std::vector<const TaskCell*>;

// Cells of each task, in their order.
std::vector<Cells> by_task(const std::vector<TaskCell>& cells) {
  std::vector<Cells> tasks;
  for (const TaskCell& cell : cells) {
    const auto found = std::ranges::find_if(
        tasks, [&](const Cells& one) { return one.front()->task == cell.task; });
    if (found != tasks.end())
      found->push_back(&cell);
    else
      tasks.push_back({&cell});
  }
  return tasks;
}

// What a plot of the task shows: the harness's length-normalised accuracy has its own column.
const Metric& plotted(const TaskCell& cell) {
  if (cell.kind == TaskKind::rolling) return *find_metric(cell.metrics, "bits_per_byte");
  return cell.main_metric();
}

std::string metric_text(const Metric& metric) {
  if (!metric.standard_error) return fmt::format("{:.4f}", metric.value);
  return fmt::format("{:.4f} ± {:.4f}", metric.value, *metric.standard_error);
}

std::string series_label(const TaskCell& cell) {
  return cell.at_realised ? cell.policy + " at realised averages" : cell.policy;
}

std::string point_note(const TaskCell& cell) {
  std::string note = fmt::format("{}\nnet keep-rate {:.3f}\n{} {}", series_label(cell),
                                 cell.net_keep, plotted(cell).name, metric_text(plotted(cell)));
  if (cell.spent.effective_steps > 0) note += "\nrealised " + budget_text(cell.spent.realised);
  return note;
}

// The policies' points, each with a bar of one standard error to either side, the dense level and
// the chance level.
std::string plot_of(const Cells& cells) {
  Plot plot{.title = cells.front()->task + ", decoded under policies",
            .x = {.label = "net keep-rate (mean of the realised averages; lower is cheaper)"},
            .y = {.label = plotted(*cells.front()).name + (cells.front()->kind == TaskKind::rolling
                                                               ? " (lower is better)"
                                                               : " (higher is better)")},
            .width = 760,
            .height = 420};
  std::vector<PlotSeries> lines, bars;
  constexpr Marker markers[] = {Marker::circle, Marker::square, Marker::triangle, Marker::diamond};
  double low = 0, high = 0;
  bool any = false;
  const auto cover = [&](double value) {
    low = any ? std::min(low, value) : value;
    high = any ? std::max(high, value) : value;
    any = true;
  };
  for (const TaskCell* cell : cells) {
    if (cell->mode != ScoringMode::decode) continue;
    const Metric& metric = plotted(*cell);
    if (cell->policy == "dense") {
      plot.levels.push_back({metric.value, fmt::format("dense: {:.4f}", metric.value)});
      cover(metric.value);
      continue;
    }
    if (cell->spent.effective_steps == 0) continue;
    const std::string label = series_label(*cell);
    auto found = std::ranges::find(lines, label, &PlotSeries::label);
    if (found == lines.end()) {
      const size_t index = lines.size();
      lines.push_back({.label = label,
                       .colour = index == 0 ? policy_colour : baseline_colour(index - 1),
                       .marker = markers[index % std::size(markers)],
                       .size = 3.6,
                       .line = cell->budgeted,
                       .dashed = cell->at_realised});
      found = std::prev(lines.end());
    }
    found->points.push_back({cell->net_keep, metric.value, point_note(*cell)});
    const double error = metric.standard_error.value_or(0);
    cover(metric.value - error);
    cover(metric.value + error);
    if (error > 0)
      bars.push_back({.label = "",
                      .colour = found->colour,
                      .marker = Marker::none,
                      .line = true,
                      .points = {{cell->net_keep, metric.value - error},
                                 {cell->net_keep, metric.value + error}}});
  }
  if (lines.empty()) return {};
  for (PlotSeries& line : lines) std::ranges::sort(line.points, {}, &PlotPoint::x);
  // Not a second grey line like dense's.
  if (const auto chance = cells.front()->chance) {
    double left = 1, right = 0;
    for (const PlotSeries& line : lines) {
      left = std::min(left, line.points.front().x);
      right = std::max(right, line.points.back().x);
    }
    const double beyond = std::max(0.01, 0.03 * (right - left));
    lines.push_back({.label = fmt::format("chance: {:.4f}", *chance),
                     .colour = "#B00020",
                     .marker = Marker::none,
                     .line = true,
                     .dashed = true,
                     .points = {{left - beyond, *chance}, {right + beyond, *chance}}});
    cover(*chance);
  }
  plot.series = std::move(lines);
  std::ranges::move(bars, std::back_inserter(plot.series));
  const double room = std::max(0.01, 0.06 * (high - low));
  plot.y.low = low - room;
  plot.y.high = high + room;
  return render_svg(plot);
}

// `caption` is HTML.
std::string table_of(const Cells& cells, const std::string& caption) {
  std::string head =
      "<tr><th>Policy</th><th>Mode</th><th>Requested</th><th>Net keep-rate</th><th>Realised</th>";
  for (const Metric& metric : cells.front()->metrics)
    head += fmt::format("<th>{}</th>", metric.name);
  head += "<th>Chance</th></tr>\n";
  std::string rows;
  for (const TaskCell* cell : cells) {
    const bool counted = cell->spent.effective_steps > 0;
    rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>",
                        escape_xml(series_label(*cell)), to_string(cell->mode),
                        requested_text(*cell), counted ? fmt::format("{:.3f}", cell->net_keep) : "",
                        counted ? budget_text(cell->spent.realised) : "");
    for (const Metric& metric : cell->metrics)
      rows += fmt::format("<td>{}{}</td>", metric_text(metric),
                          metric.at_chance ? " <em>at chance</em>" : "");
    rows +=
        fmt::format("<td>{}</td></tr>\n", cell->chance ? fmt::format("{:.4f}", *cell->chance) : "");
  }
  return fmt::format("<div class=\"scroll\"><table><caption>{}</caption>\n{}{}</table></div>\n",
                     caption, head, rows);
}

std::string caption_of(const TaskCell& first) {
  const std::string shots =
      first.shots > 0 ? fmt::format(", {} examples{}", first.shots,
                                    first.chat ? " as chat turns" : " before each question")
                      : "";
  return fmt::format("{} documents of {}{}", first.documents.size(), escape_xml(first.data.name),
                     shots);
}

// Which tasks a mean is over, and how they count.
std::string members_note(const TaskMean& mean) {
  std::vector<std::string> tasks;
  for (const TaskCell* cell : mean.of) tasks.push_back(escape_xml(task_text(*cell)));
  return fmt::format("<p class=\"note\">{}. {}.</p>\n", fmt::join(tasks, ", "),
                     mean.by_questions ? "Subjects are weighted by their numbers of questions"
                                       : "Each task counts alike");
}

std::string means_of(const std::vector<TaskCell>& cells) {
  const std::vector<TaskMean> means = task_means(cells);
  std::string html;
  for (auto first = means.begin(); first != means.end();) {
    const auto end = std::find_if(first, means.end(),
                                  [&](const TaskMean& mean) { return mean.name != first->name; });
    Cells shown;
    for (auto mean = first; mean != end; ++mean) shown.push_back(&mean->cell);
    html += fmt::format("<h2>{}</h2>\n", escape_xml(shown.front()->task));
    html += plot_of(shown);
    html += table_of(shown, fmt::format("{} documents", first->documents));
    html += members_note(*first);
    first = end;
  }
  return html;
}

}  // namespace

std::string tasks_report(const std::vector<TaskCell>& cells, const TaskSettings& settings) {
  const RunInfo& run = settings.run;
  std::string body;
  const std::vector<std::string> findings = task_findings(cells);
  if (!findings.empty()) {
    body += "<div class=\"verdict\">";
    for (const std::string& finding : findings)
      body += fmt::format("<p>{}</p>", escape_xml(finding));
    body += "</div>\n";
  }
  body += means_of(cells);
  for (const Cells& task : by_task(cells)) {
    body += fmt::format("<h2>{}</h2>\n", escape_xml(task.front()->task));
    body += plot_of(task);
    body += table_of(task, caption_of(*task.front()));
  }
  body +=
      "<p class=\"note\">± one standard error over documents. <em>At chance</em>: within two "
      "standard errors of guessing, so nothing follows from it. Prefill: all scored tokens in one "
      "dense pass. Decode: token by token, as in generation, where a policy acts; baselines are "
      "asked for the averages that the judged policy realised. The net keep-rate is a share of "
      "what was kept, not of time.</p>\n<h2>Settings</h2>\n<table class=\"settings\">\n";
  body += settings_row("Model", run.model);
  body += settings_row("Model fingerprint", run.model_fingerprint);
  body += settings_row("Controller", settings.controller);
  body += settings_row(
      "Decoding", fmt::format("episodes of {} steps, each computed again densely after its end",
                              settings.scoring.horizon));
  const SequenceOptions& sequence = settings.scoring.sequence;
  body += settings_row("Attention",
                       fmt::format("pages of {} keys, {} sinks and a window of {} {}",
                                   sequence.page_size, sequence.sinks, sequence.window,
                                   sequence.force_sinks ? "always attended to" : "not forced"));
  body += run_rows(run);
  body += "</table>\n";
  return html_page(fmt::format("Tasks: {}", run.model), body);
}

}  // namespace sol
