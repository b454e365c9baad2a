// A study's report: one self-contained page; beside it tables as Markdown, CSV and JSON lines, and
// plots as SVG.
#pragma once

#include <filesystem>
#include <vector>

#include "reproduction/results.h"
#include "reproduction/study.h"

namespace sol {

// Writes DIR/report.html, DIR/report.md, DIR/csv/*.csv, DIR/plots/*.svg and DIR/figures.jsonl from
// the jobs that have finished; each section of the page says what is missing. `beside`: directories
// of the same study on other models. Throws Error for a damaged job file, a directory that holds no
// study, or a file that cannot be written.
void write_study_report(const Study& study, const StudyResults& results,
                        const std::vector<std::filesystem::path>& beside);

// Throws Error where that would write over a page or lines that are no study's.
void require_replaceable_report(const std::filesystem::path& dir);

}  // namespace sol
