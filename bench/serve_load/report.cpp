#include "serve_load/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "evaluation/statistics.h"

namespace sol::load {
namespace {

constexpr size_t most_details = 5;

}  // namespace

void Report::require(const std::string& name, bool held, const std::string& detail) {
  const std::lock_guard lock(mutex_);
  Requirement& requirement = requirements_[name];
  ++(held ? requirement.held : requirement.failed);
  if (!held && requirement.details.size() < most_details) requirement.details.push_back(detail);
}

void Report::goal(const std::string& name, bool met, const std::string& measured) {
  const std::lock_guard lock(mutex_);
  goals_.push_back({name, met, measured});
}

void Report::add_text(const std::string& text) {
  const std::lock_guard lock(mutex_);
  text_ += text;
}

void Report::set(const std::string& key, Json value) {
  const std::lock_guard lock(mutex_);
  values_[key] = std::move(value);
}

bool Report::all_held() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::all_of(requirements_, [](const auto& r) { return r.second.failed == 0; });
}

bool Report::all_met() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::all_of(goals_, [](const Goal& goal) { return goal.met; });
}

std::string Report::text() const {
  const std::lock_guard lock(mutex_);
  std::string out = text_ + "\nmust hold\n";
  for (const auto& [name, requirement] : requirements_) {
    out += fmt::format("  {:<6} {} ({} of {})\n", requirement.failed == 0 ? "yes" : "NO", name,
                       requirement.held, requirement.held + requirement.failed);
    for (const std::string& detail : requirement.details)
      out += fmt::format("         {}\n", detail);
  }
  if (!goals_.empty()) out += "goals\n";
  for (const Goal& goal : goals_)
    out += fmt::format("  {:<6} {}: {}\n", goal.met ? "met" : "missed", goal.name, goal.measured);
  return out;
}

Json Report::to_json() const {
  const std::lock_guard lock(mutex_);
  Json json = values_;
  json["must_hold"] = Json::array();
  for (const auto& [name, requirement] : requirements_)
    json["must_hold"].push_back({{"name", name},
                                 {"held", requirement.held},
                                 {"failed", requirement.failed},
                                 {"details", requirement.details}});
  json["goals"] = Json::array();
  for (const Goal& goal : goals_)
    json["goals"].push_back({{"name", goal.name}, {"met", goal.met}, {"measured", goal.measured}});
  return json;
}

double quantile_of(std::vector<double> values, double q) {
  return values.empty() ? 0.0 : quantile(values, q);
}

}  // namespace sol::load
