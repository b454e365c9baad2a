// sol calibrate: what a token costs in time on this machine, for `sol serve --costs`.
#include <memory>

#include "base/output_file.h"
#include "commands.h"
#include "common.h"
#include "cost_file.h"
#include "evaluation_flags.h"
#include "policy/cost_measurement.h"
#include "sol/controller.h"
#include "validators.h"

namespace sol::app {
namespace {

struct CalibrateFlags {
  ModelFlags model;
  SequenceFlags sequence;
  std::filesystem::path controller, out;
  CostMeasurement measurement;
  std::vector<int> lengths;
};

std::vector<int> fitting_lengths(int positions) {
  std::vector<int> lengths;
  for (int keys = 64; keys <= std::min(positions, 16384); keys *= 4) lengths.push_back(keys);
  if (lengths.empty()) lengths.push_back(positions);
  return lengths;
}

constexpr double busy = 1.3;

std::string table_text(const CostTable& costs) {
  std::string text = fmt::format("{:>8} {:>10} {:>10}", "keys", "dense ms", "refresh ms");
  for (const float share : costs.shares())
    text += fmt::format(" {:>9} {:>9}", fmt::format("k{}", percentage(share)),
                        fmt::format("s{}", percentage(share)));
  for (const CostTable::Length& length : costs.lengths()) {
    text +=
        fmt::format("\n{:>8} {:>10.3f} {:>10.3f}", length.keys, length.dense_ms, length.refresh_ms);
    for (const float share : costs.shares())
      text += fmt::format(" {:>9.3f} {:>9.3f}", costs.step_ms(share, 1.0f, length.keys),
                          costs.step_ms(1.0f, share, length.keys));
  }
  return text + "\n";
}

void run_calibrate(CalibrateFlags& flags) {
  ensure_writable_output(flags.out, cost_file_kind(), {flags.model.model_dir(), flags.controller});
  const std::unique_ptr<FrozenModel> model = load_flagged_model(flags.model);
  CostMeasurement& measurement = flags.measurement;
  measurement.sequence = flags.sequence.get();
  if (!flags.controller.empty()) {
    const Controller controller = load_flagged_controller(flags.controller, flags.model, *model);
    measurement.sequence = controller.settings().sequence;
    measurement.horizon = controller.settings().horizon;
  }
  measurement.lengths = flags.lengths.empty()
                            ? fitting_lengths(model->config().max_position_embeddings)
                            : flags.lengths;
  WorkProgress progress("measuring");
  const MeasuredCosts costs = measure_costs(
      *model, measurement,
      [&](double done) { progress.update(static_cast<int64_t>(1000 * done), 1000); },
      interrupt_token());
  progress.finish();
  // What no command would read is not written.
  CostTable::from_json(costs.table.to_json(), "what was measured");
  write_costs(flags.out, costs.table,
              describe_run(*model, file_name(flags.model.model_dir()), 0, command_line()),
              measurement.sequence, flags.model.deterministic);
  print("{}", table_text(costs.table));
  if (costs.busyness > busy)
    note(
        "the machine was busy: a usual step took {:.1f} times the fastest; measure again when it "
        "is not",
        costs.busyness);
}

}  // namespace

void add_calibrate_command(CLI::App& app) {
  auto flags = std::make_shared<CalibrateFlags>();
  flags->measurement.repetitions = 15;
  CLI::App* command = app.add_subcommand(
      "calibrate", "Measure what a token costs in time, for `sol serve --costs`");
  add_model_flags(*command, flags->model);
  command->add_option("-o,--out", flags->out, "The table, as JSON; replaces only an older table")
      ->required()
      ->type_name("FILE");
  CLI::Option* controller = command->add_option("-c,--controller", flags->controller,
                                                "The controller that will be served: its page rule "
                                                "and horizon");
  controller->type_name("DIR");
  command
      ->add_option("--horizon", flags->measurement.horizon,
                   "Steps of an episode, after which the cache is refreshed")
      ->check(at_least(1))
      ->excludes(controller)
      ->capture_default_str();
  command
      ->add_option("--context", flags->lengths,
                   "Lengths of the context, ascending (default: 64, 256, ... 16384)")
      ->delimiter(',')
      ->check(at_least(2));
  command
      ->add_option("--repetitions", flags->measurement.repetitions,
                   "Repetitions, of which the fastest counts")
      ->check(at_least(1))
      ->capture_default_str();
  add_sequence_flags(*command, flags->sequence, controller);
  command->callback([flags] { run_calibrate(*flags); });
}

}  // namespace sol::app
