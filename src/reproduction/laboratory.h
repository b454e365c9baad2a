// What the jobs of a study share: the model, the texts as blocks, the controllers.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "evaluation/named_policy.h"
#include "evaluation/perplexity.h"
#include "reproduction/results.h"
#include "reproduction/study.h"
#include "sol/controller.h"
#include "sol/tokenizer.h"

namespace sol {

// One controller to be trained, for whoever can.
struct TrainingOrder {
  const StudyController* controller = nullptr;
  std::filesystem::path out;  // becomes the controller's directory; a checkpoint may lie in it
  std::filesystem::path cache;
  std::optional<uint64_t> seed;  // instead of the study's
};
// Throws Error when training fails, Cancelled when it is interrupted; returns when `out` holds the
// controller.
using TrainController = std::function<void(const TrainingOrder&)>;

class Laboratory {
 public:
  struct Parts {
    FrozenModel* model = nullptr;
    std::shared_ptr<const Tokenizer> tokenizer;
    const Study* study = nullptr;
    StudyResults* results = nullptr;
    TrainController train;  // empty: controllers must be there already
    bool deterministic = false;
    std::string model_name;  // its directory, for messages
    std::stop_token stop;
    std::function<void(const std::string&)> on_note;  // for people, may be empty
  };
  explicit Laboratory(Parts parts) : parts_(std::move(parts)) {}

  FrozenModel& model() const { return *parts_.model; }
  const Tokenizer& tokenizer() const { return *parts_.tokenizer; }
  const Study& study() const { return *parts_.study; }
  StudyResults& results() const { return *parts_.results; }
  bool deterministic() const { return parts_.deterministic; }
  std::stop_token stop() const { return parts_.stop; }
  void note(const std::string& text) const {
    if (parts_.on_note) parts_.on_note(text);
  }

  void train(const TrainingOrder& order) const;

  // A family's controller, trained or ready. Throws Error when it is not there yet or was made for
  // another model.
  Controller controller(const StudyFamily& family, const std::string& name) const;
  std::filesystem::path controller_dir(const StudyFamily& family, const std::string& name) const;

  // A text in blocks of that length, tokenised once. The reference stays valid.
  const BlockDataset& blocks(const StudyText& text, int block_length);
  // The first `count` blocks (0: all; fewer when the text has fewer) under a controller's protocol.
  BlockEvaluator evaluator(const StudyText& text, const ProtocolOptions& protocol, int count);
  ProtocolOptions protocol(const Controller& controller) const;
  // Of a policy by its name, beside that controller, for an evaluation of so many sequences.
  std::unique_ptr<Policy> policy(const std::string& name, const Controller& controller,
                                 int64_t sequences) const;

 private:
  Parts parts_;
  std::map<std::string, BlockDataset> datasets_;
};

}  // namespace sol
