// What the subcommands share: the default model, common options, output, progress, interruption.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "device.h"
#include "sol/error.h"
#include "sol/frozen_model.h"
#include "sol/tokenizer.h"

namespace sol::app {

// Standard output was closed by whoever read it ("sol generate ... | head"): main ends quietly.
class OutputClosed : public Error {
 public:
  OutputClosed() : Error("standard output was closed") {}
};

// A Cancelled that another process of the run reports.
class CancelledQuietly : public Cancelled {};

// The embedded model: models/default beside the program's folder (build/sol in a checkout), in
// ../share/sol/ of an installed one, or in the source tree it was built from. Throws Error listing
// the places tried.
std::filesystem::path default_model_dir();

// Options of every command that runs a model.
struct ModelFlags {
  std::filesystem::path model;  // empty: the embedded one
  int threads = 0;              // 0: as many as the process may use
  std::string precision = "auto";
  std::string device = native_device;
  std::string weights = "auto";
  bool deterministic = false;
  bool prune_down = false;
  bool int8_activations = false;
  std::string channel_scores = "magnitude";
  std::string page_scores = "extrema";
  uint64_t seed = 0;

  std::filesystem::path model_dir() const { return model.empty() ? default_model_dir() : model; }
};

// -m/--model alone, for commands that need only files.
void add_model_option(CLI::App& command, std::filesystem::path& model);
// -m/--model, --threads, --device, --precision, --weights, --prune-down, --int8-activations,
// --channel-scores, --page-scores, --deterministic. `flags` must live as long as `command`.
void add_model_flags(CLI::App& command, ModelFlags& flags);
void add_seed_flag(CLI::App& command, ModelFlags& flags);  // of commands that draw at random

ModelOptions model_options(const ModelFlags& flags);
// Sets the number of threads, then loads the model that the flags name.
std::unique_ptr<FrozenModel> load_flagged_model(const ModelFlags& flags);
// The tokenizer beside the model. Throws Error when it has tokens that the model does not know.
std::shared_ptr<const Tokenizer> load_flagged_tokenizer(const ModelFlags& flags,
                                                        const FrozenModel& model);

// --page-size, --sinks, --window, --no-sinks: how kappa selects pages.
struct SequenceFlags {
  SequenceOptions options;
  bool no_sinks = false;

  SequenceOptions get() const {
    SequenceOptions result = options;
    result.force_sinks = !no_sinks;
    return result;
  }
};
// They exclude `controller`, where the command takes one.
void add_sequence_flags(CLI::App& command, SequenceFlags& flags, CLI::Option* controller = nullptr);

// A file's or directory's own name, also where the path ends with a slash.
std::string file_name(const std::filesystem::path& path);
// The command line as typed, quoted where a shell would need it.
std::string command_line();

// Writes to standard output and flushes. Throws OutputClosed when nobody reads it any more, Error
// when it cannot be written (a full disk).
void write_output(std::string_view text);

template <typename... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  write_output(fmt::format(format, std::forward<Args>(args)...));
}
// One line to standard error: notes and statistics, kept apart from a command's result.
template <typename... Args>
void note(fmt::format_string<Args...> format, Args&&... args) {
  std::fputs((fmt::format(format, std::forward<Args>(args)...) + "\n").c_str(), stderr);
}

bool is_terminal(std::FILE* stream);

// Whole standard input.
std::string read_standard_input();

// How far a long call has come, on standard error: one line that is written over on a terminal, a
// plain line every `interval` seconds elsewhere (logs, pipes).
class ProgressLine {
 public:
  explicit ProgressLine(double interval = 10.0);
  ~ProgressLine() { finish(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Cheap to call often: drawn at most ten times a second on a terminal.
  void update(const std::string& text);
  // The last text given to update() is shown for good and the line ended.
  void finish();

 private:
  void draw(const std::string& text);
  bool terminal_;
  std::chrono::duration<double> interval_;
  std::chrono::steady_clock::time_point last_{};
  std::string pending_;  // newest text not drawn yet
  bool drawn_ = false;   // something of ours stands on the current terminal line
};

// "1 thread", "2 threads".
std::string counted(int64_t count, std::string_view thing);

// "12 s", "3 min 20 s", "2 h 05 min"; for time left.
std::string format_duration(double seconds);

// From the first call on, the first SIGINT, SIGTERM or (unless started with nohup) SIGHUP requests
// a stop of this token, so that a long call ends cleanly; a second one ends the program at once.
std::stop_token interrupt_token();
// The signal that requested the stop; 0 when none did.
int interrupting_signal();

}  // namespace sol::app
