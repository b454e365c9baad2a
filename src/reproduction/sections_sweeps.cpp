// Sections 1 to 4 and 8: what the sweeps over budgets show.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>

#include "base/fail.h"
#include "evaluation/named_policy.h"
#include "evaluation/report_page.h"
#include "evaluation/svg.h"
#include "evaluation/sweep_plots.h"
#include "evaluation/sweep_tables.h"
#include "reproduction/experiment_json.h"
#include "reproduction/jobs.h"
#include "reproduction/paper_figures.h"
#include "reproduction/sections.h"

namespace sol {
namespace {

constexpr const char* net_label = "net keep-rate (mean of the realised averages)";

// "fixed", and "fixed@1000", other draws of it.
bool is_fixed_draw(const std::string& baseline) {
  return baseline == "fixed" || baseline.starts_with("fixed@");
}

// Those of section 4.
bool is_other_policy(const std::string& baseline) {
  return !is_fixed_draw(baseline) && baseline != elsewhere_baseline;
}

// With fixed and the policies of section 4 alone.
Sweep with_other_policies(Sweep sweep) {
  for (size_t b = sweep.baselines.size(); b-- > 1;) {
    if (is_other_policy(sweep.baselines[b])) continue;
    const auto at = static_cast<std::ptrdiff_t>(b);
    sweep.baselines.erase(sweep.baselines.begin() + at);
    for (SweepPoint& point : sweep.points)
      for (std::vector<Outcome>* outcomes : {&point.realised, &point.requested_budget})
        if (b < outcomes->size()) outcomes->erase(outcomes->begin() + at);
  }
  return sweep;
}

enum class Beside { fixed, other_policies };

std::string frontier_of(const std::string& name, const SweepView& view, Beside beside) {
  const auto plot = [&](const Sweep& sweep, size_t most_baselines) {
    return frontier_plot(
        sweep, view.summary, net_keep,
        fmt::format("{}: {} actions, T = {}", name, sweep.space.size(), sweep.protocol.horizon),
        net_label, 480, 400, most_baselines);
  };
  if (beside == Beside::fixed) return plot(view.sweep, 1);
  const Sweep shown = with_other_policies(view.sweep);
  return plot(shown, shown.baselines.size());
}

void draw_frontiers(ReportInput& input, Section& section, const StudyFamily& family,
                    const std::vector<std::string>& controllers, Beside beside) {
  std::vector<std::string> plots;
  for (const std::string& name : controllers) {
    const SweepView* view = input.sweep(family, name);
    if (view) plots.push_back(frontier_of(name, *view, beside));
  }
  if (!plots.empty()) section.heading(family.title);
  section.draw(plots);
}

std::vector<FigureTable::Column> comparison_columns() {
  return {{"family", "Levels"},
          {"controller", "Controller"},
          {"axes", "Chooses"},
          {"baseline", "Baseline"},
          {"baseline_at", "at averages"},
          {"budgets", "Budgets"},
          {"blocks", "Blocks"},
          {"policy_perplexity", "Policy"},
          {"policy_deviation", "±"},
          {"baseline_perplexity", "Baseline"},
          {"baseline_deviation", "±"},
          {"difference", "Difference"},
          {"difference_deviation", "±"},
          {"interval_low", "95 % from"},
          {"interval_high", "to"},
          {"relative", "Relative"},
          {"p", "p"},
          {"win_rate", "Wins"},
          {"paper_relative", "Paper"},
          {"paper_win_rate", "Paper, wins"}};
}

void add_comparison(FigureTable& table, const StudyFamily& family, const std::string& controller,
                    const Sweep& sweep, const Comparison& row, const PaperComparison* paper) {
  const auto blocks = static_cast<int64_t>(sweep.blocks.size());
  const PairedTest& test = row.test;
  const Figure none{"", nullptr};
  table.add({family.name,
             controller,
             levels_in_words(sweep.space),
             row.baseline,
             std::string(to_string(row.matching)),
             count(test.n),
             count(blocks),
             number(test.policy.mean),
             number(test.policy.deviation),
             number(test.baseline.mean),
             number(test.baseline.deviation),
             signed_figure(test.difference.mean),
             number(test.difference.deviation, 3),
             signed_figure(row.interval.low),
             signed_figure(row.interval.high),
             signed_percent(test.relative()),
             {p_value(test.p), std::isfinite(test.p) ? Json(test.p) : Json(nullptr)},
             share_of(test.win_rate),
             paper ? signed_percent(paper->relative) : none,
             paper ? share_of(paper->win_rate) : none});
}

void show_paired(ReportInput& input, Section& section, Matching matching, Scope scope,
                 const char* name, const std::string& caption) {
  FigureTable table(name, caption, comparison_columns());
  for (const StudyFamily& family : input.study().families)
    for (const std::string& controller : swept_controllers(input.study())) {
      const SweepView* view = input.sweep(family, controller);
      if (!view) continue;
      const PaperComparison* paper = matching == Matching::requested
                                         ? paper_comparison(controller, view->sweep.space)
                                         : nullptr;
      for (const Comparison& row : view->summary.comparisons)
        if (row.matching == matching && row.scope == scope && is_fixed_draw(row.baseline))
          add_comparison(table, family, controller, view->sweep, row, paper);
    }
  section.show(std::move(table));
}

// What each policy read in the text; nothing where the study did not ask.
void show_elsewhere(ReportInput& input, Section& section) {
  FigureTable table("elsewhere", "Policy against its own schedules, each played on another text",
                    comparison_columns());
  for (const StudyFamily& family : input.study().families)
    for (const std::string& name : input.study().experiments.spaces.controllers) {
      const SweepView* view = input.sweep(family, name);
      const Comparison* row =
          view ? view->summary.find(elsewhere_baseline, Matching::realised, Scope::inside)
               : nullptr;
      if (row) add_comparison(table, family, name, view->sweep, *row, nullptr);
    }
  section.show(std::move(table));
}

void show_seeds(ReportInput& input, Section& section) {
  const auto& seeds = input.study().experiments.seeds;
  FigureTable table("seeds", "One controller trained with several seeds, against fixed",
                    {{"family", "Levels"},
                     {"controller", "Controller"},
                     {"policy_perplexity", "Policy"},
                     {"baseline_perplexity", "Fixed"},
                     {"difference", "Difference"},
                     {"interval_low", "95 % from"},
                     {"interval_high", "to"},
                     {"relative", "Relative"},
                     {"win_rate", "Wins"}});
  FigureTable spread("seeds-spread", "Mean and standard deviation over the seeds",
                     {{"family", "Levels"},
                      {"controller", "Controller"},
                      {"seeds", "Seeds"},
                      {"difference", "Difference, mean"},
                      {"difference_deviation", "deviation"},
                      {"relative", "Relative, mean"},
                      {"relative_deviation", "deviation"}});
  for (const StudyFamily& family : input.study().families) {
    if (!trained_again(family, seeds.controller) || seeds.seeds.empty()) continue;
    std::vector<std::string> names{seeds.controller};
    for (const uint64_t seed : seeds.seeds) names.push_back(reseeded(seeds.controller, seed));
    std::vector<double> differences, relatives;
    for (const std::string& name : names) {
      const SweepView* view = input.sweep(sweep_job(family.name, name));
      if (!view) continue;
      const Comparison* row = view->summary.find("fixed", Matching::realised, Scope::inside);
      if (!row) continue;
      const PairedTest& test = row->test;
      table.add({family.name, name, number(test.policy.mean), number(test.baseline.mean),
                 signed_figure(test.difference.mean), signed_figure(row->interval.low),
                 signed_figure(row->interval.high), signed_percent(test.relative()),
                 share_of(test.win_rate)});
      differences.push_back(test.difference.mean);
      relatives.push_back(test.relative());
    }
    if (differences.size() < 2) continue;
    const MeanDeviation difference = mean_deviation(differences);
    const MeanDeviation relative = mean_deviation(relatives);
    spread.add({family.name, seeds.controller, count(static_cast<int64_t>(differences.size())),
                signed_figure(difference.mean), number(difference.deviation, 3),
                signed_percent(relative.mean), share_of(relative.deviation)});
  }
  section.show(std::move(table));
  section.show(std::move(spread));
}

// Requested against realised averages of a controller's axes.
void draw_adherence(Section& section, const std::string& controller, const Sweep& sweep) {
  std::vector<std::string> plots;
  for (const Axis axis : all_axes)
    if (sweep.space.on(axis)) plots.push_back(adherence_plot(sweep, axis));
  section.heading(fmt::format("{}: {}", controller, levels_in_words(sweep.space)), 4);
  section.draw(plots);
}

// A baseline at the averages that the policy realised: means over the budgets, and shares of them.
struct BaselineFigures {
  double policy = 0, baseline = 0, fixed = 0;  // perplexities
  double policy_spent = 0, spent = 0;          // net keep-rates
  double wins = 0, beats_fixed = 0;            // the policy's, the baseline's
};

BaselineFigures baseline_figures(const Sweep& sweep, size_t baseline) {
  BaselineFigures mean;
  const auto points = points_of(sweep, Scope::inside);
  const auto n = static_cast<double>(points.size());
  for (const SweepPoint* point : points) {
    const Outcome &one = point->realised.at(baseline), &fixed = point->realised.at(0);
    mean.policy += point->policy.perplexity / n;
    mean.baseline += one.perplexity / n;
    mean.fixed += fixed.perplexity / n;
    mean.policy_spent += point->policy.net_keep / n;
    mean.spent += one.net_keep / n;
    mean.wins += point->policy.perplexity < one.perplexity ? 1 : 0;
    mean.beats_fixed += one.perplexity < fixed.perplexity ? 1 : 0;
  }
  mean.wins /= n;
  mean.beats_fixed /= n;
  return mean;
}

// Nothing where its job has not finished. Throws Error where it is of another sweep.
std::optional<BesideHeuristics> beside_heuristics(ReportInput& input, const std::string& job,
                                                  const Sweep& sweep) {
  const std::optional<Json> found = input.find(job);
  if (!found) return std::nullopt;
  const std::string where = input.results().where(job);
  BesideHeuristics beside = beside_heuristics_from_json(*found, where);
  for (const std::string& name : sweep.baselines)
    if (is_heuristic(name) && beside[name].size() != sweep.points.size())
      fail("{}: {} has {} points, its sweep {}", where, name, beside[name].size(),
           sweep.points.size());
  return beside;
}

// `beside`: of fixed at the heuristic's own averages, so that what it spends less than the policy
// does not count; point by point of the sweep.
std::vector<Figure> beside_fixed(const Sweep& sweep, size_t baseline,
                                 const std::vector<double>& beside) {
  double fixed = 0, beats = 0, n = 0;
  for (size_t i = 0; i < sweep.points.size(); ++i) {
    const SweepPoint& point = sweep.points[i];
    if (!point.inside) continue;
    ++n;
    fixed += beside[i];
    beats += point.realised.at(baseline).perplexity < beside[i] ? 1 : 0;
  }
  fixed /= n;
  const BaselineFigures at_policy = baseline_figures(sweep, baseline);
  return {number(at_policy.baseline), number(fixed), signed_percent(at_policy.baseline / fixed - 1),
          share_of(beats / n), signed_percent(at_policy.policy / at_policy.fixed - 1)};
}

void show_heuristics_beside_fixed(ReportInput& input, Section& section) {
  FigureTable table("heuristics-fixed",
                    "Each of them, and the policy, against fixed at the averages that it realised",
                    {{"family", "Levels"},
                     {"controller", "Controller"},
                     {"baseline", "Baseline"},
                     {"baseline_perplexity", "Baseline"},
                     {"fixed_perplexity", "Fixed, at its averages"},
                     {"relative", "Baseline to fixed"},
                     {"beats_fixed", "Beats fixed"},
                     {"policy_relative", "Policy to fixed"}});
  for (const StudyFamily& family : input.study().families)
    for (const std::string& name : input.study().experiments.spaces.controllers) {
      const SweepView* view = input.sweep(family, name);
      if (!view || std::ranges::none_of(view->sweep.baselines, is_heuristic)) continue;
      const auto beside = beside_heuristics(input, heuristics_job(family.name, name), view->sweep);
      for (size_t b = 0; beside && b < view->sweep.baselines.size(); ++b) {
        const std::string& baseline = view->sweep.baselines[b];
        if (!is_heuristic(baseline)) continue;
        std::vector<Figure> row{family.name, name, baseline};
        std::ranges::copy(beside_fixed(view->sweep, b, beside->at(baseline)),
                          std::back_inserter(row));
        table.add(std::move(row));
      }
    }
  section.show(std::move(table));
}

// By how much a baseline spends less than the policy at most, and in which row of the table.
struct Unspent {
  double most = 0;
  std::string where;

