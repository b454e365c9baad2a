// sol: a frozen Llama with a budget dial.
#include <cstdio>
#include <exception>

#include "commands.h"

int main(int argc, char** argv) {
  CLI::App app{"sol: a frozen Llama with a budget dial"};
  app.require_subcommand(1);
  sol::app::add_inspect_command(app);
  sol::app::add_tokenize_commands(app);
  sol::app::add_logits_command(app);
  sol::app::add_generate_command(app);
#ifdef SOL_TRAINING
  sol::app::add_train_command(app);
#endif
  sol::app::add_probe_command(app);
  sol::app::add_eval_command(app);
  sol::app::add_sweep_command(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sol: %s\n", error.what());
    return 1;
  }
  return 0;
}
