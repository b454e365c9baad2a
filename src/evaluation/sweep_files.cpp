#include "evaluation/sweep_files.h"

#include <fmt/format.h>

#include <utility>

#include "base/file_io.h"
#include "base/output_file.h"
#include "evaluation/report.h"
#include "evaluation/report_page.h"
#include "policy/action_json.h"
#include "policy/cost_table.h"

namespace sol {

namespace {

// One line of points.csv and points.jsonl.
struct Row {
  size_t point;
  const SweepPoint* at;
  std::string_view policy, matching;  // matching is empty for the policy that is judged
  const Outcome* outcome;
};

std::vector<Row> rows(const Sweep& sweep) {
  std::vector<Row> rows;
  for (size_t i = 0; i < sweep.points.size(); ++i) {
    const SweepPoint& point = sweep.points[i];
    rows.push_back({i, &point, sweep.policy, "", &point.policy});
    for (const Matching matching : {Matching::realised, Matching::requested}) {
      const auto& outcomes = point.baselines(matching);
      for (size_t b = 0; b < outcomes.size(); ++b)
        rows.push_back({i, &point, sweep.baselines[b], to_string(matching), &outcomes[b]});
    }
  }
  return rows;
}

Json interval_json(const Interval& interval) {
  return Json::array({interval.low, interval.high});
}

Json deviation_json(const MeanDeviation& value) {
  return {{"mean", value.mean}, {"deviation", value.deviation}};
}

Json comparison_json(const Comparison& comparison) {
  return {{"baseline", comparison.baseline},
          {"baseline_at", to_string(comparison.matching)},
          {"points_scope", to_string(comparison.scope)},
          {"points", comparison.test.n},
          {"policy_perplexity", deviation_json(comparison.test.policy)},
          {"baseline_perplexity", deviation_json(comparison.test.baseline)},
          {"difference", deviation_json(comparison.test.difference)},
          {"t", comparison.test.t},
          {"p_one_sided", comparison.test.p},
          {"wins", comparison.test.wins},
          {"ties", comparison.test.ties},
          {"win_rate", comparison.test.win_rate},
          {"bootstrap_95", interval_json(comparison.interval)}};
}

Json adherence_json(const Adherence& adherence) {
  if (adherence.by_time)
    return {{"points_scope", to_string(adherence.scope)},
            {"points", adherence.points},
            {"tolerance", Adherence::tolerance},
            {"time_share", adherence.share[0]},
            {"mean_error", adherence.mean_error[0]},
            {"largest_error", adherence.largest_error[0]}};
  const auto axes = [](const std::array<double, 3>& values) {
    return Json{{"kappa", values[0]}, {"rho", values[1]}, {"eta", values[2]}};
  };
  return {{"points_scope", to_string(adherence.scope)},
          {"points", adherence.points},
          {"tolerance", Adherence::tolerance},
          {"all_axes_share", adherence.all_axes_share},
          {"axis_share", axes(adherence.share)},
          {"mean_error", axes(adherence.mean_error)},
          {"largest_error", axes(adherence.largest_error)}};
}

// {"time"} of a share of the dense time, else an average per axis.
Json request_json(const Budget& budget, bool time) {
  if (time) return {{"time", shortest_decimal(budget.kappa)}};
  return budget_to_json(budget);
}

Json outcome_json(const Outcome& outcome) {
  return {{"net_keep", outcome.net_keep},
          {"asked", request_json(outcome.asked, outcome.asked_time)},
          {"realised", budget_to_json(outcome.realised)},
          {"perplexity", outcome.perplexity}};
}

template <typename Pick>
Json frontier_json(const Sweep& sweep, const std::vector<size_t>& frontier, const Pick& pick) {
  Json points = Json::array();
  for (const size_t i : frontier) {
    Json point = {{"point", i}};
    point.update(outcome_json(pick(sweep.points[i])));
    points.push_back(std::move(point));
  }
  return points;
}

Json settings_json(const Sweep& sweep, const SweepSettings& settings) {
  const ProtocolOptions& protocol = sweep.protocol;
  Json json = {{"controller", settings.controller},
               {"data", settings.data},
               {"grid", settings.grid},
               {"trained_ranges", settings.trained_ranges},
               {"points", sweep.points.size()},
               {"blocks", sweep.blocks.size()},
               {"blocks_available", settings.blocks_available},
               {"context", protocol.context},
               {"horizon", protocol.horizon}};
  json.update(to_json(protocol.sequence));
  json.update({{"batch", protocol.timed ? 1 : protocol.batch},
               {"timed", protocol.timed},
               {"costs", protocol.costs ? protocol.costs->to_json() : Json(nullptr)},
               {"kappa_levels", sweep.space.kappa()},
               {"rho_levels", sweep.space.rho()},
               {"bits_levels", sweep.space.bits()}});
  return json;
}

}  // namespace

std::string points_csv(const Sweep& sweep) {
  std::string text =
      "point,inside,policy,baseline_at,requested_kappa,requested_rho,requested_eta,asked_kappa,"
      "asked_rho,asked_eta,realised_kappa,realised_rho,realised_eta,net_keep,perplexity,"
      "nll_nats_per_token,attended,steps,effective_steps,blocks,seconds_per_token,requested_time,"
      "realised_time\n";
  const auto budget = [](const Budget& b, bool time = false) {
    return time ? ",," : fmt::format("{},{},{}", b.kappa, b.rho, b.eta);
  };
  const bool counted = sweep.protocol.costs != nullptr;
  for (const Row& row : rows(sweep)) {
    const Outcome& outcome = *row.outcome;
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", row.point, row.at->inside ? 1 : 0,
        row.policy, row.matching, budget(row.at->requested, sweep.by_time),
        budget(outcome.asked, outcome.asked_time), budget(outcome.realised), outcome.net_keep,
        outcome.perplexity, outcome.nats_per_token(), outcome.attended, outcome.steps,
        outcome.effective_steps, outcome.nll.size(), outcome.seconds_per_token,
        sweep.by_time ? fmt::format("{}", row.at->requested.kappa) : "",
        counted ? fmt::format("{}", outcome.time) : "");
  }
  return text;
}

