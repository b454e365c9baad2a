#include "evaluation/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "evaluation/report_page.h"
#include "evaluation/svg.h"
#include "evaluation/sweep_plots.h"
#include "evaluation/sweep_tables.h"

namespace sol {
namespace {

std::string settings_table(const Sweep& sweep, const SweepSummary& summary,
                           const SweepSettings& settings) {
  std::string rows;
  const auto row = [&](const char* name, const std::string& value) {
    rows += settings_row(name, value);
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
  row("Time", fmt::format("{:.1f} s, {} decoded tokens", sweep.seconds, sweep.decoded_tokens));
  rows += run_rows(run);
  return "<table class=\"settings\">\n" + rows + "</table>\n";
}

}  // namespace

std::string sweep_report(const Sweep& sweep, const SweepSummary& summary,
                         const SweepSettings& settings) {
  std::string html =
      fmt::format("<p class=\"sub\">{} requested budgets, {} blocks of {}</p>\n",
                  sweep.points.size(), sweep.blocks.size(), escape_xml(settings.data));
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

  if (sweep.protocol.costs) {
    html += "<h2 id=\"costs\">Perplexity against time by the cost table</h2>\n";
    html += frontier_plot(sweep, summary, time_share,
                          "Perplexity against time by the cost table, with Pareto frontiers",
                          "share of the dense steps' time, refresh not included");
  }

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
  if (sweep.by_time) html += time_adherence_plot(sweep);
  for (const Axis axis : all_axes)
    if (!sweep.by_time && sweep.space.on(axis)) html += adherence_plot(sweep, axis);
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
  return html_page(fmt::format("Budget sweep: {} on {}", sweep.policy, settings.run.model), html);
}

}  // namespace sol
