// Which tasks there are, by name.
#include <fmt/ranges.h>

#include <algorithm>

#include "base/fail.h"
#include "evaluation/tasks/documents.h"
#include "evaluation/tasks/task.h"

namespace sol {
namespace {

using Reader = Task (*)(const TaskData&);

struct Entry {
  const char* name;
  Reader read;
};
constexpr Entry plain_tasks[] = {{"arc_easy", read_arc_easy},     {"piqa", read_piqa},
                                 {"winogrande", read_winogrande}, {"hellaswag", read_hellaswag},
                                 {"gsm8k_cot_llama", read_gsm8k}, {"wikitext", read_wikitext}};

constexpr std::string_view mmlu_prefix = "mmlu_", mmlu_suffix = "_continuation";

bool is_subject(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

[[noreturn]] void unknown(const std::string& name) {
  std::vector<std::string> names;
  for (const TaskInfo& info : known_tasks()) names.push_back(info.name);
  fail("unknown task '{}'; known: {}", name, fmt::join(names, ", "));
}

}  // namespace

const std::vector<TaskInfo>& known_tasks() {
  static const std::vector<TaskInfo> tasks{
      {"arc_easy", "grade-school science questions, 3 to 5 choices; acc, acc_norm",
       "arc_easy_test.jsonl"},
      {"piqa", "which of two ways reaches a goal; acc, acc_norm", "piqa_valid.jsonl"},
      {"winogrande", "whom a pronoun means, 2 choices, one continuation after two contexts; acc",
       "winogrande_xl_valid.jsonl"},
      {"hellaswag", "which of four endings follows; acc, acc_norm",
       "hellaswag_valid.jsonl or hellaswag_valid_approx.jsonl"},
      {"mmlu_<subject>", "four choices, the answer's letter is scored; 0 to 5 examples; acc",
       "mmlu/<subject>_test.jsonl, mmlu/<subject>_dev.jsonl"},
      {"mmlu_<subject>_continuation",
       "the same questions, the answer's text is scored; acc, acc_norm",
       "mmlu/<subject>_test.jsonl, mmlu/<subject>_dev.jsonl"},
      {"gsm8k_cot_llama",
       "word problems, an answer is written after 8 examples as chat turns; exact match",
       "gsm8k_test.jsonl, gsm8k_cot_llama_fewshot.json"},
      {"wikitext", "rolling likelihood of whole pages; word and byte perplexity, bits per byte",
       "wikitext2_test_pages.jsonl or wiki.test.raw"}};
  return tasks;
}

Task load_task(const std::string& name, const TaskData& data, const TaskOptions& options) {
  Task task;
  const auto plain =
      std::ranges::find_if(plain_tasks, [&](const Entry& e) { return name == e.name; });
  if (plain != std::end(plain_tasks)) {
    if (options.shots >= 0)
      fail("{}: the number of examples can be chosen for MMLU only, not with this task", name);
    task = plain->read(data);
  } else if (std::string_view subject = name; subject.starts_with(mmlu_prefix)) {
    subject.remove_prefix(mmlu_prefix.size());
    const bool continuation = subject.ends_with(mmlu_suffix);
    if (continuation) subject.remove_suffix(mmlu_suffix.size());
    if (!is_subject(subject)) unknown(name);
    task = read_mmlu(data, std::string(subject), continuation, std::max(options.shots, 0));
  } else {
    unknown(name);
  }
  if (task.name.empty()) task.name = name;
  if (options.limit >= 0 && static_cast<size_t>(options.limit) < task.documents.size())
    task.documents.resize(static_cast<size_t>(options.limit));
  return task;
}

}  // namespace sol
