#include "evaluation/sweep_tables.h"

#include <fmt/format.h>

#include "evaluation/named_policy.h"
#include "evaluation/report_page.h"
#include "evaluation/svg.h"

namespace sol {
namespace {

std::string scope_name(Scope scope) {
  if (scope == Scope::frugal) return fmt::format("net keep-rates of {} at most", frugal_net_keep);
  return scope == Scope::inside ? "inside the trained ranges" : "the whole grid";
}

}  // namespace

bool compared_at_equal_averages(const Comparison& row) {
  return row.baseline == elsewhere_baseline || follows_budgets(row.baseline);
}

std::string paired_table(const Sweep& sweep, const SweepSummary& summary, Matching matching) {
  std::string rows;
  for (const Comparison& row : summary.comparisons) {
    if (row.matching != matching || (row.scope == Scope::all && !any_outside(sweep))) continue;
    const PairedTest& test = row.test;
    rows += fmt::format(
        "<tr><td>{} against {}{}, {}</td><td>{}</td><td>{}</td><td>{}</td><td>{} ± {:.3f}</td>"
        "<td>{}</td><td>{}</td><td>[{}, {}]</td></tr>\n",
        escape_xml(sweep.policy), escape_xml(row.baseline),
        compared_at_equal_averages(row) ? "" : " (the same at every budget)", scope_name(row.scope),
        test.n, with_deviation(test.policy), with_deviation(test.baseline),
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
    if (row.by_time) {
      rows +=
          fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{:.3f}</td><td>{:.3f}</td></tr>\n",
                      scope_name(row.scope), row.points, percent(row.share[0]), row.mean_error[0],
                      row.largest_error[0]);
      continue;
    }
    rows += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
        "<td>{:.3f} / {:.3f} / {:.3f}</td><td>{:.3f} / {:.3f} / {:.3f}</td></tr>\n",
        scope_name(row.scope), row.points, percent(row.all_axes_share), percent(row.share[0]),
        percent(row.share[1]), percent(row.share[2]), row.mean_error[0], row.mean_error[1],
        row.mean_error[2], row.largest_error[0], row.largest_error[1], row.largest_error[2]);
  }
  if (sweep.by_time)
    return fmt::format(
        "<div class=\"scroll\"><table><caption>Requests met within {} of the dense time</caption>\n"
        "<tr><th>Requests</th><th>Number</th><th>Met</th><th>Mean error</th><th>Largest</th></tr>\n"
        "{}</table></div>\n",
        Adherence::tolerance, rows);
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
  if (!row || !compared_at_equal_averages(*row)) return {};
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

}  // namespace sol
