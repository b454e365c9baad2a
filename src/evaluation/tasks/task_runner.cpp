#include "evaluation/tasks/task_runner.h"

#include <algorithm>

#include "base/fail.h"
#include "evaluation/tasks/answers.h"
#include "policy/generation.h"
#include "policy/stop_strings.h"

namespace sol {
namespace {

// Long prompts of their own each: more at once gains little and costs their caches' memory.
constexpr size_t generations_together = 8;

// One answer being written. Stop strings are looked for in the text with special tokens, as they
// may be such; the answer itself has none.
struct Writing {
  std::unique_ptr<Generation> generation;
  std::unique_ptr<Tokenizer::Stream> stream;
  StopStrings stops;
};

// Of the documents that are done already.
ArmResults begin_pass(const Task& task, ArmResults done, size_t arms) {
  done.resize(arms);
  for (const auto& results : done)
    if (results.size() != done[0].size() || results.size() > task.documents.size())
      fail("{}: {} documents are done under one arm and {} under another, of {}", task.name,
           done[0].size(), results.size(), task.documents.size());
  return done;
}

int64_t steps_of(std::span<const RequestGroup> groups) {
  int64_t steps = 0;
  for (const RequestGroup& group : groups)
    for (const TokenRequest& request : group.requests)
      steps += static_cast<int64_t>(request.scored());
  return steps;
}

}  // namespace

TaskRunner::TaskRunner(FrozenModel& model, const Tokenizer& tokenizer,
                       const ScoringOptions& options, ChatFormat chat)
    : model_(model),
      tokenizer_(tokenizer),
      options_(options),
      chat_(std::move(chat)),
      encoder_(tokenizer, model.config().max_position_embeddings) {}

std::vector<RequestGroup> TaskRunner::requests(const Task& task) const {
  std::vector<RequestGroup> groups;
  for (const TaskDocument& document : task.documents) {
    RequestGroup group{.id = static_cast<uint64_t>(document.id), .requests = {}};
    try {
      if (task.kind == TaskKind::rolling)
        group.requests = encoder_.rolling(document.text);
      else
        for (const ChoiceRequest& request : document.requests)
          group.requests.push_back(
              encoder_.truncated(encoder_.pair(request.context, request.continuation)));
    } catch (const Error& error) {
      fail("{}, document {} of {}: {}", task.name, document.id, task.data.name, error.what());
    }
    if (group.requests.empty())
      fail("{}, document {} of {}: there is nothing to score", task.name, document.id,
           task.data.name);
    groups.push_back(std::move(group));
  }
  return groups;
}

DocumentResult TaskRunner::judge(const Task& task, const RequestGroup& group, size_t document,
                                 const std::vector<RequestScore>& scores) const {
  const TaskDocument& asked = task.documents[document];
  if (task.kind == TaskKind::choices) return choose(asked, task.length_normalised, scores);
  size_t tokens = 0;
  for (const TokenRequest& request : group.requests) tokens += request.scored();
  return sum_windows(asked, scores, static_cast<int64_t>(tokens));
}

ArmResults TaskRunner::prefill(const Task& task, TaskPass pass, const ScoringProgress& progress,
                               std::stop_token stop) {
  if (task.kind == TaskKind::generation)
    fail("{}: answers are generated step by step; there is no prefill mode", task.name);
  const std::vector<RequestGroup> groups = requests(task);
  Scorer scorer(model_, options_);
  ArmResults results = begin_pass(task, std::move(pass.done), 1);
  for (size_t first = results[0].size(); first < groups.size();) {
    const auto part = std::span(groups).subspan(first, Scorer::together(groups, first));
    const auto scores = scorer.prefill(part, {}, stop);
    for (size_t i = 0; i < part.size(); ++i)
      results[0].push_back(judge(task, part[i], first + i, scores[i]));
    first += part.size();
    if (pass.keep) pass.keep(results);
    if (progress) progress(static_cast<int64_t>(first), static_cast<int64_t>(groups.size()));
  }
  return results;
}

ArmResults TaskRunner::decode(const Task& task, std::span<const Arm> arms, TaskPass pass,
                              const ScoringProgress& progress, std::stop_token stop) {
  for (const Arm& arm : arms) check_budget(arm.budget);
  if (task.kind == TaskKind::generation)
    return generate(task, arms, std::move(pass), progress, std::move(stop));
  const std::vector<RequestGroup> groups = requests(task);
  Scorer scorer(model_, options_);
  ArmResults results = begin_pass(task, std::move(pass.done), arms.size());
  if (arms.empty()) return results;
  const int64_t total = steps_of(groups) * static_cast<int64_t>(arms.size());
  for (size_t first = results[0].size(); first < groups.size();) {
    const auto part = std::span(groups).subspan(first, Scorer::together(groups, first));
    const int64_t before =
        steps_of(std::span(groups).first(first)) * static_cast<int64_t>(arms.size());
    const auto scores = scorer.decode(
        part, arms,
        [&](int64_t done, int64_t) {
          if (progress) progress(before + done, total);
        },
        stop);
    for (size_t a = 0; a < arms.size(); ++a)
      for (size_t i = 0; i < part.size(); ++i)
        results[a].push_back(judge(task, part[i], first + i, scores[a][i]));
    first += part.size();
    if (pass.keep) pass.keep(results);
  }
  return results;
}

ArmResults TaskRunner::generate(const Task& task, std::span<const Arm> arms, TaskPass pass,
                                const ScoringProgress& progress, std::stop_token stop) {
  const size_t together =
      std::min(generations_together, static_cast<size_t>(std::max(options_.batch, 1)));
  const size_t documents = task.documents.size();
  ArmResults results = begin_pass(task, std::move(pass.done), arms.size());
  if (arms.empty()) return results;
  for (size_t first = results[0].size(); first < documents;) {
    const size_t count = std::min(together, documents - first);
    for (size_t a = 0; a < arms.size(); ++a)
      generate_batch(task, first, count, arms[a], results[a], stop);
    first += count;
    if (pass.keep) pass.keep(results);
    if (progress)
      progress(static_cast<int64_t>(first * arms.size()),
               static_cast<int64_t>(documents * arms.size()));
  }
  return results;
}

void TaskRunner::generate_batch(const Task& task, size_t first, size_t count, const Arm& arm,
                                std::vector<DocumentResult>& results, std::stop_token stop) {
  GenerationOptions options;
  options.sequence = options_.sequence;
  options.budget = arm.budget;
  options.horizon = options_.horizon;
  options.max_tokens = task.max_tokens;
  std::vector<Writing> writings;
  for (size_t i = first; i < first + count; ++i) {
    if (stop.stop_requested()) throw Cancelled();
    const TaskDocument& document = task.documents[i];
    options.index = static_cast<uint64_t>(document.id);
    const std::string prompt = chat_ ? chat_(document.messages) : document.prompt;
    writings.push_back({std::make_unique<Generation>(
                            model_, *arm.policy, encoder_.prompt(prompt, task.max_tokens), options),
                        tokenizer_.stream(false), StopStrings(task.stops)});
  }
  std::vector<Writing*> active;
  std::vector<Generation*> running;
  std::vector<ControlledStep> steps;
  while (true) {
    active.clear();
    running.clear();
    for (Writing& writing : writings) {
      if (writing.generation->finished()) continue;
      active.push_back(&writing);
      running.push_back(writing.generation.get());
    }
    if (active.empty()) break;
    if (stop.stop_requested()) throw Cancelled();
    run_dense(model_, running, stop);
    steps.clear();
    for (Generation* generation : running) steps.push_back(generation->next_step());
    decode_step(model_, steps);
    for (Writing* writing : active) {
      const int32_t token = writing->generation->complete_step();
      writing->stops.push(writing->stream->push(token));
      if (writing->stops.met() && !writing->generation->finished())
        writing->generation->finish(FinishReason::stopped);
    }
  }
  for (size_t i = 0; i < count; ++i) {
    const GenerationResult& written = writings[i].generation->result();
    const StepTotals spent{written.steps, written.effective_steps, written.realised,
                           written.attended * written.steps};
    results.push_back(
        judge_answer(task.documents[first + i],
                     cut_at_stops(tokenizer_.decode(written.tokens, true), task.stops), spent));
  }
}

}  // namespace sol
