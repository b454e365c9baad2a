// Section 12: what the paper does not show.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "evaluation/report_page.h"
#include "evaluation/svg.h"
#include "evaluation/sweep_plots.h"
#include "reproduction/experiment_json.h"
#include "reproduction/jobs.h"
#include "reproduction/sections.h"

namespace sol {
namespace {

constexpr std::array<Marker, 3> markers{Marker::circle, Marker::square, Marker::triangle};

std::string behaviour_plot(const std::vector<StepGroup>& groups, const std::string& title,
                           const std::string& x_label, bool names) {
  Plot plot{.title = title,
            .x = {.label = x_label},
            .y = {.label = "mean over the steps", .low = 0.0, .high = 1.0},
            .width = names ? 640 : 470,
            .height = 340};
  const std::array<std::pair<const char*, double (*)(const StepGroup&)>, 4> lines{
      {{"net keep-rate", [](const StepGroup& g) { return g.net_keep; }},
       {"κ", [](const StepGroup& g) { return static_cast<double>(g.spent.kappa); }},
       {"ρ", [](const StepGroup& g) { return static_cast<double>(g.spent.rho); }},
       {"bits / 16", [](const StepGroup& g) { return static_cast<double>(g.spent.eta); }}}};
  for (size_t i = 0; i < lines.size(); ++i) {
    PlotSeries series{.label = lines[i].first,
                      .colour = i == 0 ? policy_colour : baseline_colour(i - 1),
                      .marker = markers[i % 3],
                      .size = i == 0 ? 4.5 : 3,
                      .line = !names,
                      .dashed = i > 0};
    for (size_t g = 0; g < groups.size(); ++g)
      series.points.push_back({static_cast<double>(g + 1), lines[i].second(groups[g]),
                               fmt::format("{}: {} steps", groups[g].label, groups[g].steps)});
    plot.series.push_back(std::move(series));
  }
  for (size_t g = 0; g < groups.size(); ++g)
    plot.x.ticks.push_back({static_cast<double>(g + 1), groups[g].label});
  return render_svg(plot);
}

void add_groups(FigureTable& table, const std::string& family, const char* grouping,
                const std::vector<StepGroup>& groups) {
  for (const StepGroup& group : groups)
    table.add({family, grouping, group.label, count(group.steps), number(group.spent.kappa, 3),
               number(group.spent.rho, 3), number(16.0 * group.spent.eta, 2),
               number(group.net_keep, 3), number(group.surprisal, 3), number(group.increase, 3)});
}

void show_behaviour(ReportInput& input, Section& section) {
  FigureTable table("behaviour", "What the policy spends on which steps",
                    {{"family", "Levels"},
                     {"grouping", "Grouped by"},
                     {"group", "Group"},
                     {"steps", "Steps"},
                     {"kappa", "κ"},
                     {"rho", "ρ"},
                     {"bits", "Bits"},
                     {"net_keep", "Net"},
                     {"surprisal", "Surprisal, dense (nats)"},
                     {"increase", "Increase (nats)"}});
  for (const StudyFamily& family : input.study().families) {
    const std::string& name = input.study().experiments.behaviour.controller;
    if (!family.find(name)) continue;
    const std::string job = behaviour_job(family.name, name);
    const auto json = input.find(job);
    if (!json) continue;
    const Behaviour behaviour = behaviour_from_json(*json, input.results().where(job));
    section.heading(fmt::format("What {} has learned: {}", name, family.title));
    section.verdict(fmt::format(
        "{}, {}: Spearman's rank correlation of a step's net keep-rate with the surprisal of its "
        "target is {}, with that of the current token {}.",
        family.title, name, signed_number(behaviour.rank_correlation, 2),
        signed_number(behaviour.rank_correlation_previous, 2)));
    section.draw(
        {behaviour_plot(behaviour.by_surprisal, "By surprisal of the target",
                        "tenth of the steps, least surprising first", false),
         behaviour_plot(behaviour.by_previous, "By surprisal of the current token",
                        "tenth of the steps, least surprising first", false),
         behaviour_plot(behaviour.by_step, "By position in the episode", "step t", false),
         behaviour_plot(behaviour.by_kind, "By kind of the current token", "kind of token", true)});
    add_groups(table, family.name, "target's surprisal", behaviour.by_surprisal);
    add_groups(table, family.name, "current token's surprisal", behaviour.by_previous);
    add_groups(table, family.name, "step", behaviour.by_step);
    add_groups(table, family.name, "kind", behaviour.by_kind);
  }
  // On the page the plots stand for it.
  section.markdown += table.markdown();
  if (!table.empty()) section.tables.push_back(std::move(table));
}

void show_time(ReportInput& input, Section& section) {
  const std::string& name = input.study().experiments.timed.controller;
  std::vector<std::string> plots;
  FigureTable table("time", "Quality against measured time, one sequence at a time",
                    {{"family", "Levels"},
                     {"controller", "Controller"},
                     {"policy", "Policy"},
                     {"net_keep", "Net"},
                     {"perplexity", "Perplexity"},
                     {"milliseconds", "ms per token"}});
  for (const StudyFamily& family : input.study().families) {
    const SweepView* view = family.find(name) ? input.sweep(timed_job(family.name, name)) : nullptr;
    if (!view) continue;
    plots.push_back(frontier_plot(view->sweep, view->summary, milliseconds,
                                  fmt::format("{}: {}", name, family.title),
                                  "milliseconds per token, policy and refresh included", 480, 400));
    const auto add = [&](const std::string& policy, const Outcome& outcome) {
      table.add({family.name, name, policy, number(outcome.net_keep, 3), number(outcome.perplexity),
                 number(milliseconds(outcome), 3)});
    };
    add("dense", view->sweep.dense);
    for (const SweepPoint& point : view->sweep.points) {
      add(view->sweep.policy, point.policy);
      add("fixed", point.realised.at(0));
    }
  }
  if (plots.empty()) return;
  section.heading("Quality against measured time");
  section.draw(plots);
  section.show(std::move(table));
}

void show_free(ReportInput& input, Section& section) {
  const auto& settings = input.study().experiments.free;
  FigureTable table("free",
                    fmt::format("Greedy text of {} tokens after {} of the test text",
                                settings.tokens, settings.prompt_tokens),
                    {{"family", "Levels"},
                     {"policy", "Policy"},
                     {"net_keep", "Net"},
                     {"perplexity", "Perplexity, dense model"},
                     {"repetition", "Repeated 4-grams"},
                     {"agreement", "As dense"},
                     {"first_difference", "Tokens before the first difference"}});
  for (const StudyFamily& family : input.study().families) {
    if (!family.find(settings.controller)) continue;
    const std::string job = free_job(family.name, settings.controller);
    const auto json = input.find(job);
    if (!json) continue;
    const FreeGeneration found = free_generation_from_json(*json, input.results().where(job));
    const auto add = [&](const char* policy, const FreeOutcome& outcome) {
      table.add({family.name, policy, number(outcome.net_keep, 3), number(outcome.perplexity),
                 share_of(outcome.repetition), share_of(outcome.agreement),
                 number(outcome.first_difference, 1)});
    };
    add("dense", found.dense);
    for (const FreePair& pair : found.pairs) {
      add("learned", pair.policy);
      add("fixed", pair.fixed);
    }
  }
  section.show(std::move(table));
}

void show_transfer(ReportInput& input, Section& section) {
  const auto& settings = input.study().experiments.transfer;
  FigureTable table("transfer",
                    fmt::format("{} on other text and other contexts, against fixed at realised "
                                "averages",
                                settings.controller),
                    {{"family", "Levels"},
                     {"what", "Text or context"},
                     {"blocks", "Blocks"},
                     {"dense_perplexity", "Dense"},
                     {"policy_perplexity", "Policy"},
                     {"fixed_perplexity", "Fixed"},
                     {"difference", "Difference"},
                     {"interval_low", "95 % from"},
                     {"interval_high", "to"},
                     {"relative", "Relative"},
                     {"win_rate", "Wins"},
                     {"met", "Requests met"}});
  for (const StudyFamily& family : input.study().families) {
    if (!family.find(settings.controller)) continue;
    std::vector<std::pair<std::string, std::string>> whats;  // as jobs call it, as people do
    for (const StudyText& text : settings.texts) whats.emplace_back(text.name, text.label);
    for (const int context : settings.contexts)
      whats.emplace_back(fmt::format("context-{}", context), fmt::format("context of {}", context));
    for (const auto& [what, label] : whats) {
      const SweepView* view = input.sweep(transfer_job(family.name, settings.controller, what));
      const Comparison* row =
          view ? view->summary.find("fixed", Matching::realised, Scope::inside) : nullptr;
      if (!row) continue;
      const double relative = row->test.relative();
      table.add({family.name, label, count(static_cast<int64_t>(view->sweep.blocks.size())),
                 number(view->sweep.dense.perplexity), number(row->test.policy.mean),
                 number(row->test.baseline.mean), signed_figure(row->test.difference.mean),
                 signed_figure(row->interval.low), signed_figure(row->interval.high),
                 signed_percent(relative), share_of(row->test.win_rate),
                 share_of(view->summary.adherence.front().all_axes_share)});
    }
  }
  section.show(std::move(table));
}

}  // namespace

Section ours_section(ReportInput& input) {
  Section section{"ours", "Beyond the paper", {}, {}};
  show_time(input, section);
  show_behaviour(input, section);
  show_free(input, section);
  show_transfer(input, section);
  input.note_missing(section);
  return section;
}

}  // namespace sol
