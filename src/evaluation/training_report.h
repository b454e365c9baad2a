// The course of training runs as one self-contained page.
#pragma once

#include <string>
#include <vector>

#include "base/output_file.h"
#include "training/run_history.h"

namespace sol {

struct ReportedRun {
  std::string name;  // in legends
  RunHistory history;
};

// HTML with curves over updates, the runs over each other, and per run its settings, what its time
// went into and which levels it chose. Points are means over collections where there are many. At
// least one run.
std::string training_report(const std::vector<ReportedRun>& runs);
OutputKind training_report_kind();

}  // namespace sol
