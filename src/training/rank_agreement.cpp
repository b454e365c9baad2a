#include "training/rank_agreement.h"

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "base/hash.h"
#include "base/json_difference.h"

namespace sol {

void require_same_on_all_ranks(const Json& identity, ProcessGroup& group) {
  const std::vector<std::string> all = group.all_gather(to_text(identity));
  const Json first = parse_json(all[0], "rank 0");
  for (size_t r = 1; r < all.size(); ++r) {
    const Json other = parse_json(all[r], fmt::format("rank {}", r));
    const auto difference = first_difference(first, other);
    if (!difference) continue;
    fail(
        "rank {} does not train the same as rank 0: {} is {} here and {} there; start all "
        "processes with the same configuration, options, model and data",
        r, difference->field, difference->second, difference->first);
  }
}

void require_same_parameters(const Parameters& parameters, ProcessGroup& group) {
  if (group.size() == 1) return;
  Hash128 hash;
  for (const auto& entry : parameters) hash.add(std::as_bytes(std::span(entry.second.values)));
  const std::vector<std::string> all = group.all_gather(hash.hexadecimal());
  for (size_t r = 1; r < all.size(); ++r)
    if (all[r] != all[0])
      fail(
          "the policies of rank 0 and rank {} differ: do all processes start from the same "
          "controller "
          "(--init), and do all machines run the same program on processors with the same "
          "instructions?",
          r);
}

void broadcast_state(TrainingState& state, const Parameters& parameters, ProcessGroup& group) {
  Json counters{{"collections", state.collections}, {"position", state.position},
                {"minibatches", state.minibatches}, {"updates", state.updates},
                {"seconds", state.seconds},         {"metrics", to_json(state.metrics)}};
  std::string text = to_text(counters);
  group.broadcast(text);
  const std::string where = "the state that rank 0 sent";
  counters = parse_json(text, where);
  state.collections = json_get<int64_t>(counters, "collections", where);
  state.position = json_get<int64_t>(counters, "position", where);
  state.minibatches = json_get<int64_t>(counters, "minibatches", where);
  state.updates = json_get<int64_t>(counters, "updates", where);
  state.seconds = json_get<double>(counters, "seconds", where);
  state.metrics = metrics_from_json(counters.at("metrics"), where);
  for (const auto& [name, parameter] : parameters) {
    state.parameters[name].shape = state.gradients[name].shape = parameter.shape;
    for (std::vector<float>* values :
         {&state.parameters[name].values, &state.gradients[name].values, &state.moments[name].first,
          &state.moments[name].second}) {
      values->resize(parameter.values.size());
      group.broadcast(*values);
    }
  }
}

double largest(double mine, ProcessGroup& group) {
  double out = mine;
  for (const std::string& bytes :
       group.all_gather({reinterpret_cast<const char*>(&mine), sizeof(mine)})) {
    double other = 0;
    std::memcpy(&other, bytes.data(), sizeof(other));
    out = std::max(out, other);
  }
  return out;
}

}  // namespace sol