std::string points_jsonl(const Sweep& sweep, const SweepSettings& settings) {
  const RunInfo& run = settings.run;
  std::string text;
  for (const Row& row : rows(sweep)) {
    const Outcome& outcome = *row.outcome;
    Json line = {{"point", row.point},
                 {"inside", row.at->inside},
                 {"policy", row.policy},
                 {"baseline_at", row.matching.empty() ? Json(nullptr) : Json(row.matching)},
                 {"requested", request_json(row.at->requested, sweep.by_time)}};
    line.update(outcome_json(outcome));
    if (sweep.protocol.costs) line["realised_time"] = outcome.time;
    line["attended"] = outcome.attended;
    line["steps"] = outcome.steps;
    if (sweep.protocol.timed) line["seconds_per_token"] = outcome.seconds_per_token;
    line["effective_steps"] = outcome.effective_steps;
    line["blocks"] = outcome.nll.size();
    line["data"] = settings.data;
    line["controller"] = settings.controller;
    line.update(to_json(run));
    text += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  return text;
}

Json summary_json(const Sweep& sweep, const SweepSummary& summary, const SweepSettings& settings) {
  Json comparisons = Json::array(), adherence = Json::array();
  for (const Comparison& comparison : summary.comparisons)
    comparisons.push_back(comparison_json(comparison));
  for (const Adherence& one : summary.adherence) adherence.push_back(adherence_json(one));

  Json frontiers = {{sweep.policy, frontier_json(sweep, summary.policy_frontier,
                                                 [](const SweepPoint& p) -> const Outcome& {
                                                   return p.policy;
                                                 })}};
  for (const Matching matching : {Matching::realised, Matching::requested}) {
    const auto& all =
        matching == Matching::realised ? summary.realised_frontiers : summary.requested_frontiers;
    for (size_t b = 0; b < all.size(); ++b)
      frontiers[fmt::format("{} at {}", sweep.baselines[b], to_string(matching))] = frontier_json(
          sweep, all[b],
          [&](const SweepPoint& p) -> const Outcome& { return p.baselines(matching)[b]; });
  }
  const double rate =
      sweep.seconds > 0 ? static_cast<double>(sweep.decoded_tokens) / sweep.seconds : 0;
  return {{"run", to_json(settings.run)},
          {"settings", settings_json(sweep, settings)},
          {"dense_perplexity", sweep.dense.perplexity},
          {"dense_seconds_per_token", sweep.dense.seconds_per_token},
          {"comparisons", comparisons},
          {"bootstrap_draws", summary.bootstrap_draws},
          {"adherence", adherence},
          {"frontiers", frontiers},
          {"seconds", sweep.seconds},
          {"decoded_tokens", sweep.decoded_tokens},
          {"decoded_tokens_per_second", rate}};
}

void write_sweep(const std::filesystem::path& dir, const Sweep& sweep, const SweepSummary& summary,
                 const SweepSettings& settings) {
  const std::pair<const char*, std::string> contents[] = {
      {"points.csv", points_csv(sweep)},
      {"points.jsonl", points_jsonl(sweep, settings)},
      {"summary.json",
       summary_json(sweep, summary, settings).dump(2, ' ', false, Json::error_handler_t::replace) +
           "\n"},
      {"report.html", sweep_report(sweep, summary, settings)}};
  write_files_together(dir, contents);
}

void ensure_writable_sweep(const std::filesystem::path& dir,
                           const std::vector<std::filesystem::path>& inputs) {
  const std::pair<const char*, std::string> beginnings[] = {
      {"points.csv", "point,inside,policy,"},
      {"points.jsonl", "{\"point\":"},
      {"summary.json", "{\n  \"run\": {"},
      {"report.html", html_page_beginning("Budget sweep: ")}};
  for (const auto& [name, beginning] : beginnings)
    ensure_writable_output(dir / name, {"a file of `sol sweep`", beginning}, inputs);
}

}  // namespace sol