  void add(double difference, const std::string& row) {
    if (!(difference > most)) return;
    most = difference;
    where = row;
  }
};

void say_unspent(Section& section, const Unspent& unspent) {
  constexpr double visible = 0.0005;  // of the figures in the table
  if (unspent.most < visible) return;
  section.verdict(fmt::format(
      "The comparison is not at equal spending: the policy's mean net keep-rate lies up to {:.3f} "
      "above the baseline's ({}). Spending more lowers perplexity by itself, so part of its wins "
      "may come from that.",
      unspent.most, unspent.where));
}

}  // namespace

Section spaces_section(ReportInput& input) {
  Section section{"spaces", "Action spaces", {}, {}};
  const auto& spaces = input.study().experiments.spaces;
  for (const StudyFamily& family : input.study().families)
    draw_frontiers(input, section, family, spaces.controllers, Beside::fixed);
  input.note_missing(section);
  section.html +=
      "<p class=\"note\">A faint mark is one requested budget; lines join the points that no other "
      "of the same policy beats on both counts. Fixed is asked for the averages that the policy "
      "realised.</p>\n";
  return section;
}

Section statistics_section(ReportInput& input) {
  Section section{"statistics", "Paired comparisons", {}, {}};
  show_paired(input, section, Matching::realised, Scope::inside, "paired-realised",
              "Policy against fixed at the policy's realised averages (the verdict)");
  show_paired(input, section, Matching::realised, Scope::frugal, "paired-frugal",
              fmt::format("The same, where the policy spent a net keep-rate of {} at most",
                          frugal_net_keep));
  show_paired(input, section, Matching::requested, Scope::inside, "paired-requested",
              "Policy against fixed at the requested budgets (as in the paper's table)");
  show_elsewhere(input, section);
  show_seeds(input, section);
  input.note_missing(section);
  section.note(
      "Means over budgets, ± their standard deviation. Difference: policy minus baseline, negative "
      "is better. The interval of the mean difference is by a bootstrap over blocks of text; p is "
      "of a one-sided paired t-test over budgets, which share their text, so it claims too much. "
      "Paper: gains and win rates of its table at requested budgets, on Llama-3.2-1B unless the "
      "controller bears another model's name. fixed@N: another draw of fixed.");
  return section;
}

Section adherence_section(ReportInput& input) {
  Section section{"adherence", "Requested and realised budgets", {}, {}};
  FigureTable table(
      "adherence",
      fmt::format("Requests met within {} of the requested average", Adherence::tolerance),
      {{"family", "Levels"},
       {"controller", "Controller"},
       {"axes", "Chooses"},
       {"budgets", "Budgets"},
       {"all_axes", "All axes"},
       {"kappa", "κ"},
       {"rho", "ρ"},
       {"eta", "η"},
       {"mean_error_kappa", "Mean error κ"},
       {"mean_error_rho", "ρ"},
       {"mean_error_eta", "η"}});
  for (const StudyFamily& family : input.study().families) {
    bool headed = false;
    for (const std::string& name : swept_controllers(input.study())) {
      const SweepView* view = input.sweep(family, name);
      if (!view) continue;
      for (const Adherence& row : view->summary.adherence)
        if (row.scope == Scope::inside)
          table.add({family.name, name, levels_in_words(view->sweep.space), count(row.points),
                     share_of(row.all_axes_share), share_of(row.share[0]), share_of(row.share[1]),
                     share_of(row.share[2]), number(row.mean_error[0], 3),
                     number(row.mean_error[1], 3), number(row.mean_error[2], 3)});
      const auto& spaces = input.study().experiments.spaces.controllers;
      if (std::ranges::find(spaces, name) == spaces.end()) continue;
      if (!headed) section.heading(family.title);
      headed = true;
      draw_adherence(section, name, view->sweep);
    }
  }
  section.show(std::move(table));
  input.note_missing(section);
  return section;
}

Section heuristics_section(ReportInput& input) {
  Section section{"heuristics", "Hand-made policies: EMC and DAC", {}, {}};
  const auto& spaces = input.study().experiments.spaces;
  if (std::ranges::none_of(spaces.baselines, is_other_policy)) {
    section.note("The study compares with fixed budgets only.");
    return section;
  }
  FigureTable table("heuristics",
                    "Each of them and fixed, at the averages that the policy realised",
                    {{"family", "Levels"},
                     {"controller", "Controller"},
                     {"baseline", "Baseline"},
                     {"policy_perplexity", "Policy"},
                     {"baseline_perplexity", "Baseline"},
                     {"fixed_perplexity", "Fixed"},
                     {"baseline_net_keep", "Net, baseline"},
                     {"policy_net_keep", "Net, policy"},
                     {"policy_wins", "Policy wins"},
                     {"baseline_beats_fixed", "Baseline beats fixed"}});
  Unspent unspent;
  for (const StudyFamily& family : input.study().families) {
    draw_frontiers(input, section, family, spaces.controllers, Beside::other_policies);
    for (const std::string& name : spaces.controllers) {
      const SweepView* view = input.sweep(family, name);
      if (!view) continue;
      for (size_t b = 1; b < view->sweep.baselines.size(); ++b) {
        const std::string& baseline = view->sweep.baselines[b];
        if (!is_other_policy(baseline)) continue;
        const BaselineFigures mean = baseline_figures(view->sweep, b);
        table.add({family.name, name, baseline, number(mean.policy), number(mean.baseline),
                   number(mean.fixed), number(mean.spent, 3), number(mean.policy_spent, 3),
                   share_of(mean.wins), share_of(mean.beats_fixed)});
        unspent.add(mean.policy_spent - mean.spent,
                    fmt::format("{}, {}, {}", family.name, name, baseline));
      }
    }
  }
  section.show(std::move(table));
  say_unspent(section, unspent);
  show_heuristics_beside_fixed(input, section);
  input.note_missing(section);
  if (std::ranges::none_of(spaces.baselines, is_heuristic)) return section;
  section.note(
      "EMC spends after steps of high entropy, DAC after steps that turned the hidden state far; "
      "both steer towards the budget at every step and never exceed it, so that they spend less "
      "than they may (net keep-rates in the table).");
  return section;
}

Section horizons_section(ReportInput& input) {
  Section section{"horizons", "Length of an episode", {}, {}};
  for (const StudyFamily& family : input.study().families)
    draw_frontiers(input, section, family, input.study().experiments.horizons.controllers,
                   Beside::fixed);
  input.note_missing(section);
  section.note(
      "Controllers of one action space for episodes of T steps, after each of "
      "which the cache is refreshed. Perplexities of different T are of different tokens.");
  return section;
}

}  // namespace sol
