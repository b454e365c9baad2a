// Each task's documents from its file: prompts and continuations, character by character as
// lm-evaluation-harness 0.4.13 builds them. All throw Error as load_task.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "evaluation/tasks/task.h"

namespace sol {

Task read_arc_easy(const TaskData& data);
Task read_piqa(const TaskData& data);
Task read_winogrande(const TaskData& data);
Task read_hellaswag(const TaskData& data);
// `continuation`: the answer's text is scored, else its letter.
Task read_mmlu(const TaskData& data, const std::string& subject, bool continuation, int shots);
Task read_gsm8k(const TaskData& data);
Task read_wikitext(const TaskData& data);

// Between a prompt and what follows it, unless the task says otherwise.
inline constexpr std::string_view target_delimiter = " ";
inline constexpr std::string_view fewshot_delimiter = "\n\n";

// The choices of one prompt: each continuation is the delimiter and the choice.
TaskDocument make_choices(int64_t id, const std::string& prompt,
                          const std::vector<std::string>& choices, int gold);

// Throws Error unless `gold` is one of the choices.
int checked_gold(int64_t gold, size_t choices, const char* field, const std::string& where);

// HellaSwag's cleaning of WikiHow's marks.
std::string clean_hellaswag(std::string_view text);

// wikitext's spaced-out punctuation put together again.
std::string detokenise_wikitext(std::string_view page);
// Pages of wikitext's raw file: a line "= Title =" begins one.
std::vector<std::string> wikitext_pages(std::string_view raw);

}  // namespace sol
