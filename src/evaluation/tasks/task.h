// Downstream tasks as lm-evaluation-harness defines them: which documents there are and what is
// asked about each (docs/tasks.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "evaluation/tasks/task_data.h"
#include "model/chat_message.h"

namespace sol {

enum class TaskKind {
  choices,     // the likelier of several continuations
  generation,  // a written answer, compared with the right one
  rolling,     // the likelihood of whole texts
};

// Scored: log p(continuation | context).
struct ChoiceRequest {
  std::string context, continuation;
};

// One question. Which fields are filled depends on the task's kind.
struct TaskDocument {
  int64_t id = 0;  // its place in the data file, from 0

  // choices
  std::vector<ChoiceRequest> requests;
  std::vector<size_t> characters, utf8_bytes;  // of each choice's text, without a delimiter
  int gold = -1;                               // index of the right choice

  // generation
  std::vector<ChatMessage> messages;  // examples as turns, the question last
  std::string prompt;                 // the same as plain text
  std::string target;                 // the right answer

  // rolling
  std::string text;                   // what is scored
  int64_t words = 0, page_bytes = 0;  // of the page as it is in the data
};

struct Task {
  std::string name;  // as results show it
  TaskKind kind = TaskKind::choices;
  bool length_normalised = false;  // acc_norm and acc_bytes are reported beside acc
  int shots = 0;                   // examples before each question
  std::vector<std::string> stops;  // of generation
  int max_tokens = 0;              // likewise
  DataFile data;                   // what the documents were read from
  std::vector<TaskDocument> documents;
};

struct TaskInfo {
  std::string name;     // mmlu_<subject> stands for all of them
  std::string summary;  // one line
  std::string files;    // names looked for in a data directory
};
const std::vector<TaskInfo>& known_tasks();

struct TaskOptions {
  int shots = -1;      // MMLU: 0 to 5; -1: the task's own number
  int64_t limit = -1;  // only the first documents; -1: all
};

// Throws Error for an unknown name (listing the known ones), options that the task does not have,
// and a data file that is missing or malformed, naming file, line and field.
Task load_task(const std::string& name, const TaskData& data, const TaskOptions& options = {});

}  // namespace sol
