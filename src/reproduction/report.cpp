#include "reproduction/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/output_file.h"
#include "evaluation/report_page.h"
#include "evaluation/svg.h"
#include "reproduction/experiment_json.h"
#include "reproduction/jobs.h"
#include "reproduction/sections.h"
#include "sol/controller.h"

namespace sol {
namespace {

constexpr int bootstrap_draws = 2000;
constexpr const char* markdown_beginning = "# Study: ";

constexpr const char* legend =
    "κ: share of the cached keys attended to; ρ: share of the MLP's input channels used; η: "
    "activation bits / 16. Net keep-rate: the mean of their realised averages over the axes in "
    "use. Fixed: the two neighbouring levels of each axis mixed evenly, without looking at the "
    "text. EMC, DAC: hand-made policies led by entropy and by drift of the hidden state. Dense: "
    "nothing dropped.";

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

// What ran and what did not.
std::string state(const Study& study, const StudyResults& results) {
  size_t done = 0, all = 0;
  double seconds = 0;
  for (const Job& job : plan_jobs(study)) {
    ++all;
    if (!results.has(job.name)) continue;
    ++done;
    seconds += results.seconds(job.name);
  }
  return fmt::format("{} of {} jobs have finished, in {:.1f} hours.", done, all, seconds / 3600);
}

constexpr const char* quick_run =
    "A quick run: a few blocks, hardly trained controllers. It shows that everything runs; its "
    "figures mean nothing.";

// Model, data, protocol, and by which commits on which machines: a study may span several.
std::vector<std::pair<std::string, std::string>> settings(const Study& study,
                                                          const StudyResults& results) {
  const Json& identity = results.identity();
  const auto text = [&](const char* field) {
    return json_get_or<std::string>(identity, field, "", "study.json");
  };
  // `usual_label` says no more than the row's name.
  const auto files = [](const StudyText& one, const std::string& usual_label) {
    std::string names;
    for (const auto& file : one.files)
      names += (names.empty() ? "" : ", ") + file.filename().string();
    if (names.empty() || one.label == one.name || one.label == usual_label) return names;
    return fmt::format("{} ({})", one.label, names);
  };
  const Study usual{};
  std::string outside_paper;
  if (const auto options = identity.find("outside_paper");
      options != identity.end() && options->is_array())
    for (const Json& option : *options)
      if (option.is_string())
        outside_paper += (outside_paper.empty() ? "" : ", ") + option.get<std::string>();
  const auto shown = [](int blocks) {
    return blocks == 0 ? std::string("all") : fmt::format("up to {}", blocks);
  };
  const std::string in_sweeps =
      study.sweep_blocks ? fmt::format(" (in sweeps {})", shown(*study.sweep_blocks)) : "";
  return {{"Model", text("model")},
          {"Model fingerprint", text("model_fingerprint")},
          {"Arithmetic", fmt::format("{}, {} weights{}", text("precision"), text("weights"),
                                     text("device").empty() ? "" : ", on " + text("device"))},
          {"Outside the paper", outside_paper},
          {"Training text", files(study.train, usual.train.label)},
          {"Validation text", files(study.valid, usual.valid.label)},
          {"Test text", files(study.test, usual.test.label)},
          {"Protocol",
           fmt::format("{} tokens of dense context, {} test blocks{}, up to {} validation "
                       "blocks, {} {} budgets",
                       study.context, shown(study.blocks), in_sweeps, study.validation_blocks,
                       study.grid == GridRequest::Kind::paper ? "the paper's" : "at least",
                       study.budgets)},
          {"Seed", std::to_string(study.seed)},
          {"Made by", results.runs()}};
}

std::string page(const Study& study, const StudyResults& results, const Section& summary,
                 const std::vector<Section>& sections) {
  std::string body = fmt::format("<p>{}</p>\n", state(study, results));
  if (study.quick) body += fmt::format("<p class=\"verdict\"><strong>{}</strong></p>\n", quick_run);
  body += summary.html + fmt::format("<p class=\"note\">{}</p>\n", escape_xml(legend)) +
          contents(sections);
  for (size_t i = 0; i < sections.size(); ++i)
    body += fmt::format("<h2 id=\"{}\">{}. {}</h2>\n{}", sections[i].id, i + 1,
                        escape_xml(sections[i].title), sections[i].html);
  body += "<h2 id=\"settings\">Settings</h2>\n<table class=\"settings\">\n";
  for (const auto& [name, value] : settings(study, results)) body += settings_row(name, value);
  return html_page(fmt::format("Study: {}", study.name), body + "</table>\n");
}

std::filesystem::path csv_file(const StudyResults& results, const std::string& table) {
  return results.dir() / "csv" / (table + ".csv");
}

// Those of the report before: one whose job has been deleted since must not stay.
std::set<std::string> reported_tables(const StudyResults& results) {
  std::set<std::string> names;
  const std::filesystem::path file = results.dir() / "figures.jsonl";
  if (!path_exists(file)) return names;
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);) {
    const auto name =
        json_get<std::string>(parse_json(line, file.string()), "table", file.string());
    // Its file may be removed: no path out of csv/.
    if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos)
      fail("{}: \"{}\" is no table's name; delete the file to have it made again", file.string(),
           name);
    names.insert(name);
  }
  return names;
}

