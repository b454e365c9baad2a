// sol serve: an OpenAI-compatible server with a budget dial.
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/number_text.h"
#include "base/shown_text.h"
#include "base/stopwatch.h"
#include "commands.h"
#include "common.h"
#include "cost_file.h"
#include "evaluation_flags.h"
#include "policy/cost_measurement.h"
#include "policy/policies.h"
#include "serving/api_key.h"
#include "serving/http_server.h"
#include "validators.h"

namespace sol::app {
namespace {

struct ServeFlags {
  ModelFlags model;
  SequenceFlags sequence;
  std::filesystem::path controller, costs, chat_template;
  std::string name;
  HttpOptions http;
  std::optional<std::string> api_key;
  SchedulerOptions scheduler;
  std::optional<int> horizon;
  int context = 0;
  int64_t cache_tokens = 0;
  double body_mib = 8, drain_seconds = 30;
  std::vector<std::string> effort;
  std::string latency = "on";
  bool log = false;
};

constexpr int default_context = 8192;

std::map<std::string, double> parse_effort(const std::vector<std::string>& entries) {
  std::map<std::string, double> map;
  for (const std::string& entry : entries) {
    const size_t equals = entry.find('=');
    const std::string name = entry.substr(0, equals);
    if (name != "low" && name != "medium" && name != "high")
      fail("--reasoning-effort {}: expected low=BUDGET, medium=BUDGET or high=BUDGET", entry);
    const auto budget =
        parse_number<double>(equals == std::string::npos ? "" : entry.substr(equals + 1));
    if (!budget || !(*budget > 0 && *budget <= 1))
      fail("--reasoning-effort {}: the budget must be a net keep-rate in (0, 1]", entry);
    if (!map.emplace(name, *budget).second) fail("--reasoning-effort: {} is given twice", name);
  }
  return map;
}

// A secret often comes from a file, whose last line has an end.
std::string environment_key() {
  const char* variable = std::getenv("SOL_API_KEY");
  if (!variable) return {};
  std::string key = variable;
  if (key.ends_with('\n')) key.pop_back();
  if (key.ends_with('\r')) key.pop_back();
  require_sendable_key(key, "SOL_API_KEY");
  return key;
}

// What is read before anybody is told that the server listens: small files, of which one that is
// missing or broken is a slip to be told at once.
struct SmallFiles {
  std::optional<Controller> controller;
  std::optional<std::string> chat_template;
};

SmallFiles read_small_files(const ServeFlags& flags) {
  SmallFiles files;
  (void)load_config(flags.model.model_dir());
  if (!flags.controller.empty()) files.controller = Controller::load(flags.controller);
  if (!flags.costs.empty()) (void)read_file(flags.costs);
  if (flags.chat_template.empty()) return files;
  files.chat_template = read_file(flags.chat_template);
  (void)ChatTemplate(*files.chat_template, flags.chat_template.string());
  return files;
}

void use_policies(const ServeFlags& flags, std::optional<Controller> controller,
                  ServedModel& served) {
  if (!controller)
    return use_fixed_policy(served, flags.sequence.get(), flags.horizon.value_or(16));
  require_model(*controller, flags.model, *served.model);
  use_controller(served, std::move(*controller), file_name(flags.controller));
}

void use_chat_template(const ServeFlags& flags, const std::optional<std::string>& source,
                       ServedModel& served) {
  if (!source) {
    served.chat = ChatTemplate::find(flags.model.model_dir());
    return;
  }
  const auto text = [&](int id) { return id < 0 ? "" : served.tokenizer->token_bytes(id); };
  served.chat.emplace(*source, flags.chat_template.string(), text(served.tokenizer->bos_token_id()),
                      text(served.tokenizer->eos_token_id()));
}

// The cache holds at least one request as long as the context: what does not fit is not offered.
void set_limits(const ServeFlags& flags, ServedModel& served, SchedulerOptions& scheduler) {
  const int positions = served.model->config().max_position_embeddings;
  if (flags.context > positions)
    fail("--context {}: the model has only {} positions", flags.context, positions);
  served.context = flags.context > 0 ? flags.context : std::min(positions, default_context);
  if (flags.cache_tokens == 0) {
    scheduler.cache_tokens =
        std::max<int64_t>(served.context + 64,
                          static_cast<int64_t>(scheduler.batch) * std::min(served.context, 2048));
    return;
  }
  scheduler.cache_tokens = flags.cache_tokens;
  const int64_t longest = longest_sequence(flags.cache_tokens);
  if (flags.context > longest)
    fail("--context {}: a cache of {} tokens (--cache-tokens) holds no more than {} of them",
         flags.context, flags.cache_tokens, longest);
  served.context = static_cast<int>(std::min<int64_t>(served.context, longest));
}

// A look at the machine while starting: enough to aim, and the loop corrects the rest.
CostTable quick_costs(const ServedModel& served) {
  CostMeasurement quick;
  quick.sequence = served.sequence;
  quick.horizon = served.horizon;
  quick.repetitions = 3;
  quick.lengths = {std::min(64, served.context)};
  for (const int keys : {512, 1024})
    if (keys <= served.context) quick.lengths.push_back(keys);
  return measure_costs(*served.model, quick, {}, interrupt_token()).table;
}

// What a request would be refused for is refused at once.
void check_effort(const ServedModel& served) {
  if (served.reasoning_effort.empty()) return;
  if (served.learned && served.learned->costs())
    fail(
        "--reasoning-effort names net keep-rates, but this controller was trained for times: "
        "requests ask it for ms_per_token");
  const std::optional<NetRange> range = net_range(served, served.learned != nullptr);
  if (!range)
    fail(
        "--reasoning-effort names net keep-rates, but this controller has no validation frontier "
        "that says what they mean; `sol sweep -c CONTROLLER --data VALIDATION_TEXT "
        "--store-frontier -o REPORT` measures one");
  for (const auto& [name, budget] : served.reasoning_effort)
    if (budget < range->low || budget > range->high)
      fail("--reasoning-effort {}={}: net keep-rates here are {}", name, budget,
           shown_range(range->low, range->high));
}

// Sets the scheduler's cache as well, which decides on the context.
ServedModel load_served(const ServeFlags& flags, SmallFiles files,
                        std::map<std::string, double> effort, SchedulerOptions& scheduler) {
  ServedModel served;
  note("loading {}", file_name(flags.model.model_dir()));
  served.model = load_flagged_model(flags.model);
  served.tokenizer = load_flagged_tokenizer(flags.model, *served.model);
  served.name = flags.name.empty() ? file_name(flags.model.model_dir()) : flags.name;
  served.deterministic = flags.model.deterministic;
  served.reasoning_effort = std::move(effort);
  use_policies(flags, std::move(files.controller), served);
  use_chat_template(flags, files.chat_template, served);
  set_limits(flags, served, scheduler);
  if (const int positions = served.model->config().max_position_embeddings;
      served.horizon > positions)
    fail("--horizon {}: the model has only {} positions", served.horizon, positions);
  check_effort(served);
  if (!flags.costs.empty()) {
    const RunInfo run = describe_run(*served.model, served.name, 0, command_line());
    served.costs =
        read_costs(flags.costs, run, served.horizon, served.sequence, served.deterministic);
  } else if (flags.latency == "on") {
    note("measuring what tokens cost; --costs FILE or --latency off saves that");
    served.costs = quick_costs(served);
  }
  served.loaded_at = std::chrono::duration_cast<std::chrono::seconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count();
  return served;
}

void wait_for_interrupt(const HttpServer& http) {
  std::mutex mutex;
  std::condition_variable_any interrupted;
  std::unique_lock lock(mutex);
  const std::stop_token token = interrupt_token();
  while (!token.stop_requested()) {
    if (!http.listening())
      fail("listening ended: the system has no more file descriptors or memory for connections");
    interrupted.wait_for(lock, token, std::chrono::seconds(1), [] { return false; });
  }
}

// A server that nobody can find is of no use.
void announce(const std::string& host, int port) {
  const bool ipv6 = host.find(':') != std::string::npos;
  const std::string address = fmt::format("http://{}:{}", ipv6 ? "[" + host + "]" : host, port);
  try {
    print("listening on {}\n", address);
  } catch (const OutputClosed&) {
    throw;
  } catch (const Error& error) {
    fail("cannot say that it listens on {}: {}", address, error.what());
  }
}

void run_serve(ServeFlags& flags) {
  interrupt_token();  // from now on signals end the server in order
  if (flags.api_key) require_sendable_key(*flags.api_key, "--api-key");
  flags.http.api_key = flags.api_key ? *flags.api_key : environment_key();
  flags.http.body_limit = static_cast<size_t>(flags.body_mib * (1 << 20));
  // Everyone in the queue and the batch has a connection, and some are left for those to be
  // refused.
  flags.http.threads = flags.scheduler.batch + flags.scheduler.queue + 32;
  if (flags.log) flags.http.log = [](const std::string& line) { note("{}", line); };
  std::map<std::string, double> effort = parse_effort(flags.effort);
  SmallFiles files = read_small_files(flags);

  Metrics metrics;
  HttpServer http(flags.http, metrics);
  const int port = http.start();
  announce(flags.http.host, port);
  const Stopwatch loading;
  SchedulerOptions options = flags.scheduler;
  const ServedModel served = load_served(flags, std::move(files), std::move(effort), options);
  Scheduler scheduler(served, options, metrics);

  std::exception_ptr broken;
  std::thread watch([&] {
    try {
      wait_for_interrupt(http);
    } catch (...) {
      broken = std::current_exception();
    }
    note("shutting down: no more requests are taken, those that run have {} s",
         flags.drain_seconds);
    http.refuse();
    scheduler.drain(flags.drain_seconds);
    scheduler.stop();
  });
  // Once nothing can throw any more: requests use the model and the scheduler.
  http.serve(served, scheduler);
  note("{} is ready after {:.1f} s: context {}, {} at a time, cache for {} tokens, {}", served.name,
       loading.seconds(), served.context, options.batch, options.cache_tokens,
       served.controller ? "controller " + served.controller_name : "no controller");
  // On the thread that loaded the model: OpenMP has a team of threads for each thread that ever
  // asked for one, and where there are more of them than processors none of them spins any more,
  // which costs half a millisecond per token.
  scheduler.run();
  watch.join();
  http.stop();
  if (broken) std::rethrow_exception(broken);
}

void add_http_options(CLI::App& command, ServeFlags& flags) {
  command.add_option("--host", flags.http.host, "Address to listen on; 0.0.0.0 for all of them")
      ->capture_default_str();
  command.add_option("--port", flags.http.port, "Port; 0 for any that is free")
      ->check(in_range(0, 65535))
      ->capture_default_str();
  command.add_option("--api-key", flags.api_key,
                     "Asked of every request (default: the environment's SOL_API_KEY, else none)");
  command.add_option("--body-limit", flags.body_mib, "Size of a request's body at most, MiB")
      ->check(number_in(0.001, 1024))
      ->capture_default_str();
  command
      .add_option("--request-seconds", flags.http.request_seconds,
                  "A request that is not all there by then is given up")
      ->check(number_in(0.1, 3600))
      ->capture_default_str();
  command
      .add_option("--drain-seconds", flags.drain_seconds,
                  "What running requests have left when the server is told to end")
      ->check(number_in(0, 86400))
      ->capture_default_str();
  command.add_flag("--log", flags.log, "A line on standard error for each request");
}

void add_scheduler_options(CLI::App& command, ServeFlags& flags) {
  command.add_option("--batch", flags.scheduler.batch, "Sequences computed together, at most")
      ->check(in_range(1, 256))
      ->capture_default_str();
  command.add_option("--queue", flags.scheduler.queue, "Sequences waiting, at most; then 429")
      ->check(in_range(0, 1000))  // each may have a thread
      ->capture_default_str();
  command
      .add_option("--context", flags.context,
                  "Tokens of prompt and answer together, at most (default: the model's "
                  "positions, 8192 at most, as far as --cache-tokens reach)")
      ->check(at_least(2));
  command
      .add_option("--cache-tokens", flags.cache_tokens,
                  "Tokens in the cache, at most (default: a context of up to 2048 for each of a "
                  "batch)")
      ->check(at_least(64));
}

}  // namespace

void add_serve_command(CLI::App& app) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* command =
      app.add_subcommand("serve", "An OpenAI-compatible server with a budget dial, and a page");
  add_model_flags(*command, flags->model);
  CLI::Option* controller =
      command->add_option("-c,--controller", flags->controller, "A trained controller");
  controller->type_name("DIR");
  command->add_option("--name", flags->name,
                      "What requests call the model (default: its directory's name)");
  add_http_options(*command, *flags);
  add_scheduler_options(*command, *flags);
  command
      ->add_option("--horizon", flags->horizon,
                   "Steps of an episode, after which the cache is refreshed (default: the "
                   "controller's, else 16)")
      ->check(at_least(1))
      ->excludes(controller);
  command
      ->add_option("--chat-template", flags->chat_template,
                   "A Jinja file to use instead of the model's own")
      ->type_name("FILE");
  command
      ->add_option("--reasoning-effort", flags->effort,
                   "low=BUDGET, medium=BUDGET, high=BUDGET: net keep-rates for OpenAI's "
                   "reasoning_effort")
      ->type_name("NAME=BUDGET")
      ->delimiter(',');
  CLI::Option* costs =
      command->add_option("--costs", flags->costs, "What tokens cost, measured by `sol calibrate`");
  costs->type_name("FILE");
  command
      ->add_option("--latency", flags->latency,
                   "Measure what tokens cost while starting, so that times can be asked for: "
                   "on, off")
      ->check(CLI::IsMember({"on", "off"}))
      ->excludes(costs)
      ->capture_default_str();
  add_sequence_flags(*command, flags->sequence, controller);
  command->callback([flags] { run_serve(*flags); });
}

}  // namespace sol::app
