#include "policy/import_checkpoint.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "policy/network.h"
#include "policy/network_weights.h"

namespace sol {
namespace {

bool same(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) return std::abs(a.get<double>() - b.get<double>()) <= 1e-6;
  if (!a.is_array() || !b.is_array()) return a == b;
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!same(a[i], b[i])) return false;
  return true;
}

// The range of an axis' budgets as the authors' training wrote it down: of its list, where there is
// one, else of its two limits. None where the file does not say.
std::optional<BudgetRange> saved_range(const Json& saved, const std::string& axis,
                                       const std::string& where) {
  const std::string list = "budget_" + axis + "_list", low = "budget_" + axis + "_min",
                    high = "budget_" + axis + "_max";
  const auto known = [&](const std::string& name) {
    return saved.contains(name) && !saved[name].is_null();
  };
  if (known(list)) {
    const Json& budgets = saved[list];
    if (!budgets.is_array() || budgets.empty() ||
        !std::ranges::all_of(budgets, [](const Json& budget) { return budget.is_number(); }))
      fail("{}: {} = {} is no list of numbers", where, list, to_text(budgets));
    const auto [least, most] = std::ranges::minmax(budgets.get<std::vector<double>>());
    return BudgetRange{least, most};
  }
  if (!known(low) || !known(high)) return std::nullopt;
  return BudgetRange{json_get<double>(saved, low.c_str(), where),
                     json_get<double>(saved, high.c_str(), where)};
}

void check_ranges(const Json& saved, const ImportSettings& s, const std::string& where) {
  constexpr std::pair<Axis, const char*> axes[]{
      {Axis::kappa, "tok"}, {Axis::rho, "prune"}, {Axis::eta, "q_ratio"}};
  for (const auto& [axis, name] : axes) {
    if (!s.space.on(axis)) continue;
    const auto trained = saved_range(saved, name, where);
    const auto& [low, high] = s.controller.ranges[axis];
    if (!trained || same({trained->low, trained->high}, {low, high})) continue;
    fail("{}: was trained for budgets budget_{} from {} to {}, but the configuration says {} to {}",
         where, name, trained->low, trained->high, low, high);
  }
}

// What the authors' training wrote beside the weights, as far as it decides what they mean. The
// order of an axis' levels counts: it numbers the actions.
void check_settings(const Json& saved, const ImportSettings& s, const std::string& where) {
  const SequenceOptions& sequence = s.controller.sequence;
  std::vector<double> kappa;  // as they are written: 0.1, not float32's 0.10000000149
  for (const float level : s.space.kappa()) kappa.push_back(std::stod(fmt::format("{}", level)));
  const Json expected{{"keep_fracs", kappa},
                      {"struct_prune_choices", s.space.prune_notation()},
                      {"quant_choices", s.space.quant_notation()},
                      {"rollout_len", s.controller.horizon},
                      {"quest_page_size", sequence.page_size},
                      {"Ts", sequence.sinks},
                      {"Tw", sequence.window},
                      {"policy_n_heads", s.heads},
                      {"sparsity_criteria", "quest"}};
  for (const auto& [name, value] : expected.items()) {
    const auto found = saved.find(name);
    if (found == saved.end() || found->is_null() || same(*found, value)) continue;
    fail("{}: was trained with {} = {}, but the configuration says {}", where, name,
         to_text(*found), to_text(value));
  }
  check_ranges(saved, s, where);
}

const TorchCheckpoint::Tensor& require(const TorchCheckpoint& checkpoint, const char* name,
                                       size_t dimensions, const std::string& where) {
  const auto found = checkpoint.state.find(name);
  if (found == checkpoint.state.end())
    fail("{}: not one of the authors' policies: {} is missing", where, name);
  if (found->second.shape.size() != dimensions)
    fail("{}: {} has {} dimensions instead of {}", where, name, found->second.shape.size(),
         dimensions);
  return found->second;
}

// The weights say all but the number of heads.
PolicyNetworkShape shape_of(const TorchCheckpoint& checkpoint, const ImportSettings& settings,
                            const std::string& where) {
  const auto rows = [&](const char* name) { return require(checkpoint, name, 2, where).shape[0]; };
  const auto columns = [&](const char* name) {
    return require(checkpoint, name, 2, where).shape[1];
  };
  const auto small = [&](int64_t size) {
    if (size > 1 << 20) fail("{}: a size of {} is beyond this program", where, size);
    return static_cast<int>(size);
  };
  PolicyNetworkShape shape;
  shape.hidden_size = settings.hidden_size;
  shape.actions = settings.space.size();
  shape.heads = settings.heads;
  shape.d_model = small(rows("obs_proj.weight"));
  shape.action_dim = small(columns("action_emb.weight"));
  shape.max_length = small(rows("pos_emb.weight"));
  shape.mlp_ratio = static_cast<double>(rows("blocks.0.ff.0.weight")) / shape.d_model;
  shape.layers = 0;
  while (checkpoint.state.contains(fmt::format("blocks.{}.ln1.weight", shape.layers)))
    ++shape.layers;
  const int64_t width = columns("obs_proj.weight"),
                twice_hidden = width - scalar_width - shape.action_dim;
  if (width != observation_width(shape))
    fail("{}: made for a model of width {}, but this one has {}", where, twice_hidden / 2,
         shape.hidden_size);
  if (rows("pi.weight") != shape.actions)
    fail("{}: chooses among {} actions, but the configuration has {}", where, rows("pi.weight"),
         shape.actions);
  if (shape.max_length < settings.controller.horizon)
    fail("{}: has {} positions, but the configuration's horizon is {}", where, shape.max_length,
         settings.controller.horizon);
  return shape;
}

}  // namespace

Controller import_controller(TorchCheckpoint checkpoint, ImportSettings settings,
                             const std::string& where) {
  check_settings(checkpoint.settings, settings, where);
  const PolicyNetworkShape shape = shape_of(checkpoint, settings, where);
  Parameters parameters;
  for (auto& [name, tensor] : checkpoint.state)
    parameters[name] = {tensor.shape, std::move(tensor.values)};
  settings.controller.training_json =
      to_text(Json{{"imported_from", where}, {"settings", checkpoint.settings}});
  try {
    return Controller(std::move(settings.space), std::move(settings.controller),
                      std::make_shared<const PolicyNetwork>(shape, std::move(parameters)));
  } catch (const Error& error) {
    fail("{}: {}", where, error.what());
  }
}

}  // namespace sol
