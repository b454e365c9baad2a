// What a task gave: per document, and over all of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "evaluation/tasks/scorer.h"
#include "evaluation/tasks/task.h"

namespace sol {

struct DocumentResult {
  int64_t id = 0;
  StepTotals spent;  // none in prefill mode

  // choices
  std::vector<double> log_likelihoods;  // per choice, nats
  int gold = -1;
  int chosen = -1;        // largest log-likelihood, the first of equal ones
  int chosen_norm = -1;   // per code point of the choice's text; -1: not asked for
  int chosen_bytes = -1;  // per byte
  int choices() const { return static_cast<int>(log_likelihoods.size()); }

  // generation
  std::string text;  // written
  std::string strict, flexible, target;
  bool strict_match = false, flexible_match = false;

  // rolling
  double log_likelihood = 0;
  int64_t tokens = 0, words = 0, bytes = 0;
};

DocumentResult choose(const TaskDocument& document, bool length_normalised,
                      const std::vector<RequestScore>& scores);
DocumentResult judge_answer(const TaskDocument& document, const std::string& text,
                            const StepTotals& spent);
DocumentResult sum_windows(const TaskDocument& document, const std::vector<RequestScore>& scores,
                           int64_t tokens);

// A figure over all documents.
struct Metric {
  std::string name;  // "acc", "acc_norm", "exact_match_strict", "word_perplexity", ...
  double value = 0;
  std::optional<double> standard_error;  // sample deviation / sqrt(n); none for perplexities
  // Accuracies: within two standard errors of what guessing gives (the larger one of the measured
  // and of guessing's own), so that nothing follows from it.
  bool at_chance = false;
};

// Mean over documents of 1 / number of choices; none for other kinds.
std::optional<double> chance_level(TaskKind kind, const std::vector<DocumentResult>& documents);

// Throws Error for no document at all.
std::vector<Metric> metrics(TaskKind kind, bool length_normalised,
                            const std::vector<DocumentResult>& documents);
const Metric* find_metric(const std::vector<Metric>& all, std::string_view name);

// Paired over documents: how much more often the first is right.
struct PairedAccuracy {
  double difference = 0, standard_error = 0;
};
PairedAccuracy paired_accuracy(TaskKind kind, const std::vector<DocumentResult>& first,
                               const std::vector<DocumentResult>& second);

Json to_json(TaskKind kind, const DocumentResult& result);
// Inverse of the above; throws Error naming `where` and the field.
DocumentResult document_result_from_json(TaskKind kind, const Json& json, const std::string& where);

}  // namespace sol
