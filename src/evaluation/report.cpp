#include "evaluation/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "evaluation/svg.h"

namespace sol {

namespace {

// Colours that most colour-blind readers tell apart, in print too (Okabe and Ito).
constexpr const char* policy_colour = "#0072B2";
constexpr const char* baseline_colours[] = {"#D55E00", "#009E73", "#CC79A7", "#8a6d00"};

const char* baseline_colour(size_t index) {
  return baseline_colours[index % std::size(baseline_colours)];
}

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

// A minus sign that is as wide as a plus.
std::string signed_number(double value) {
  return fmt::format("{}{:.3f}", value < 0 ? "\u2212" : "+", std::abs(value));
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

std::string point_note(std::string_view policy, const Outcome& outcome) {
  return fmt::format("{}\nasked for {}\nrealised {}\nnet keep-rate {:.3f}, perplexity {:.3f}",
                     policy, budget_text(outcome.asked), budget_text(outcome.realised),
                     outcome.net_keep, outcome.perplexity);
}

std::string name_at(const Sweep& sweep, size_t baseline, Matching matching) {
  return fmt::format("{} at {} averages", sweep.baselines[baseline],
                     matching == Matching::realised ? "realised" : "requested");
}

// What a frontier plot has on its x axis.
using Cost = double (*)(const Outcome&);
double net_keep(const Outcome& outcome) {
  return outcome.net_keep;
}
double milliseconds(const Outcome& outcome) {
  return 1e3 * outcome.seconds_per_token;
}

// One policy's points as a cloud and its frontier as a line.
template <typename Pick>
void add_cloud(Plot& plot, const Sweep& sweep, Cost cost, const std::string& label,
               const char* colour, Marker marker, bool dashed, const Pick& pick) {
  PlotSeries cloud{.label = "", .colour = colour, .marker = marker, .size = 2.2, .opacity = 0.28};
  for (const SweepPoint& point : sweep.points) {
    const Outcome& outcome = pick(point);
    cloud.points.push_back({cost(outcome), outcome.perplexity, point_note(label, outcome)});
  }
  PlotSeries line{.label = label,
                  .colour = colour,
                  .marker = marker,
                  .size = 3.4,
                  .line = true,
                  .dashed = dashed};
  std::vector<double> x, y;
  for (const PlotPoint& point : cloud.points) {
    x.push_back(point.x);
    y.push_back(point.y);
  }
  for (const size_t i : pareto_frontier(x, y)) line.points.push_back(cloud.points[i]);
  plot.series.push_back(std::move(line));
  plot.series.push_back(std::move(cloud));
}

std::string frontier_plot(const Sweep& sweep, const SweepSummary& summary, Cost cost,
                          const std::string& title, const std::string& x_label) {
  Plot plot{.title = title,
            .x = {.label = x_label},
            .y = {.label = "perplexity (lower is better)"},
            .width = 940,
            .height = 540};
  plot.levels.push_back(
      {sweep.dense.perplexity, fmt::format("dense: {:.2f}", sweep.dense.perplexity)});
  add_cloud(plot, sweep, cost, sweep.policy, policy_colour, Marker::circle, false,
            [](const SweepPoint& p) -> const Outcome& { return p.policy; });
  const bool realised = !summary.realised_frontiers.empty();
  const Matching matching = realised ? Matching::realised : Matching::requested;
  const size_t baselines =
      (realised ? summary.realised_frontiers : summary.requested_frontiers).size();
  constexpr Marker markers[] = {Marker::square, Marker::triangle, Marker::diamond};
  for (size_t b = 0; b < baselines; ++b)
    add_cloud(plot, sweep, cost, name_at(sweep, b, matching), baseline_colour(b),
              markers[b % std::size(markers)], true,
              [&](const SweepPoint& p) -> const Outcome& { return p.baselines(matching)[b]; });
  double low = sweep.dense.perplexity, high = low;
  for (const PlotSeries& series : plot.series)
    for (const PlotPoint& point : series.points) {
      low = std::min(low, point.y);
      high = std::max(high, point.y);
    }
  if (high > 5 * low) {
    plot.y.logarithmic = true;
    plot.y.label = "perplexity, logarithmic (lower is better)";
  }
  return render_svg(plot);
}

struct AxisText {
  Axis axis;
  const char* title;
  const char* unit;
  float (*value)(const Budget&);
};
constexpr AxisText axis_texts[] = {
    {Axis::kappa, "Keys attended to, κ", "share of the keys",
     [](const Budget& b) { return b.kappa; }},
    {Axis::rho, "MLP channels used, ρ", "share of the channels",
     [](const Budget& b) { return b.rho; }},
    {Axis::eta, "Activation precision, η", "bits / 16", [](const Budget& b) { return b.eta; }}};

std::string adherence_plot(const Sweep& sweep, const AxisText& text) {
  PlotSeries inside{
      .label = "inside the trained ranges", .colour = policy_colour, .size = 2.6, .opacity = 0.35};
  PlotSeries outside{.label = "outside",
                     .colour = "#D55E00",
                     .marker = Marker::square,
                     .size = 2.4,
                     .opacity = 0.35};
  for (const SweepPoint& point : sweep.points)
    (point.inside ? inside : outside)
        .points.push_back({static_cast<double>(text.value(point.requested)),
                           static_cast<double>(text.value(point.policy.realised)),
                           point_note(sweep.policy, point.policy)});
  Plot plot{.title = text.title,
            .x = {.label = fmt::format("requested ({})", text.unit)},
            .y = {.label = fmt::format("realised ({})", text.unit)},
            .identity = true,
            .width = 316,
            .height = 330};
  double low = 1, high = 0;
  for (const PlotSeries* series : {&inside, &outside})
    for (const PlotPoint& point : series->points) {
      low = std::min({low, point.x, point.y});
      high = std::max({high, point.x, point.y});
    }
  const double room = std::max(0.02, 0.05 * (high - low));
  plot.x.low = plot.y.low = low - room;
  plot.x.high = plot.y.high = high + room;
  if (!inside.points.empty()) plot.series.push_back(std::move(inside));
  if (!outside.points.empty()) plot.series.push_back(std::move(outside));
  return render_svg(plot);
}

std::string scope_name(Scope scope) {
  return scope == Scope::inside ? "inside the trained ranges" : "the whole grid";
}

std::string paired_table(const Sweep& sweep, const SweepSummary& summary, Matching matching) {
  std::string rows;
  for (const Comparison& row : summary.comparisons) {
    if (row.matching != matching || (row.scope == Scope::all && !any_outside(sweep))) continue;
    const PairedTest& test = row.test;
    rows += fmt::format(
        "<tr><td>{} against {}, {}</td><td>{}</td><td>{}</td><td>{}</td><td>{} ± {:.3f}</td>"
        "<td>{}</td><td>{}</td><td>[{}, {}]</td></tr>\n",
        escape_xml(sweep.policy), escape_xml(row.baseline), scope_name(row.scope), test.n,
        with_deviation(test.policy), with_deviation(test.baseline),
        signed_number(test.difference.mean), test.difference.deviation, escape_xml(p_value(test.p)),
        percent(test.win_rate), signed_number(row.interval.low), signed_number(row.interval.high));
  }
  if (rows.empty()) return {};
  const char* caption = matching == Matching::realised
                            ? "Baselines at the policy's realised averages (the verdict)"
                            : "Baselines at the requested budgets (as in the paper's table)";
  return fmt::format(
      "<div class=\"scroll\"><table><caption>{}</caption>\n"
      "<tr><th>Comparison</th><th>Budgets</th><th>Policy perplexity</th><th>Baseline perplexity"
      "</th><th>Difference</th><th>p, one-sided</th><th>Win rate</th><th>95 % interval</th></tr>\n"
      "{}</table></div>\n",
      caption, rows);
}

std::string adherence_table(const Sweep& sweep, const SweepSummary& summary) {
  std::string rows;
  for (const Adherence& row : summary.adherence) {
    if (row.scope == Scope::all && !any_outside(sweep)) continue;
    rows += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
        "<td>{:.3f} / {:.3f} / {:.3f}</td><td>{:.3f} / {:.3f} / {:.3f}</td></tr>\n",
        scope_name(row.scope), row.points, percent(row.all_axes_share), percent(row.share[0]),
        percent(row.share[1]), percent(row.share[2]), row.mean_error[0], row.mean_error[1],
        row.mean_error[2], row.largest_error[0], row.largest_error[1], row.largest_error[2]);
  }
  return fmt::format(
      "<div class=\"scroll\"><table><caption>Requests met within {} of the requested average"
      "</caption>\n<tr><th>Budgets</th><th>Number</th><th>All axes</th><th>κ</th><th>ρ</th>"
      "<th>η</th><th>Mean error κ / ρ / η</th><th>Largest κ / ρ / η</th></tr>\n{}</table></div>\n",
      Adherence::tolerance, rows);
}

std::string verdict(const Sweep& sweep, const SweepSummary& summary) {
  const Comparison* row = nullptr;
  for (const Matching matching : {Matching::realised, Matching::requested})
    for (const Scope scope : {Scope::inside, Scope::all})
      if (!row && !sweep.baselines.empty())
        row = summary.find(sweep.baselines.front(), matching, scope);
  if (!row) return {};
  const PairedTest& test = row->test;
  const char* finding = row->interval.high < 0  ? "is better than"
                        : row->interval.low > 0 ? "is worse than"
                                                : "cannot be told apart from";
  return fmt::format(
      "<p class=\"verdict\"><strong>{} {} {}</strong> at {}: over {} budgets ({}) and {} "
      "blocks, mean perplexity {:.2f} against {:.2f}, a difference of {} (95 % interval over "
      "blocks "
      "{} to {}); it wins at {} of the budgets. Dense: {:.2f}.</p>\n",
      escape_xml(sweep.policy), finding, escape_xml(row->baseline),
      row->matching == Matching::realised ? "the policy's realised averages"
                                          : "the requested budgets",
      test.n, scope_name(row->scope), sweep.blocks.size(), test.policy.mean, test.baseline.mean,
      signed_number(test.difference.mean), signed_number(row->interval.low),
      signed_number(row->interval.high), percent(test.win_rate), sweep.dense.perplexity);
}

std::string settings_table(const Sweep& sweep, const SweepSummary& summary,
                           const SweepSettings& settings) {
  std::string rows;
  const auto row = [&](const char* name, const std::string& value) {
    if (!value.empty())
      rows += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", name, escape_xml(value));
  };
  const RunInfo& run = settings.run;
  const SequenceOptions& sequence = sweep.protocol.sequence;
  row("Model", run.model);
  row("Model fingerprint", run.model_fingerprint);
  row("Controller", settings.controller);
  row("Trained ranges", settings.trained_ranges);
  row("Levels",
      fmt::format("κ {{{}}}, ρ {{{}}}, bits {{{}}}", fmt::join(sweep.space.kappa(), ", "),
                  fmt::join(sweep.space.rho(), ", "), fmt::join(sweep.space.bits(), ", ")));
  row("Text", settings.data);
  row("Blocks", fmt::format("{} of {}", sweep.blocks.size(), settings.blocks_available));
  row("Protocol", fmt::format("{} tokens of dense context, then {} teacher-forced steps",
                              sweep.protocol.context, sweep.protocol.horizon));
  row("Attention", fmt::format("pages of {} keys, {} sinks and a window of {} {}",
                               sequence.page_size, sequence.sinks, sequence.window,
                               sequence.force_sinks ? "always attended to" : "not forced"));
  row("Grid", settings.grid);
  row("Bootstrap", fmt::format("{} draws over blocks", summary.bootstrap_draws));
  row("Seed", std::to_string(run.seed));
  row("Program", fmt::format("sol {}, commit {}", run.version, run.commit));
  row("Machine",
      fmt::format("{}; instruction set {}, {}, {} weights, {} thread{}", run.cpu, run.isa,
                  run.precision, run.weights, run.threads, run.threads == 1 ? "" : "s"));
  if (!run.outside_paper.empty())
    row("Outside the paper", fmt::format("--{}", fmt::join(run.outside_paper, ", --")));
  row("Time", fmt::format("{:.1f} s, {} decoded tokens", sweep.seconds, sweep.decoded_tokens));
  rows +=
      fmt::format("<tr><td>Command</td><td><code>{}</code></td></tr>\n", escape_xml(run.command));
  return "<table class=\"settings\">\n" + rows + "</table>\n";
}

}  // namespace

std::string sweep_report(const Sweep& sweep, const SweepSummary& summary,
                         const SweepSettings& settings) {
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>Budget sweep: {0} on {1}</title>\n<style>{2}</style>\n</head>\n<body>\n"
      "<h1>Budget sweep: {0} on {1}</h1>\n"
      "<p class=\"sub\">{3} requested budgets, {4} blocks of {5}</p>\n",
      escape_xml(sweep.policy), escape_xml(settings.run.model), style, sweep.points.size(),
      sweep.blocks.size(), escape_xml(settings.data));
  html += verdict(sweep, summary);

