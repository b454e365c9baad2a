// sol logits: what the model computes for given ids under given actions, for comparison with other
// implementations.
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/json.h"
#include "base/output_file.h"
#include "commands.h"
#include "common.h"
#include "validators.h"

namespace sol::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view beginning = "{\"positions\":[";  // of what is written

struct LogitsFlags {
  ModelFlags model;
  SequenceFlags sequence;
  fs::path ids, actions, out;
  int prefill = 0;
};

// The list that the file holds, bare or under `field` of an object.
Json read_list(const fs::path& path, const char* field) {
  Json document = read_json(path);
  if (document.is_object() && document.contains(field)) document = document.at(field);
  if (!document.is_array())
    fail("{}: expected a list, or an object with \"{}\"", path.string(), field);
  return document;
}

std::vector<int32_t> read_ids(const fs::path& path, int vocab_size) {
  std::vector<int32_t> ids;
  for (const Json& item : read_list(path, "ids")) {
    const auto valid = [&] {
      return item.is_number_integer() && item.get<double>() >= 0 && item.get<double>() < vocab_size;
    };
    if (!valid())
      fail("{}: entry {} is {}, not a token id in 0..{}", path.string(), ids.size(), to_text(item),
           vocab_size - 1);
    ids.push_back(item.get<int32_t>());
  }
  return ids;
}

std::vector<Action> read_actions(const fs::path& path, size_t steps) {
  if (path.empty()) return std::vector<Action>(steps);
  std::vector<Action> actions;
  for (const Json& item : read_list(path, "actions")) {
    if (!item.is_null() && !item.is_string())
      fail("{}: entry {} is {}, not an action such as \"k050-s070-q8\" or null", path.string(),
           actions.size(), to_text(item));
    try {
      actions.push_back(item.is_null() ? Action{}
                                       : parse_action(item.get_ref<const std::string&>()));
    } catch (const Error& error) {
      fail("{}: entry {}: {}", path.string(), actions.size(), error.what());
    }
  }
  if (actions.size() != steps)
    fail("{}: {} actions for {} ids after the prefill; name one for each (null for dense)",
         path.string(), actions.size(), steps);
  return actions;
}

void append_numbers(std::string& text, std::span<const float> values, const char* what,
                    size_t position) {
  text += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i]))
      fail("position {}: {} {} is {}; JSON has no such number", position, what, i, values[i]);
    fmt::format_to(std::back_inserter(text), "{}{}", i ? "," : "", values[i]);
  }
  text += ']';
}

void run_logits(const LogitsFlags& flags) {
  ensure_writable_output(flags.out, {"a result of `sol logits`", std::string(beginning)},
                         {flags.ids, flags.actions, flags.model.model_dir()});
  const std::unique_ptr<FrozenModel> model = load_flagged_model(flags.model);
  const auto vocab = static_cast<size_t>(model->config().vocab_size);
  const auto width = static_cast<size_t>(model->config().hidden_size);
  const std::vector<int32_t> ids = read_ids(flags.ids, model->config().vocab_size);
  const auto prefill = static_cast<size_t>(flags.prefill);
  if (prefill > ids.size())
    fail("--prefill {}, but {} has only {} ids", prefill, flags.ids.string(), ids.size());
  const std::vector<Action> actions = read_actions(flags.actions, ids.size() - prefill);

  const std::unique_ptr<Sequence> sequence = model->create(flags.sequence.get());
  std::vector<float> logits(vocab), hidden(width);
  const OutputRequest wanted{.hidden = hidden.data(), .logits = logits.data()};

  AtomicFile out(flags.out);
  out.write(beginning);
  const auto write_position = [&](size_t position) {
    std::string text = position + 1 == prefill ? "\n" : ",\n";
    fmt::format_to(std::back_inserter(text), "{{\"position\":{},\"logits\":", position);
    append_numbers(text, logits, "logit", position);
    text += ",\"hidden\":";
    append_numbers(text, hidden, "hidden value", position);
    text += '}';
    out.write(text);
  };

  ExtendItem dense{sequence.get(), std::span(ids).first(prefill), {{prefill - 1, wanted}}};
  model->extend({&dense, 1});
  write_position(prefill - 1);
  for (size_t t = 0; t < actions.size(); ++t) {
    DecodeItem step{sequence.get(), ids[prefill + t], actions[t], wanted, nullptr};
    model->decode({&step, 1});
    write_position(prefill + t);
  }
  out.write("\n]}\n");
  out.commit();
}

}  // namespace

void add_logits_command(CLI::App& app) {
  auto flags = std::make_shared<LogitsFlags>();
  CLI::App* command = app.add_subcommand("logits",
                                         "Logits and hidden states: a dense pass over N ids, then "
                                         "one step per remaining id, each under the action named "
                                         "for it; of the N-th position and all later ones");
  add_model_flags(*command, flags->model);
  command->add_option("--ids", flags->ids, "Token ids: [..] or {\"ids\": [..]}")
      ->type_name("FILE.json")
      ->required();
  command->add_option("--prefill", flags->prefill, "How many ids the dense pass covers")
      ->check(at_least(1))
      ->required();
  command
      ->add_option(
          "--actions", flags->actions,
          "Actions of the steps, such as \"k050-s070-q8\"; null for dense (default: all dense)")
      ->type_name("FILE.json");
  add_sequence_flags(*command, flags->sequence);
  command
      ->add_option("--out", flags->out, "Where to write the result; replaces only an older result")
      ->type_name("FILE.json")
      ->required();
  command->callback([flags] { run_logits(*flags); });
}

}  // namespace sol::app
