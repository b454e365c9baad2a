// One function per subcommand: each adds itself to the program, with its options and its callback.
#pragma once

#include <CLI/CLI.hpp>

namespace sol::app {

void add_inspect_command(CLI::App& app);
void add_convert_command(CLI::App& app);
void add_tokenize_commands(CLI::App& app);  // tokenize and detokenize
void add_logits_command(CLI::App& app);
void add_generate_command(CLI::App& app);
void add_train_command(CLI::App& app);
void add_plan_command(CLI::App& app);
void add_prepare_command(CLI::App& app);
void add_report_command(CLI::App& app);
void add_probe_command(CLI::App& app);
void add_eval_command(CLI::App& app);
void add_sweep_command(CLI::App& app);
void add_reproduce_command(CLI::App& app);
void add_tasks_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_serve_command(CLI::App& app);
void add_calibrate_command(CLI::App& app);

// All of them, in the order in which the help lists them. add_training adds train and plan; null
// where there is no training.
void add_commands(CLI::App& app, void (*add_training)(CLI::App&));

}  // namespace sol::app
