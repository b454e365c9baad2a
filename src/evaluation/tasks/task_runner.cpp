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

// How many documents are done; throws Error for a pass that does not fit the task.
size_t begin(const Task& task, const TaskPass& pass, size_t arms) {
  if (pass.results.size() != arms)
    fail("{}: results of {} arms were begun, of {}", task.name, pass.results.size(), arms);
  const size_t done = arms > 0 ? pass.results[0].size() : 0;
  for (const auto& results : pass.results)
    if (results.size() != done || done > task.documents.size())
      fail("{}: {} documents are done under one arm and {} under another, of {}", task.name, done,
           results.size(), task.documents.size());
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

void TaskRunner::prefill(const Task& task, TaskPass& pass, const ScoringProgress& progress,
                         std::stop_token stop) {
  if (task.kind == TaskKind::generation)
    fail("{}: answers are generated step by step; there is no prefill mode", task.name);
  const std::vector<RequestGroup> groups = requests(task);
  Scorer scorer(model_, options_);
  for (size_t first = begin(task, pass, 1); first < groups.size();) {
    const auto part = std::span(groups).subspan(first, Scorer::together(groups, first));
    const auto scores = scorer.prefill(part, stop);
    for (size_t i = 0; i < part.size(); ++i)
      pass.results[0].push_back(judge(task, part[i], first + i, scores[i]));
    first += part.size();
    if (pass.keep) pass.keep();
    if (progress) progress(static_cast<int64_t>(first), static_cast<int64_t>(groups.size()));
  }
}

void TaskRunner::decode(const Task& task, std::span<const Arm> arms, TaskPass& pass,
                        const ScoringProgress& progress, std::stop_token stop) {
  if (task.kind == TaskKind::generation) return generate(task, arms, pass, progress, stop);
  const std::vector<RequestGroup> groups = requests(task);
  Scorer scorer(model_, options_);
  size_t first = begin(task, pass, arms.size());
  if (arms.empty()) return;
  const auto count = static_cast<int64_t>(arms.size());
  const int64_t total = count * steps_of(groups);
  int64_t before = count * steps_of(std::span(groups).first(first));
  while (first < groups.size()) {
    const auto part = std::span(groups).subspan(first, Scorer::together(groups, first));
    const auto show = [&](int64_t done, int64_t) {
      if (progress) progress(before + done, total);
    };
    const auto scores = scorer.decode(part, arms, show, stop);
    for (size_t a = 0; a < arms.size(); ++a)
      for (size_t i = 0; i < part.size(); ++i)
        pass.results[a].push_back(judge(task, part[i], first + i, scores[a][i]));
    first += part.size();
    before += count * steps_of(part);
    if (pass.keep) pass.keep();
  }
}

void TaskRunner::generate(const Task& task, std::span<const Arm> arms, TaskPass& pass,
                          const ScoringProgress& progress, std::stop_token stop) {
  for (const Arm& arm : arms) check_budget(arm.budget);
  const size_t together =
      std::min(generations_together, static_cast<size_t>(std::max(options_.batch, 1)));
  const size_t documents = task.documents.size();
  size_t first = begin(task, pass, arms.size());
  if (arms.empty()) return;
  while (first < documents) {
    const size_t count = std::min(together, documents - first);
    for (size_t a = 0; a < arms.size(); ++a)
      generate_batch(task, first, count, arms[a], pass.results[a], stop);
    first += count;
    if (pass.keep) pass.keep();
    if (progress)
      progress(static_cast<int64_t>(first * arms.size()),
               static_cast<int64_t>(documents * arms.size()));
  }
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
    options.rollout = arm.rollout + static_cast<uint32_t>(document.id);
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
      // A model may have more tokens than its tokenizer: such a one is no text.
      if (tokenizer_.has_token(token)) writing->stops.push(writing->stream->push(token));
      if (writing->stops.met() && !writing->generation->finished())
        writing->generation->finish(FinishReason::stopped);
    }
  }
  for (size_t i = 0; i < count; ++i) {
    const GenerationResult& written = writings[i].generation->result();
    const StepTotals spent{written.steps, written.effective_steps, written.realised,
                           written.attended * written.steps};
    std::vector<int32_t> text = written.tokens;
    std::erase_if(text, [&](int32_t token) { return !tokenizer_.has_token(token); });
    results.push_back(judge_answer(task.documents[first + i],
                                   cut_at_stops(tokenizer_.decode(text, true), task.stops), spent));
  }
}

}  // namespace sol
