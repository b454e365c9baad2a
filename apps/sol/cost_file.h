// A cost table on disk, with what it was measured on (docs/formats.md, "Cost table").
#pragma once

#include <filesystem>

#include "base/output_file.h"
#include "engine/run_info.h"
#include "policy/cost_table.h"

namespace sol::app {

// Throws Error when it cannot be written.
void write_costs(const std::filesystem::path& path, const CostTable& costs, const RunInfo& run,
                 const SequenceOptions& sequence, bool deterministic);

// Throws Error as read_costs_of_model, and for a file that was measured on another device,
// processor or number of threads, with other weights, precision or products.
CostTable read_costs(const std::filesystem::path& path, const RunInfo& run, int horizon,
                     const SequenceOptions& sequence, bool deterministic);

// For training and judging, which may run on another machine than the one whose times count: throws
// Error for a file that is malformed, or was measured on another model, with other options outside
// the paper, with another rule for pages, or for another horizon.
CostTable read_costs_of_model(const std::filesystem::path& path, const FrozenModel& model,
                              int horizon, const SequenceOptions& sequence);
// The same, and Error for a table in which nothing saves time: there would be nothing to learn.
CostTable read_costs_to_train(const std::filesystem::path& path, const FrozenModel& model,
                              int horizon, const SequenceOptions& sequence);

// What write_costs() writes.
OutputKind cost_file_kind();

}  // namespace sol::app
