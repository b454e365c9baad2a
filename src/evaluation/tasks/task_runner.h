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

using ArmResults = std::vector<std::vector<DocumentResult>>;  // [arm][document]

// A pass over a task's documents that may have been interrupted.
struct TaskPass {
  ArmResults done;  // the first documents, as many of every arm; or empty
  // Called with all results so far whenever some more documents are done under every arm.
  std::function<void(const ArmResults&)> keep;
};

class TaskRunner {
 public:
  // `model` and `tokenizer` must outlive it. `chat` may be empty: tasks that generate are then
  // given their prompts as plain text.
  TaskRunner(FrozenModel& model, const Tokenizer& tokenizer, const ScoringOptions& options,
             ChatFormat chat = {});

  // Dense, all scored tokens in one pass; the only arm. Throws Error for a task that generates, and
  // as Scorer.
  ArmResults prefill(const Task& task, TaskPass pass = {}, const ScoringProgress& progress = {},
                     std::stop_token stop = {});

  // Step by step.
  ArmResults decode(const Task& task, std::span<const Arm> arms, TaskPass pass = {},
                    const ScoringProgress& progress = {}, std::stop_token stop = {});

 private:
  std::vector<RequestGroup> requests(const Task& task) const;
  DocumentResult judge(const Task& task, const RequestGroup& group, size_t document,
                       const std::vector<RequestScore>& scores) const;
  ArmResults generate(const Task& task, std::span<const Arm> arms, TaskPass pass,
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
