// sol report: the course of training runs as a page.
#include <algorithm>
#include <memory>
#include <vector>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/output_file.h"
#include "commands.h"
#include "common.h"
#include "evaluation/training_report.h"

namespace sol::app {
namespace {

struct ReportFlags {
  std::vector<std::filesystem::path> runs;
  std::filesystem::path out;
};

// The directories' own names, or the whole paths where two have the same one.
std::vector<std::string> run_names(const std::vector<std::filesystem::path>& runs) {
  std::vector<std::string> names;
  for (const auto& run : runs) names.push_back(file_name(run));
  for (size_t i = 0; i < runs.size(); ++i)
    if (std::ranges::count(names, file_name(runs[i])) > 1) {
      for (size_t j = 0; j < runs.size(); ++j) names[j] = runs[j].string();
      break;
    }
  return names;
}

void require_directories(const std::vector<std::filesystem::path>& runs) {
  for (const auto& run : runs) {
    if (!path_exists(run)) fail("{}: no such directory", run.string());
    if (std::error_code unknown; !std::filesystem::is_directory(run, unknown))
      fail("{}: is no run's directory, but a file; name what `sol train -o` wrote to",
           run.string());
  }
}

void run_report(const ReportFlags& flags) {
  require_directories(flags.runs);
  const std::filesystem::path out =
      flags.out.empty() ? flags.runs.front() / "report.html" : flags.out;
  const std::vector<std::string> names = run_names(flags.runs);
  // Before the page is drawn; a run's directory holds what cannot be made again.
  ensure_writable_output(out, training_report_kind(), flags.runs);
  std::vector<ReportedRun> runs;
  for (size_t i = 0; i < names.size(); ++i)
    runs.push_back({names[i], read_run_history(flags.runs[i])});
  write_file_atomically(out, training_report(runs));
  print("{}\n", out.string());
}

}  // namespace

void add_report_command(CLI::App& app) {
  auto flags = std::make_shared<ReportFlags>();
  CLI::App* command = app.add_subcommand(
      "report", "Draw the course of training runs, also of one that is going on: an HTML page");
  command
      ->add_option("run", flags->runs,
                   "Output directory of `sol train`; several are drawn over each other")
      ->required()
      ->type_name("DIR");
  command
      ->add_option("-o,--out", flags->out,
                   "The page (default: report.html in the first RUN); replaces only an older page")
      ->type_name("FILE");
  command->callback([flags] { run_report(*flags); });
}

}  // namespace sol::app
