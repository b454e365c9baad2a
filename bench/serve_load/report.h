// What a run found out: what must hold and did or did not, goals, and tables.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/json.h"

namespace sol::load {

// Any thread may call any of these.
class Report {
 public:
  // Something that must hold; many cases of one name are counted together, and the first few that
  // did not hold are told.
  void require(const std::string& name, bool held, const std::string& detail = {});
  // A goal of a measurement, told but not required.
  void goal(const std::string& name, bool met, const std::string& measured);
  // Lines to print, and values for the JSON file.
  void add_text(const std::string& text);
  void set(const std::string& key, Json value);

  bool all_held() const;
  bool all_met() const;
  std::string text() const;
  Json to_json() const;

 private:
  struct Requirement {
    int held = 0, failed = 0;
    std::vector<std::string> details;
  };
  struct Goal {
    std::string name;
    bool met = false;
    std::string measured;
  };
  mutable std::mutex mutex_;
  std::map<std::string, Requirement> requirements_;
  std::vector<Goal> goals_;
  std::string text_;
  Json values_ = Json::object();
};

// Median and the like; 0 without values.
double quantile_of(std::vector<double> values, double q);
inline double median_of(std::vector<double> values) {
  return quantile_of(std::move(values), 0.5);
}

}  // namespace sol::load
