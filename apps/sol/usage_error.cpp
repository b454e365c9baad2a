#include "usage_error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "base/shown_text.h"

namespace sol::app {
namespace {

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// The first argument that looks like an option and is none, or "".
std::string unknown_option(const std::vector<std::string>& extras) {
  for (const std::string& extra : extras)
    if (extra.size() > 1 && extra[0] == '-') return extra.substr(0, extra.find('='));
  return "";
}

// A misspelt option makes others seem missing and its value superfluous, so it comes first.
std::string wrong_argument(const CLI::App& command, const CLI::ParseError& error) {
  const std::vector<std::string> extras = command.remaining();
  const std::string option = unknown_option(extras);
  if (!option.empty())
    return fmt::format("there is no option {}{}", option,
                       suggestion(option, option_names(command)));
  if (!dynamic_cast<const CLI::ExtrasError*>(&error) || extras.empty()) return error.what();
  return fmt::format(
      "nothing more was expected, but there is \"{}\": a text of several words is one argument "
      "when quoted",
      extras.front());
}

}  // namespace

const CLI::App* named_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2) return nullptr;
  for (const CLI::App* command : app.get_subcommands({}))
    if (command->check_name(argv[1])) return command;
  return nullptr;
}

std::string usage_error(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const CLI::App* command = named_command(app, argc, argv);
  if (!command) {
    const std::vector<std::string> names = command_names(app);
    const std::string list = fmt::format("{}", fmt::join(names, ", "));
    const std::string first = argc > 1 ? argv[1] : "";
    if (first.empty() || first[0] == '-')
      return fmt::format("name a command: {}\n{} --help says what each does", list, app.get_name());
    return fmt::format(
        "there is no command {}{}\nThe commands are {}; {} --help says what each does", first,
        suggestion(first, names), list, app.get_name());
  }
  return fmt::format("{}\n{} {} --help lists what it takes", wrong_argument(*command, error),
                     app.get_name(), command->get_name());
}

}  // namespace sol::app
