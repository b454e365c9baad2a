#include "reproduction/report.h"

#include <fmt/format.h>

#include <set>

#include "base/file_io.h"
#include "base/output_file.h"
#include "evaluation/report_page.h"
#include "evaluation/svg.h"
#include "reproduction/experiment_json.h"
#include "reproduction/jobs.h"
#include "reproduction/sections.h"

namespace sol {
namespace {

constexpr int bootstrap_draws = 2000;

constexpr const char* legend =
    "<p class=\"note\">κ: share of the cached keys attended to; ρ: share of the MLP's input "
    "channels "
    "used; η: activation bits / 16. Net keep-rate: the mean of their realised averages over the "
    "axes "
    "in use. Fixed: the two neighbouring levels of each axis mixed evenly, without looking at the "
    "text. "
    "EMC, DAC: hand-made policies led by entropy and by drift of the hidden state. Dense: nothing "
    "dropped.</p>\n";

std::vector<Section> make_sections(ReportInput& input,
                                   const std::vector<std::filesystem::path>& beside) {
  return {spaces_section(input),          statistics_section(input), adherence_section(input),
          heuristics_section(input),      landscape_section(input),  search_section(input),
          single_section(input),          horizons_section(input),   pollution_section(input),
          scaling_section(input, beside), training_section(input),   ours_section(input)};
}

std::string contents(const std::vector<Section>& sections) {
  std::string html = "<p class=\"note\">";
  for (size_t i = 0; i < sections.size(); ++i)
    html += fmt::format("{}<a href=\"#{}\">{}. {}</a>", i == 0 ? "" : " &middot; ", sections[i].id,
                        i + 1, escape_xml(sections[i].title));
  return html + "</p>\n";
}

// What ran, what did not, and by which commits: a study may span several.
std::string state(const Study& study, const StudyResults& results) {
  size_t done = 0, all = 0;
  double seconds = 0;
  for (const Job& job : plan_jobs(study)) {
    ++all;
    if (!results.has(job.name)) continue;
    ++done;
    seconds += results.seconds(job.name);
  }
  std::string html = fmt::format("<p>{} of {} jobs have finished, in {:.1f} hours.</p>\n", done,
                                 all, seconds / 3600);
  if (study.quick)
    html +=
        "<p class=\"verdict\"><strong>A quick run: a few blocks, hardly trained controllers. It "
        "shows that everything runs; its figures mean nothing.</strong></p>\n";
  return html;
}

std::string settings(const Study& study, const StudyResults& results) {
  const Json& identity = results.identity();
  const auto text = [&](const char* field) {
    return json_get_or<std::string>(identity, field, "", "study.json");
  };
  std::string rows = settings_row("Model", text("model"));
  rows += settings_row("Model fingerprint", text("model_fingerprint"));
  rows +=
      settings_row("Arithmetic", fmt::format("{}, {} weights", text("precision"), text("weights")));
  const auto files = [](const StudyText& one) {
    std::string names;
    for (const auto& file : one.files)
      names += (names.empty() ? "" : ", ") + file.filename().string();
    return names;
  };
  rows += settings_row("Training text", files(study.train));
  rows += settings_row("Validation text", files(study.valid));
  rows += settings_row("Test text", files(study.test));
  rows += settings_row(
      "Protocol",
      fmt::format(
          "{} tokens of dense context, up to {} test blocks, up to {} validation blocks, at "
          "least {} budgets",
          study.context, study.blocks, study.validation_blocks, study.budgets));
  rows += settings_row("Seed", std::to_string(study.seed));
  rows += settings_row("Made by", results.runs());
  return "<h2 id=\"settings\">Settings</h2>\n<table class=\"settings\">\n" + rows + "</table>\n";
}

}  // namespace

const SweepView* ReportInput::sweep(const std::string& job) {
  const auto found = sweeps_.find(job);
  if (found != sweeps_.end()) return found->second.get();
  const auto json = find(job);
  if (!json) return nullptr;
  Sweep sweep = sweep_from_json(*json, results_.where(job));
  SweepSummary summary = summarise(sweep, study_.seed, bootstrap_draws);
  auto view = std::make_unique<SweepView>(SweepView{std::move(sweep), std::move(summary)});
  return sweeps_.emplace(job, std::move(view)).first->second.get();
}

std::optional<std::vector<SearchPoint>> ReportInput::search(const std::string& job) {
  const auto json = find(job);
  if (!json) return std::nullopt;
  return search_from_json(*json, results_.where(job));
}

std::optional<Json> ReportInput::find(const std::string& job) {
  std::optional<Json> json = results_.find(job);
  if (!json) missing_.push_back(job);
  return json;
}

std::string ReportInput::missing() {
  const std::set<std::string> names(missing_.begin(), missing_.end());
  missing_.clear();
  if (names.empty()) return {};
  std::string waiting, html;
  for (const std::string& name : names) {
    if (const auto reason = results_.failure(name))
      html += fmt::format("<p class=\"note\"><strong>Failed:</strong> {}: {}</p>\n",
                          escape_xml(name), escape_xml(*reason));
    else
      waiting += (waiting.empty() ? "" : ", ") + name;
  }
  if (!waiting.empty())
    html += fmt::format("<p class=\"note\"><strong>Not run yet:</strong> {}.</p>\n",
                        escape_xml(waiting));
  return html;
}

void write_study_report(const Study& study, const StudyResults& results,
                        const std::vector<std::filesystem::path>& beside) {
  ReportInput input(study, results);
  const std::vector<Section> sections = make_sections(input, beside);
  std::string body = state(study, results) + legend + contents(sections);
  std::string lines;
  ensure_writable_directory(results.dir() / "csv");
  for (size_t i = 0; i < sections.size(); ++i) {
    const Section& section = sections[i];
    body += fmt::format("<h2 id=\"{}\">{}. {}</h2>\n{}", section.id, i + 1,
                        escape_xml(section.title), section.html);
    for (const FigureTable& table : section.tables) {
      write_file_atomically(results.dir() / "csv" / (table.name() + ".csv"), table.csv());
      lines += table.jsonl();
    }
  }
  body += settings(study, results);
  write_file_atomically(results.dir() / "figures.jsonl", lines);
  write_file_atomically(results.dir() / "report.html",
                        html_page(fmt::format("Study: {}", study.name), body));
}

void require_replaceable_report(const std::filesystem::path& dir) {
  require_replaceable(dir / "report.html", {"a study's report", html_page_beginning("Study: ")});
  require_replaceable(dir / "figures.jsonl", {"a study's figures", "{\"table\":"});
}

}  // namespace sol
