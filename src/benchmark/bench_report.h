// Benchmark rows as a table for people, CSV and JSON.
#pragma once

#include <span>
#include <string>

#include "base/json.h"
#include "benchmark/model_bench.h"
#include "engine/run_info.h"

namespace sol {

// Share of the ceiling that fits the row: of the memory's reads for a decode step, of the products
// in the model's precision for a prefill; 0 where that ceiling was not measured.
double share_of_ceiling(const BenchRow& row, const Ceilings& ceilings, Precision precision);

std::string ceilings_text(const Ceilings& ceilings);
std::string bench_header();
std::string bench_line(const BenchRow& row, const Ceilings& ceilings, Precision precision);

std::string bench_csv(std::span<const BenchRow> rows, const Ceilings& ceilings,
                      Precision precision);
Json bench_json(std::span<const BenchRow> rows, const Ceilings& ceilings, const RunInfo& info);

}  // namespace sol