// Each a file of its own, to be quoted. Those that only the report before shows are removed, and no
// other: `shown` is its report.md, or empty.
void write_plots(const std::vector<Section>& sections, const std::filesystem::path& dir,
                 const std::string& shown) {
  for (const Section& section : sections) {
    if (!section.plots.empty()) ensure_writable_directory(dir);
    for (size_t i = 0; i < section.plots.size(); ++i)
      write_file_atomically(dir / plot_file(section.id, i + 1), section.plots[i]);
    for (size_t n = section.plots.size() + 1;; ++n) {
      const std::string name = plot_file(section.id, n);
      if (shown.find("](plots/" + name + ")") == std::string::npos) break;
      std::error_code gone_already;
      std::filesystem::remove(dir / name, gone_already);
    }
  }
}

// Tables and links to plots, to be quoted.
std::string markdown(const Study& study, const StudyResults& results, const Section& summary,
                     const std::vector<Section>& sections) {
  std::string text =
      fmt::format("{}{}\n\n{}\n", markdown_beginning, study.name, state(study, results));
  if (study.quick) text += fmt::format("\n**{}**\n", quick_run);
  text += "\n";
  for (const auto& [name, value] : settings(study, results))
    if (!value.empty()) text += fmt::format("- {}: {}\n", name, value);
  text += fmt::format("\n{}\n\n{}", legend, summary.markdown);
  for (size_t i = 0; i < sections.size(); ++i)
    if (!sections[i].markdown.empty())
      text += fmt::format("\n## {}. {}\n\n{}", i + 1, sections[i].title, sections[i].markdown);
  return text;
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

const SweepView* ReportInput::sweep(const StudyFamily& family, const std::string& controller) {
  return family.find(controller) ? sweep(sweep_job(family.name, controller)) : nullptr;
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

void ReportInput::note_missing(Section& section, const std::string& of) {
  const std::set<std::string> names(missing_.begin(), missing_.end());
  missing_.clear();
  std::string waiting;
  for (const std::string& name : names) {
    if (const auto reason = results_.failure(name))
      section.note(fmt::format("{}Failed: {}: {}", of, name, *reason));
    else
      waiting += (waiting.empty() ? "" : ", ") + name;
  }
  if (!waiting.empty()) section.note(fmt::format("{}Not run yet: {}.", of, waiting));
}

std::string ReportInput::levels(const StudyFamily& family, const std::string& controller) const {
  const std::filesystem::path dir = controller_dir(results_, family, controller);
  return path_exists(dir / "controller.json") ? levels_in_words(Controller::load(dir).space()) : "";
}

void write_study_report(const Study& study, const StudyResults& results,
                        const std::vector<std::filesystem::path>& beside) {
  ReportInput input(study, results);
  const std::vector<Section> sections = make_sections(input, beside);
  const Section summary = summary_section(input);  // last: the sections have said what is missing
  std::string lines;
  ensure_writable_directory(results.dir() / "csv");
  std::set<std::string> stale = reported_tables(results);
  const auto write = [&](const Section& section) {
    for (const FigureTable& table : section.tables) {
      write_file_atomically(csv_file(results, table.name()), table.csv());
      lines += table.jsonl();
      stale.erase(table.name());
    }
  };
  write(summary);
  std::ranges::for_each(sections, write);
  write(data_section(input));
  const std::filesystem::path before = results.dir() / "report.md";
  write_plots(sections, results.dir() / "plots", path_exists(before) ? read_file(before) : "");
  for (const std::string& table : stale) std::filesystem::remove(csv_file(results, table));
  write_file_atomically(results.dir() / "figures.jsonl", lines);
  write_file_atomically(results.dir() / "report.md", markdown(study, results, summary, sections));
  write_file_atomically(results.dir() / "report.html", page(study, results, summary, sections));
}

void require_replaceable_report(const std::filesystem::path& dir) {
  require_replaceable(dir / "report.html", {"a study's report", html_page_beginning("Study: ")});
  require_replaceable(dir / "report.md", {"a study's tables", markdown_beginning});
  require_replaceable(dir / "figures.jsonl", {"a study's figures", "{\"table\":"});
}

}  // namespace sol
