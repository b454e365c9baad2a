#include "evaluation/training_report.h"

#include <fmt/format.h>

#include <cmath>

#include "evaluation/report_page.h"
#include "evaluation/svg.h"
#include "evaluation/training_plots.h"

namespace sol {
namespace {

constexpr const char* title = "Training";

// The value at a path of keys as text; empty where there is none.
std::string text_at(const Json& json, std::initializer_list<const char*> path) {
  const Json* at = &json;
  for (const char* key : path) {
    if (!at->is_object() || !at->contains(key)) return {};
    at = &(*at)[key];
  }
  if (at->is_string()) return at->get<std::string>();
  return at->is_null() ? std::string() : to_text(*at);
}

double number_at(const Json& json, std::initializer_list<const char*> path) {
  const std::string text = text_at(json, path);
  return text.empty() ? std::nan("") : std::strtod(text.c_str(), nullptr);
}

// "1.23 M".
std::string large_number(double value) {
  if (value >= 1e9) return fmt::format("{:.2f} G", value * 1e-9);
  if (value >= 1e6) return fmt::format("{:.2f} M", value * 1e-6);
  return fmt::format("{:.0f}", value);
}

std::string duration(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.1f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

struct Totals {
  double decoded = 0, seconds = 0;
};

Totals totals(const RunHistory& history) {
  Totals sum;
  for (const CollectionMetrics& m : history.collections) {
    sum.decoded += static_cast<double>(m.steps);
    if (std::isfinite(m.seconds)) sum.seconds += m.seconds;
  }
  return sum;
}

// Budgets are averages of the axes, or one of the time.
std::string gaps(const CollectionMetrics& m) {
  if (m.time_gap) return fmt::format("time {:.3f}", *m.time_gap);
  return fmt::format("{:.3f}, {:.3f}, {:.3f}", m.gap[0], m.gap[1], m.gap[2]);
}

std::string overview(const std::vector<ReportedRun>& runs) {
  std::string html =
      "<div class=\"scroll\"><table><tr><th>Run</th><th>Updates</th><th>Wall time</th>"
      "<th>Prefix tokens</th><th>Decoded tokens</th><th>Reward, last</th><th>Perplexity, last</th>"
      "<th>Gaps κ, ρ, η, last</th></tr>\n";
  for (const ReportedRun& run : runs) {
    const CollectionMetrics& last = run.history.collections.back();
    const Totals sum = totals(run.history);
    const double context = number_at(run.history.record, {"config", "rollout", "context"});
    const double prefix = context * static_cast<double>(last.position);
    html += fmt::format(
        "<tr><td>{}</td><td>{} of {}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.3f}</td>"
        "<td>{:.2f}</td><td>{}</td></tr>\n",
        escape_xml(run.name), last.update, last.updates, duration(sum.seconds),
        std::isfinite(prefix) ? large_number(prefix) : "n/a", large_number(sum.decoded),
        last.reward, last.perplexity, gaps(last));
  }
  return html + "</table></div>\n";
}

std::string settings(const RunHistory& history) {
  const Json& record = history.record;
  if (!record.is_object() || !record.contains("config") || !record.contains("run"))
    return "<p class=\"note\">The run has left no record of its settings yet.</p>\n";
  const auto config = [&](const char* section, const char* key) {
    return text_at(record, {"config", section, key});
  };
  const auto run = [&](const char* key) { return text_at(record, {"run", key}); };
  std::string rows = settings_row("Configuration", text_at(record, {"config", "name"}));
  rows += settings_row("Model",
                       fmt::format("{}, fingerprint {}", run("model"), run("model_fingerprint")));
  rows += settings_row("Data", text_at(record, {"blocks"}) + " blocks");
  if (record.contains("processes"))
    rows += settings_row("Processes", text_at(record, {"processes"}));
  rows += settings_row("Rollouts",
                       fmt::format("context {}, horizon {}, {} schedules of each of {} inputs; "
                                   "collections of {} steps",
                                   config("rollout", "context"), config("rollout", "horizon"),
                                   config("rollout", "schedules"), config("rollout", "batch"),
                                   config("optimisation", "target_steps")));
  rows +=
      settings_row("Levels", fmt::format("κ {}; ρ {}; bits {}", config("actions", "keep"),
                                         config("actions", "prune"), config("actions", "quant")));
  rows += settings_row("Seed", run("seed"));
  rows += settings_row("Program", fmt::format("sol {}, commit {}", run("version"), run("commit")));
  rows += settings_row("Machine",
                       fmt::format("{}; instruction set {}, {}, {} weights, {} threads", run("cpu"),
                                   run("isa"), run("precision"), run("weights"), run("threads")));
  if (const std::string command = run("command"); !command.empty())
    rows += fmt::format("<tr><td>Command</td><td><code>{}</code></td></tr>\n", escape_xml(command));
  return "<table class=\"settings\">\n" + rows + "</table>\n";
}

std::string in_rows(const std::vector<std::string>& plots) {
  std::string html = "<div class=\"row\">\n";
  for (const std::string& plot : plots) html += plot;
  return html + "</div>\n";
}

}  // namespace

std::string training_report(const std::vector<ReportedRun>& runs) {
  std::string body =
      fmt::format("<p class=\"sub\">{}</p>\n",
                  runs.size() > 1 ? fmt::format("{} runs", runs.size()) : escape_xml(runs[0].name));
  body += overview(runs);
  body += "<h2>Curves</h2>\n" + in_rows(training_curves(runs));
  body +=
      "<p class=\"note\">Schedules are sampled for budgets drawn anew, so these perplexities are "
      "not those of evaluation.</p>\n";
  for (const ReportedRun& run : runs) {
    body += fmt::format("<h2>{}</h2>\n", escape_xml(run.name));
    std::vector<std::string> plots{phases_plot(run.history)};
    const auto actions = action_plots(run.history);
    plots.insert(plots.end(), actions.begin(), actions.end());
    body += in_rows(plots);
    body += settings(run.history);
  }
  return html_page(title, body);
}

OutputKind training_report_kind() {
  return {"a page of `sol report`", html_page_beginning(title)};
}

}  // namespace sol
