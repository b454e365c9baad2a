// What serve_load can measure; each starts servers of its own.
#pragma once

#include "serve_load/report.h"
#include "serve_load/settings.h"

namespace sol::load {

void run_load(const Settings& settings, Report& report);        // load_mode.cpp
void run_throughput(const Settings& settings, Report& report);  // throughput_mode.cpp
void run_budgets(const Settings& settings, Report& report);     // budget_mode.cpp
void run_latency(const Settings& settings, Report& report);     // latency_mode.cpp
void run_repeat(const Settings& settings, Report& report);      // repeat_mode.cpp
void run_overhead(const Settings& settings, Report& report);    // overhead_mode.cpp

}  // namespace sol::load
