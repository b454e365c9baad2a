#include "evaluation/tasks/task_result.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "base/fail.h"
#include "evaluation/statistics.h"
#include "evaluation/tasks/answers.h"
#include "policy/action_json.h"

namespace sol {
namespace {

int best(const std::vector<double>& values) {
  return static_cast<int>(std::ranges::max_element(values) - values.begin());
}

double root_of(size_t n) {
  return std::sqrt(static_cast<double>(n));
}

using Outcome01 = std::function<bool(const DocumentResult&)>;

std::vector<double> outcomes(const std::vector<DocumentResult>& documents, const Outcome01& right) {
  std::vector<double> values;
  for (const DocumentResult& document : documents) values.push_back(right(document) ? 1.0 : 0.0);
  return values;
}

Metric share(const char* name, const std::vector<DocumentResult>& documents, const Outcome01& right,
             std::optional<double> chance) {
  const std::vector<double> values = outcomes(documents, right);
  const MeanDeviation all = mean_deviation(values);
  Metric metric{name, all.mean, all.deviation / root_of(values.size()), false};
  if (chance) {
    // With few documents the measured error may be 0 by luck alone.
    const double guessing = std::sqrt(*chance * (1 - *chance)) / root_of(values.size());
    metric.at_chance =
        std::abs(metric.value - *chance) <= 2 * std::max(*metric.standard_error, guessing);
  }
  return metric;
}

bool right_answer(TaskKind kind, const DocumentResult& document) {
  return kind == TaskKind::generation ? document.strict_match : document.chosen == document.gold;
}

}  // namespace

DocumentResult choose(const TaskDocument& document, bool length_normalised,
                      const std::vector<RequestScore>& scores) {
  DocumentResult result;
  result.id = document.id;
  result.gold = document.gold;
  std::vector<double> by_character, by_byte;
  std::vector<StepTotals> spent;
  for (size_t i = 0; i < scores.size(); ++i) {
    const double score = scores[i].log_likelihood;
    result.log_likelihoods.push_back(score);
    by_character.push_back(score / static_cast<double>(document.characters[i]));
    by_byte.push_back(score / static_cast<double>(document.utf8_bytes[i]));
    spent.push_back(scores[i].spent);
  }
  result.chosen = best(result.log_likelihoods);
  if (length_normalised) {
    result.chosen_norm = best(by_character);
    result.chosen_bytes = best(by_byte);
  }
  result.spent = sum_of(spent);
  return result;
}

DocumentResult judge_answer(const TaskDocument& document, const std::string& text,
                            const StepTotals& spent) {
  DocumentResult result;
  result.id = document.id;
  result.text = text;
  result.strict = strict_answer(text);
  result.flexible = flexible_answer(text);
  result.target = document.target;
  result.strict_match = same_answer(result.strict, document.target);
  result.flexible_match = same_answer(result.flexible, document.target);
  result.spent = spent;
  return result;
}

DocumentResult sum_windows(const TaskDocument& document, const std::vector<RequestScore>& scores,
                           int64_t tokens) {
  DocumentResult result;
  result.id = document.id;
  result.words = document.words;
  result.bytes = document.page_bytes;
  result.tokens = tokens;
  std::vector<StepTotals> spent;
  for (const RequestScore& score : scores) {
    result.log_likelihood += score.log_likelihood;
    spent.push_back(score.spent);
  }
  result.spent = sum_of(spent);
  return result;
}

std::optional<double> chance_level(TaskKind kind, const std::vector<DocumentResult>& documents) {
  if (kind != TaskKind::choices || documents.empty()) return std::nullopt;
  double sum = 0;
  for (const DocumentResult& document : documents) sum += 1.0 / document.choices();
  return sum / static_cast<double>(documents.size());
}

std::vector<Metric> metrics(TaskKind kind, bool length_normalised,
                            const std::vector<DocumentResult>& documents) {
  if (documents.empty()) fail("a task without any document has no result");
  std::vector<Metric> all;
  if (kind == TaskKind::choices) {
    const std::optional<double> chance = chance_level(kind, documents);
    all.push_back(share(
        "acc", documents, [](const DocumentResult& d) { return d.chosen == d.gold; }, chance));
    if (!length_normalised) return all;
    all.push_back(share(
        "acc_norm", documents, [](const DocumentResult& d) { return d.chosen_norm == d.gold; },
        chance));
    all.push_back(share(
        "acc_bytes", documents, [](const DocumentResult& d) { return d.chosen_bytes == d.gold; },
        chance));
  } else if (kind == TaskKind::generation) {
    all.push_back(share(
        "exact_match_strict", documents, [](const DocumentResult& d) { return d.strict_match; },
        std::nullopt));
    all.push_back(share(
        "exact_match_flexible", documents, [](const DocumentResult& d) { return d.flexible_match; },
        std::nullopt));
  } else {
    double log_likelihood = 0, words = 0, bytes = 0;
    for (const DocumentResult& document : documents) {
      log_likelihood += document.log_likelihood;
      words += static_cast<double>(document.words);
      bytes += static_cast<double>(document.bytes);
    }
    all.push_back({"word_perplexity", std::exp(-log_likelihood / words), {}, false});
    all.push_back({"byte_perplexity", std::exp(-log_likelihood / bytes), {}, false});
    all.push_back({"bits_per_byte", -log_likelihood / bytes / std::numbers::ln2, {}, false});
  }
  return all;
}

const Metric* find_metric(const std::vector<Metric>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &Metric::name);
  return found == all.end() ? nullptr : &*found;
}

