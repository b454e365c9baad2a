// A task on a model: its documents encoded, scored or answered, and judged.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "evaluation/tasks/requests.h"
#include "evaluation/tasks/task_result.h"
#include "sol/tokenizer.h"

namespace sol {

// A conversation as the prompt of the assistant's next turn.
using ChatFormat = std::function<std::string(const std::vector<ChatMessage>&)>;

// A pass over a task's documents, which may be interrupted and go on. results[arm][document]: of as
// many arms as the pass has, and of each the same number of first documents.
struct TaskPass {
  std::vector<std::vector<DocumentResult>> results;
  std::function<void()> keep;  // called whenever some more documents are done under every arm

  explicit TaskPass(size_t arms) : results(arms) {}
};

class TaskRunner {
 public:
  // `model` and `tokenizer` must outlive it. `chat` may be empty: tasks that generate are then
  // given their prompts as plain text.
  TaskRunner(FrozenModel& model, const Tokenizer& tokenizer, const ScoringOptions& options,
             ChatFormat chat = {});

  // Adds the documents that are missing to `pass`, all scored tokens of one in a dense pass; it has
  // one arm. Throws Error for a task that generates, and as Scorer.
  void prefill(const Task& task, TaskPass& pass, const ScoringProgress& progress = {},
               std::stop_token stop = {});

  // The same step by step, under each arm. Throws Error as Scorer, and Cancelled.
  void decode(const Task& task, std::span<const Arm> arms, TaskPass& pass,
              const ScoringProgress& progress = {}, std::stop_token stop = {});

 private:
  std::vector<RequestGroup> requests(const Task& task) const;
  DocumentResult judge(const Task& task, const RequestGroup& group, size_t document,
                       const std::vector<RequestScore>& scores) const;
  void generate(const Task& task, std::span<const Arm> arms, TaskPass& pass,
                const ScoringProgress& progress, std::stop_token stop);
  void generate_batch(const Task& task, size_t first, size_t count, const Arm& arm,
                      std::vector<DocumentResult>& results, std::stop_token stop);

  FrozenModel& model_;
  const Tokenizer& tokenizer_;
  ScoringOptions options_;
  ChatFormat chat_;
  RequestEncoder encoder_;
};

}  // namespace sol
