// Benchmark rows as a table for people, CSV and JSON.
#pragma once

#include <span>
#include <string>

#include "base/json.h"
#include "base/output_file.h"
#include "benchmark/model_bench.h"
#include "engine/run_info.h"

namespace sol {

std::string ceilings_text(const Ceilings& ceilings);
std::string bench_header();
std::string bench_line(const BenchRow& row);

std::string bench_csv(std::span<const BenchRow> rows);
Json bench_json(std::span<const BenchRow> rows, const Ceilings& ceilings, const RunInfo& info);

// What they make, as files.
OutputKind bench_csv_kind();
OutputKind bench_json_kind();

}  // namespace sol