  html += "<h2 id=\"frontier\">Perplexity against net keep-rate</h2>\n";
  html += frontier_plot(sweep, summary, net_keep,
                        "Perplexity against net keep-rate, with Pareto frontiers",
                        "net keep-rate (mean of the realised averages; lower is cheaper)");
  html +=
      "<p class=\"note\">Each faint mark is one requested budget; lines join the points that no "
      "other of the same policy beats on both counts. The net keep-rate is the mean of the "
      "realised "
      "averages over the axes in use. It is a measure of what was kept, not of time: fewer "
      "activation bits, for one, save none by themselves.</p>\n";

  if (sweep.protocol.timed) {
    html += "<h2 id=\"time\">Perplexity against measured time</h2>\n";
    html += frontier_plot(sweep, summary, milliseconds,
                          "Perplexity against measured time, with Pareto frontiers",
                          "milliseconds per token, one sequence, policy and refresh included");
    html += fmt::format(
        "<p class=\"note\">Every sequence was decoded alone. Dense steps take {:.3f} ms a token; "
        "all other policies pay for a dense pass over each episode's {} tokens as well, which "
        "refreshes the cache.</p>\n",
        milliseconds(sweep.dense), sweep.protocol.horizon);
  }

  html += "<h2 id=\"adherence\">Requested and realised budgets</h2>\n<div class=\"row\">\n";
  for (const AxisText& text : axis_texts)
    if (sweep.space.on(text.axis)) html += adherence_plot(sweep, text);
  html += "</div>\n";
  html += adherence_table(sweep, summary);

  html += "<h2 id=\"paired\">Paired comparisons</h2>\n";
  html += paired_table(sweep, summary, Matching::realised);
  html += paired_table(sweep, summary, Matching::requested);
  html +=
      "<p class=\"note\">Mean ± standard deviation over budgets. Difference: policy minus "
      "baseline, "
      "so negative is better. p: one-sided paired t-test over budgets that the policy is not "
      "lower. "
      "Win rate: share of budgets at which the policy is strictly lower. Interval: of the mean "
      "difference, by a bootstrap over blocks of text.</p>\n";

  html += "<h2 id=\"settings\">Settings</h2>\n";
  html += settings_table(sweep, summary, settings);
  return html + "</body>\n</html>\n";
}

}  // namespace sol
