#include "common.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>
#include <map>
#include <thread>

#include "base/fail.h"
#include "base/threads.h"
#include "restart.h"
#include "validators.h"

namespace sol::app {
namespace fs = std::filesystem;

fs::path default_model_dir() {
  std::error_code code;
  const fs::path executable = fs::read_symlink("/proc/self/exe", code);
  std::vector<fs::path> candidates;
  if (!code) {
    const fs::path folder = executable.parent_path();
    candidates.push_back((folder / "../models/default").lexically_normal());
    candidates.push_back((folder / "../share/sol/models/default").lexically_normal());
  }
  candidates.push_back(fs::path(SOL_SOURCE_DIR) / "models/default");
  std::string tried;
  for (const fs::path& candidate : candidates) {
    if (fs::exists(candidate / "config.json", code)) return candidate;
    tried += "\n  " + candidate.string();
  }
  fail("the embedded model was not found; name a model directory with -m. Tried:{}", tried);
}

void add_model_option(CLI::App& command, fs::path& model) {
  command
      .add_option("-m,--model", model, "Hugging Face model directory (default: the embedded model)")
      ->type_name("DIR");
}

void add_model_flags(CLI::App& command, ModelFlags& flags) {
  add_model_option(command, flags.model);
  command.add_option("--threads", flags.threads, "Threads; 0 for as many as the process may use")
      ->check(in_range(0, 4096))
      ->capture_default_str();
  command
      .add_option("--device", flags.device,
                  "What executes the frozen model: native (the CPU by sol's own kernels), or "
                  "through LibTorch cpu, cuda or cuda:N")
      ->check(device_name())
      ->type_name("DEVICE")
      ->capture_default_str();
  command
      .add_option("--precision", flags.precision,
                  "Type of products and cache: auto (bf16 for bf16 weights where the processor "
                  "multiplies it and AVX-512 is in use, else f32), f32, bf16")
      ->check(CLI::IsMember({"auto", "f32", "bf16"}))
      ->capture_default_str();
  command
      .add_option(
          "--weights", flags.weights,
          "Weights held as: auto (as stored), int8, int4 (made while loading; `sol convert` "
          "does it once)")
      ->check(CLI::IsMember({"auto", "int8", "int4"}))
      ->capture_default_str();
  command.add_flag(
      "--prune-down", flags.prune_down,
      "Not in the paper: ρ also chooses among the inputs of the MLP's down projection");
  command.add_flag("--int8-activations", flags.int8_activations,
                   "Not in the paper: with int8 weights, every product's input rounded to 8 bits");
  command
      .add_option("--channel-scores", flags.channel_scores,
                  "How ρ ranks channels: magnitude, or (not in the paper) wina: times the norm of "
                  "their weights")
      ->check(CLI::IsMember({"magnitude", "wina"}))
      ->capture_default_str();
  command
      .add_option("--page-scores", flags.page_scores,
                  "How κ ranks pages: by the keys' extrema, or (not in the paper) moments: their "
                  "mean and variance")
      ->check(CLI::IsMember({"extrema", "moments"}))
      ->capture_default_str();
  command.add_flag("--deterministic", flags.deterministic,
                   "Bit-identical results for every batch size and thread count (slower)");
}

void add_seed_flag(CLI::App& command, ModelFlags& flags) {
  command.add_option("--seed", flags.seed, "Seed of every random draw")
      ->check(in_range(0, std::numeric_limits<uint64_t>::max()))
      ->capture_default_str();
}

void add_sequence_flags(CLI::App& command, SequenceFlags& flags, CLI::Option* controller) {
  constexpr uint64_t largest_count = 1 << 24;  // no sum of settings overflows
  command.add_option("--page-size", flags.options.page_size, "Keys per page")
      ->check(in_range(1, 4096))
      ->capture_default_str();
  command.add_option("--sinks", flags.options.sinks, "First keys, always attended to")
      ->check(in_range(0, largest_count))
      ->capture_default_str();
  command.add_option("--window", flags.options.window, "Last keys, always attended to")
      ->check(in_range(0, largest_count))
      ->capture_default_str();
  command
      .add_flag("--no-sinks", flags.no_sinks,
                "As the authors' code: force neither sinks nor window, keep every page that ties")
      ->excludes("--sinks", "--window");
  if (!controller) return;
  // A controller brings the page rule it was trained with.
  for (const char* name : {"--page-size", "--sinks", "--window", "--no-sinks"})
    command.get_option(name)->excludes(controller);
}

ModelOptions model_options(const ModelFlags& flags) {
  static const std::map<std::string, Precision> precisions{
      {"auto", Precision::automatic}, {"f32", Precision::f32}, {"bf16", Precision::bf16}};
  static const std::map<std::string, WeightFormat> formats{{"auto", WeightFormat::automatic},
                                                           {"int8", WeightFormat::int8},
                                                           {"int4", WeightFormat::int4}};
  ModelOptions options;
  options.weights = formats.at(flags.weights);
  options.precision = precisions.at(flags.precision);
  options.deterministic = flags.deterministic;
  options.prune_down = flags.prune_down;
  options.int8_activations = flags.int8_activations;
  if (flags.channel_scores == "wina") options.channel_scores = ChannelScores::weight_norm;
  if (flags.page_scores == "moments") options.page_scores = PageScores::moments;
  return options;
}

std::unique_ptr<FrozenModel> load_flagged_model(const ModelFlags& flags) {
  set_thread_count(flags.threads);
  return load_on_device(flags.model_dir(), flags.device, model_options(flags));
}

std::shared_ptr<const Tokenizer> load_flagged_tokenizer(const ModelFlags& flags,
                                                        const FrozenModel& model) {
  const fs::path dir = flags.model_dir();
  auto tokenizer = Tokenizer::load(dir);
  if (tokenizer->vocab_size() > model.config().vocab_size)
    fail("{}: the tokenizer has {} tokens, but the model only {}; they do not belong together",
         dir.string(), tokenizer->vocab_size(), model.config().vocab_size);
  return tokenizer;
}

std::string file_name(const fs::path& path) {
  const auto normal = path.lexically_normal();
  return normal.filename().empty() ? normal.parent_path().filename().string()
                                   : normal.filename().string();
}

std::string command_line() {
  std::string line;
  for (const std::string& argument : process_arguments()) {
    const bool plain = !argument.empty() &&
                       argument.find_first_of(" \t\n\"'\\$`&|;<>()*?[]{}#~!") == std::string::npos;
    if (!line.empty()) line += ' ';
    if (plain) {
      line += argument;
      continue;
    }
    line += '\'';
    for (const char c : argument) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

void write_output(std::string_view text) {
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (written) return;
  const int reason = errno;
  if (reason == EPIPE) throw OutputClosed();
  fail("cannot write to standard output: {}", std::strerror(reason));
}

bool is_terminal(std::FILE* stream) {
  return isatty(fileno(stream)) == 1;
}

std::string read_standard_input() {
  if (is_terminal(stdin)) note("reading standard input; Ctrl-D at the beginning of a line ends it");
  std::string text;
  char buffer[1 << 16];
  size_t got;
  while ((got = std::fread(buffer, 1, sizeof(buffer), stdin)) > 0) text.append(buffer, got);
  if (std::ferror(stdin)) fail("cannot read standard input: {}", std::strerror(errno));
  return text;
}

ProgressLine::ProgressLine(double interval)
    : terminal_(is_terminal(stderr)), interval_(terminal_ ? 0.1 : interval) {}

void ProgressLine::update(const std::string& text) {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < interval_) {
    pending_ = text;
    return;
  }
  last_ = now;
  pending_.clear();
  draw(text);
}

void ProgressLine::draw(const std::string& text) {
  if (!terminal_) {
    std::fprintf(stderr, "%s\n", text.c_str());
    return;
  }
  winsize size{};
  size_t width =
      ioctl(fileno(stderr), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  // A line that wraps cannot be written over. Cut before a character, not inside one.
  size_t end = 0, columns = 0;
  while (end < text.size() && columns + 1 < width) {
    do {
      ++end;
    } while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80u);
    ++columns;
  }
  std::fprintf(stderr, "\r%.*s\x1b[K", static_cast<int>(end), text.c_str());
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressLine::finish() {
  if (!pending_.empty()) draw(pending_);
  pending_.clear();
  if (drawn_) std::fputc('\n', stderr);
  drawn_ = false;
  last_ = {};
}

std::string counted(int64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  const auto s = static_cast<long long>(std::llround(seconds));
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {:02} s", s / 60, s % 60);
  return fmt::format("{} h {:02} min", s / 3600, s % 3600 / 60);
}

namespace {

// A handler may only do what is safe at any moment, which request_stop() is not: it wakes a thread
// through a pipe, and that thread requests the stop.
int signal_pipe[2] = {-1, -1};
volatile std::sig_atomic_t signalled = 0;  // the first signal's number

void on_signal(int number) {
  if (signalled != 0) {
    std::signal(number, SIG_DFL);
    std::raise(number);
    return;
  }
  signalled = number;
  const int saved = errno;
  const char byte = 0;
  [[maybe_unused]] const auto ignored = write(signal_pipe[1], &byte, 1);
  errno = saved;
}

}  // namespace

int interrupting_signal() {
  return signalled;
}

std::stop_token interrupt_token() {
  // Never destroyed: the waiting thread outlives main's statics.
  static std::stop_source* const source = [] {
    auto* made = new std::stop_source;
    if (pipe(signal_pipe) != 0) fail("cannot create a pipe: {}", std::strerror(errno));
    std::thread([made] {
      char byte;
      ssize_t got;
      while ((got = read(signal_pipe[0], &byte, 1)) < 0 && errno == EINTR) {
      }
      if (got == 1) made->request_stop();
    }).detach();
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    // The terminal was closed; nohup asks for that to be ignored.
    struct sigaction before {};
    if (sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
      sigaction(SIGHUP, &action, nullptr);
    return made;
  }();
  return source->get_token();
}

}  // namespace sol::app