PairedAccuracy paired_accuracy(TaskKind kind, const std::vector<DocumentResult>& first,
                               const std::vector<DocumentResult>& second) {
  if (first.size() != second.size() || kind == TaskKind::rolling)
    fail("accuracies can be paired over the same documents of a task with answers only");
  std::vector<double> differences;
  for (size_t i = 0; i < first.size(); ++i)
    differences.push_back((right_answer(kind, first[i]) ? 1.0 : 0.0) -
                          (right_answer(kind, second[i]) ? 1.0 : 0.0));
  const MeanDeviation all = mean_deviation(differences);
  return {all.mean, all.deviation / root_of(differences.size())};
}

Json to_json(TaskKind kind, const DocumentResult& result) {
  Json json = {{"doc_id", result.id}};
  if (kind == TaskKind::choices) {
    json["log_likelihoods"] = result.log_likelihoods;
    json["chosen"] = result.chosen;
    if (result.chosen_norm >= 0) {
      json["chosen_norm"] = result.chosen_norm;
      json["chosen_bytes"] = result.chosen_bytes;
    }
    json["gold"] = result.gold;
  } else if (kind == TaskKind::generation) {
    json["text"] = result.text;
    json["strict"] = result.strict;
    json["flexible"] = result.flexible;
    json["target"] = result.target;
    json["strict_match"] = result.strict_match;
    json["flexible_match"] = result.flexible_match;
  } else {
    json["log_likelihood"] = result.log_likelihood;
    json["tokens"] = result.tokens;
    json["words"] = result.words;
    json["bytes"] = result.bytes;
  }
  if (result.spent.steps > 0) {
    json["steps"] = result.spent.steps;
    json["effective_steps"] = result.spent.effective_steps;
    if (result.spent.effective_steps > 0) json["realised"] = budget_to_json(result.spent.realised);
    json["attended"] = result.spent.attended / static_cast<double>(result.spent.steps);
  }
  return json;
}

DocumentResult document_result_from_json(TaskKind kind, const Json& json,
                                         const std::string& where) {
  DocumentResult result;
  result.id = json_get<int64_t>(json, "doc_id", where);
  if (kind == TaskKind::choices) {
    if (!json.contains("log_likelihoods") || !json.at("log_likelihoods").is_array())
      fail("{}: field \"log_likelihoods\" must be a list", where);
    for (const Json& value : json.at("log_likelihoods")) {
      if (!value.is_number()) fail("{}: field \"log_likelihoods\" must hold numbers", where);
      result.log_likelihoods.push_back(value.get<double>());
    }
    result.chosen = json_get<int>(json, "chosen", where);
    result.chosen_norm = json_get_or<int>(json, "chosen_norm", -1, where);
    result.chosen_bytes = json_get_or<int>(json, "chosen_bytes", -1, where);
    result.gold = json_get<int>(json, "gold", where);
  } else if (kind == TaskKind::generation) {
    result.text = json_get<std::string>(json, "text", where);
    result.strict = json_get<std::string>(json, "strict", where);
    result.flexible = json_get<std::string>(json, "flexible", where);
    result.target = json_get<std::string>(json, "target", where);
    result.strict_match = json_get<bool>(json, "strict_match", where);
    result.flexible_match = json_get<bool>(json, "flexible_match", where);
  } else {
    result.log_likelihood = json_get<double>(json, "log_likelihood", where);
    result.tokens = json_get<int64_t>(json, "tokens", where);
    result.words = json_get<int64_t>(json, "words", where);
    result.bytes = json_get<int64_t>(json, "bytes", where);
  }
  if (json.contains("steps")) {
    result.spent.steps = json_get<int64_t>(json, "steps", where);
    result.spent.effective_steps = json_get<int64_t>(json, "effective_steps", where);
    if (result.spent.effective_steps > 0) {
      if (!json.contains("realised")) fail("{}: field \"realised\" is missing", where);
      result.spent.realised = budget_from_json(json.at("realised"), where);
    }
    result.spent.attended =
        json_get<double>(json, "attended", where) * static_cast<double>(result.spent.steps);
  }
  return result;
}

}  // namespace sol
