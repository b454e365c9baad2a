#include "commands.h"

namespace sol::app {

void add_commands(CLI::App& app, void (*add_training)(CLI::App&)) {
  add_generate_command(app);
  add_serve_command(app);
  if (add_training) add_training(app);
  add_prepare_command(app);
  add_report_command(app);
  add_sweep_command(app);
  add_tasks_command(app);
  add_eval_command(app);
  add_probe_command(app);
  add_reproduce_command(app);
  add_bench_command(app);
  add_calibrate_command(app);
  add_inspect_command(app);
  add_convert_command(app);
  add_tokenize_commands(app);
  add_logits_command(app);
}

}  // namespace sol::app
