// What a study's jobs do: each runs one experiment and returns what it found (experiment_json.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reproduction/laboratory.h"

namespace sol {

// A controller of a family, by its name there or that of one trained again with another seed.
struct Where {
  const StudyFamily* family;
  std::string controller;
};

Json run_training(Laboratory& lab, const Where& at, std::optional<uint64_t> seed,
                  const std::string& name);
Json run_frontier(Laboratory& lab, const Where& at, const SweepProgress& progress);
Json run_main_sweep(Laboratory& lab, const StudyFamily& family, const std::string& name,
                    const std::vector<std::string>& baselines, int budgets, bool requested,
                    const SweepProgress& progress);
// Perplexities of fixed at the averages that each heuristic realised in the controller's sweep, by
// the heuristic's name and point: they spend less than what they are asked for.
Json run_heuristics(Laboratory& lab, const Where& at, const SweepProgress& progress);
Json run_landscape(Laboratory& lab, const Where& at, const SweepProgress& progress);
Json run_search_point(Laboratory& lab, const Where& at, int point, const SweepProgress& progress);
Json run_single(Laboratory& lab, const Where& at, const SweepProgress& progress);
Json run_kv_pollution(Laboratory& lab, const SweepProgress& progress);
Json run_static_points(Laboratory& lab, const SweepProgress& progress);
Json run_timed(Laboratory& lab, const Where& at, const SweepProgress& progress);
Json run_behaving(Laboratory& lab, const Where& at, const SweepProgress& progress);
Json run_free(Laboratory& lab, const Where& at, const SweepProgress& progress);
Json run_transfer(Laboratory& lab, const Where& at, const StudyText& text, int context,
                  const SweepProgress& progress);

}  // namespace sol
