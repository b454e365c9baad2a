// A sweep's figures as files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/run_info.h"
#include "evaluation/sweep_summary.h"

namespace sol {

// Everything a reader must know to repeat a sweep, beside the figures.
struct SweepSettings {
  RunInfo run;
  std::string controller;  // its directory's name; may be empty
  std::string data;        // the text file's name
  std::string grid;        // in words: "automatic, 6 x 6 x 6"
  int64_t blocks_available = 0;
  std::string trained_ranges;  // in words; empty without a controller
};

// One row per point, policy and matching; shares, nats and perplexities as the header says.
std::string points_csv(const Sweep& sweep);
// The same rows, one JSON object a line, each with where it comes from.
std::string points_jsonl(const Sweep& sweep, const SweepSettings& settings);
Json summary_json(const Sweep& sweep, const SweepSummary& summary, const SweepSettings& settings);

// points.csv, points.jsonl, summary.json and report.html in `dir`; none replaces an older one
// before all are complete. Throws Error naming the file that could not be written.
void write_sweep(const std::filesystem::path& dir, const Sweep& sweep, const SweepSummary& summary,
                 const SweepSettings& settings);

// Throws Error, before a sweep, where write_sweep() would write over one of `inputs` or over
// anything but an older sweep's files (base/output_file.h).
void ensure_writable_sweep(const std::filesystem::path& dir,
                           const std::vector<std::filesystem::path>& inputs);

}  // namespace sol
