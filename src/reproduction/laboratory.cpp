#include "reproduction/laboratory.h"

#include <numeric>

#include "base/fail.h"
#include "base/file_io.h"

namespace sol {
namespace {

// Dense prefixes are kept in memory between the passes of a job as far as this goes: twice as far
// as in a single command, since a study's sweeps are the longest, and nothing else is run beside
// them.
constexpr uint64_t study_prefix_memory = uint64_t{2} << 30;

}  // namespace

void Laboratory::train(const TrainingOrder& order) const {
  if (!parts_.train)
    fail("{} is to be trained, but this program was built without training",
         order.controller->name);
  parts_.train(order);
}

std::filesystem::path Laboratory::controller_dir(const StudyFamily& family,
                                                 const std::string& name) const {
  return sol::controller_dir(results(), family, name);
}

Controller Laboratory::controller(const StudyFamily& family, const std::string& name) const {
  const std::filesystem::path dir = controller_dir(family, name);
  if (!path_exists(dir / "controller.json"))
    fail("{}: there is no controller; its training has not finished", dir.string());
  Controller controller = Controller::load(dir);
  controller.require_model(model().fingerprint(), parts_.model_name);
  if (controller.settings().costs)
    fail("{}: was trained for times; a study compares averages per axis", dir.string());
  return controller;
}

const BlockDataset& Laboratory::blocks(const StudyText& text, int block_length) {
  if (text.files.empty())
    fail("the study names no {} text: give it in the configuration or on the command line",
         text.label);
  std::string key =
      fmt::format("{} {} {}", text.label, block_length, static_cast<int>(text.format));
  for (const auto& file : text.files) key += " " + file.string();
  const auto found = datasets_.find(key);
  if (found != datasets_.end()) return found->second;
  TextOptions options;
  options.format = text.format;
  return datasets_
      .emplace(key, BlockDataset::open(text.files, options, tokenizer(), block_length,
                                       results().dir() / "cache", stop()))
      .first->second;
}

BlockEvaluator Laboratory::evaluator(const StudyText& text, const ProtocolOptions& protocol,
                                     int count) {
  const BlockDataset& data = blocks(text, protocol.block_length());
  const int64_t used = count == 0 ? data.size() : std::min<int64_t>(count, data.size());
  std::vector<int64_t> indices(static_cast<size_t>(used));
  std::iota(indices.begin(), indices.end(), int64_t{0});
  return BlockEvaluator(model(), data, std::move(indices), protocol, study_prefix_memory);
}

ProtocolOptions Laboratory::protocol(const Controller& controller) const {
  ProtocolOptions protocol;
  protocol.context = study().context;
  protocol.horizon = controller.settings().horizon;
  protocol.sequence = controller.settings().sequence;
  return protocol;
}

std::unique_ptr<Policy> Laboratory::policy(const std::string& name, const Controller& controller,
                                           int64_t sequences) const {
  PolicyParts parts;
  parts.space = controller.space();
  parts.controller = &controller;
  parts.seed = study().seed;
  parts.deterministic = deterministic();
  parts.vocab_size = model().config().vocab_size;
  parts.sequences = sequences;
  return make_named_policy(name, parts);
}

}  // namespace sol
