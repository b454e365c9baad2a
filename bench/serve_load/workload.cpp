#include "serve_load/workload.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sol/action.h"

namespace sol::load {
namespace {

constexpr std::array vocabulary{"the",     "of",    "and",    "in",      "a",     "river",   "was",
                                "city",    "first", "during", "century", "north", "railway", "team",
                                "song",    "which", "school", "with",    "king",  "game",    "from",
                                "station", "album", "storm",  "by",      "army",  "season"};
// Requests of one application often begin alike.
constexpr const char* shared_beginning =
    "The following is a chapter of an encyclopedia . It was written by several authors over many "
    "years and describes places , people and events of the region in plain words . ";

bool chance(Random& random, double probability) {
  return random.uniform_double() < probability;
}

double between(Random& random, double low, double high) {
  return low + (high - low) * random.uniform_double();
}

// As many short ones as long ones.
int length_between(Random& random, int low, int high) {
  return static_cast<int>(std::lround(std::exp(between(random, std::log(low), std::log(high)))));
}

// No more digits than a person would write.
double rounded(double value, double step) {
  return std::round(value / step) * step;
}

double share(Random& random, const Json& axis, double step) {
  const double low = axis["low"].get<double>(), high = axis["high"].get<double>();
  return std::clamp(rounded(between(random, low, high), step), low, high);
}

Json one_action(Random& random) {
  Action action;
  action.kappa = 0.05f * static_cast<float>(1 + random.below(20));
  action.rho = 0.05f * static_cast<float>(1 + random.below(20));
  action.bits = 3 + static_cast<int>(random.below(14));
  return {{"fixed", to_string(action)}};
}

}  // namespace

std::string Workload::words(Random& random, int count) const {
  std::string text;
  for (int i = 0; i < count; ++i) {
    if (i > 0) text += ' ';
    text += vocabulary[random.below(vocabulary.size())];
  }
  return text;
}

Json Workload::ids(Random& random, int count) const {
  Json list = Json::array();
  for (int i = 0; i < count; ++i)
    list.push_back(random.below(static_cast<uint32_t>(server_.vocabulary())));
  return list;
}

Json Workload::dial(Random& random, bool timed, std::string& kind) const {
  const Json& offered = server_.dial();
  const bool learned = offered["policies"].size() > 1;
  const double choice = random.uniform_double();
  if (timed && choice < 0.15 && !offered["latency"].is_null()) {
    kind = "time";
    const double fastest = offered["latency"]["fastest_ms"].get<double>();
    const double dense = offered["latency"]["dense_ms"].get<double>();
    return {{"ms_per_token", rounded(between(random, fastest, 2 * dense), 1e-3) + 1e-3}};
  }
  if (choice < 0.35) {
    kind = "dense";
    return {};
  }
  if (choice < 0.5) {
    kind = "action";
    return one_action(random);
  }
  const Json& axes = offered["axes"];
  Json dial;
  if (choice < 0.75) {
    kind = "budget";
    const double low = offered["budget"]["low"].get<double>();
    const double high = offered["budget"]["high"].get<double>();
    dial["budget"] = std::clamp(rounded(between(random, low, high), 1e-3), low, high);
  } else {
    kind = "axes";
    dial["keep"] = share(random, axes["keep"], 0.01);
    if (chance(random, 0.8)) dial["prune"] = share(random, axes["prune"], 0.01);
    if (chance(random, 0.8)) dial["bits"] = share(random, axes["bits"], 0.1);
  }
  // A budget's range is that of the policy that a request gets when it names none.
  if (learned && kind == "axes" && chance(random, 0.3)) dial["policy"] = "fixed";
  return dial;
}

void Workload::add_prompt(Random& random, Request& request) const {
  const int longest = std::max(8, server_.context() / 4);
  const int length = length_between(random, 4, longest);
  if (server_.dial()["chat"].get<bool>() && chance(random, 0.3)) {
    request.path = "/v1/chat/completions";
    request.body["messages"] =
        Json::array({{{"role", "user"}, {"content", words(random, std::max(1, length / 2))}}});
  } else if (chance(random, 0.3)) {
    request.body["prompt"] = ids(random, length);
  } else {
    // A word may be two tokens.
    std::string text = words(random, std::max(1, length / 2));
    if (chance(random, 0.4)) text = shared_beginning + text;
    request.body["prompt"] = text;
  }
}

void Workload::add_options(Random& random, Request& request) const {
  Json& body = request.body;
  const bool chat = body.contains("messages");
  body["max_tokens"] = length_between(random, 4, std::clamp(server_.context() / 4, 8, 192));
  body["seed"] = random.below(1u << 30);
  body["ignore_eos"] = true;
  if (chance(random, 0.2)) body.erase("ignore_eos");
  body["temperature"] = chance(random, 0.3) ? 0.0 : rounded(between(random, 0.1, 1.2), 0.1);
  if (chance(random, 0.2)) body["top_p"] = 0.9;
  if (chance(random, 0.2)) body["top_k"] = 40;
  if (chance(random, 0.2)) body["n"] = 2 + random.below(2);
  if (chance(random, 0.1)) body["stop"] = Json::array({" the king", "\n\n"});
  if (chance(random, 0.1)) body["user"] = "somebody";
  if (chance(random, 0.3)) body["logprobs"] = chat ? Json(true) : Json(random.below(4));
  if (chance(random, 0.6)) {
    body["stream"] = true;
    if (chance(random, 0.7)) body["stream_options"] = {{"include_usage", true}};
  } else if (!chat && chance(random, 0.1)) {
    body["echo"] = true;
  }
}

Request Workload::draw(Random& random, bool timed) const {
  Request request;
  add_prompt(random, request);
  add_options(random, request);
  Json sol = dial(random, timed, request.kind);
  if (chance(random, 0.4)) sol["actions"] = true;
  if (!sol.is_null()) request.body["sol"] = std::move(sol);
  return request;
}

Request Workload::dense_stream(Random& random, int tokens) const {
  Request request;
  request.kind = "dense";
  request.body = {{"prompt", ids(random, 16)},
                  {"max_tokens", tokens},
                  {"temperature", 0},
                  {"ignore_eos", true},
                  {"stream", true},
                  {"stream_options", {{"include_usage", true}}}};
  return request;
}

}  // namespace sol::load
