// The multiple-choice tasks.
#include "evaluation/tasks/documents.h"

#include <algorithm>

#include "base/fail.h"
#include "model/python_text.h"

namespace sol {
namespace {

Task choice_task(bool length_normalised) {
  Task task;
  task.kind = TaskKind::choices;
  task.length_normalised = length_normalised;
  return task;
}

int64_t next_id(const Task& task) {
  return static_cast<int64_t>(task.documents.size());
}

void measure(TaskDocument& document, const std::string& choice) {
  document.characters.push_back(code_points(choice));
  document.utf8_bytes.push_back(choice.size());
}

void require_text(const std::vector<std::string>& choices, const std::string& where) {
  for (const std::string& choice : choices)
    if (choice.empty()) fail("{}: a choice is empty", where);
}

// Deletes what `\[.*?\]` matches: brackets on one line with what they hold.
std::string without_brackets(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '[') {
      const size_t end = text.find_first_of("]\n", at);
      if (end != std::string_view::npos && text[end] == ']') {
        at = end + 1;
        continue;
      }
    }
    out += text[at++];
  }
  return out;
}

// A file as the harness's own data set has it, or one with prompts already made.
TaskDocument hellaswag_document(int64_t id, const Json& line, const std::string& where) {
  if (line.contains("query")) {
    const auto choices = json_strings(line, "choices", 2, where);
    require_text(choices, where);
    const int gold =
        checked_gold(json_get<int64_t>(line, "gold", where), choices.size(), "gold", where);
    return make_choices(id, json_get<std::string>(line, "query", where), choices, gold);
  }
  const std::string context = json_get<std::string>(line, "activity_label", where) + ": " +
                              json_get<std::string>(line, "ctx_a", where) + " " +
                              capitalised(json_get<std::string>(line, "ctx_b", where));
  auto choices = json_strings(line, "endings", 2, where);
  for (std::string& choice : choices) choice = clean_hellaswag(choice);
  require_text(choices, where);
  int64_t label = -1;
  if (line.contains("label") && line.at("label").is_string()) {
    const auto text = line.at("label").get<std::string>();
    if (text.size() == 1 && text[0] >= '0' && text[0] <= '9') label = text[0] - '0';
  } else {
    label = json_get<int64_t>(line, "label", where);
  }
  return make_choices(id, clean_hellaswag(context), choices,
                      checked_gold(label, choices.size(), "label", where));
}

}  // namespace

int checked_gold(int64_t gold, size_t choices, const char* field, const std::string& where) {
  if (gold < 0 || static_cast<uint64_t>(gold) >= choices)
    fail("{}: field \"{}\" names none of the {} choices", where, field, choices);
  return static_cast<int>(gold);
}

TaskDocument make_choices(int64_t id, const std::string& prompt,
                          const std::vector<std::string>& choices, int gold) {
  TaskDocument document;
  document.id = id;
  document.gold = gold;
  for (const std::string& choice : choices) {
    document.requests.push_back({prompt, std::string(target_delimiter) + choice});
    measure(document, choice);
  }
  return document;
}

std::string clean_hellaswag(std::string_view text) {
  std::string cleaned = replace_text(strip(text), " [title]", ". ");
  return replace_text(without_brackets(cleaned), "  ", " ");
}

Task read_arc_easy(const TaskData& data) {
  Task task = choice_task(true);
  task.data = read_json_lines(
      data.find("arc_easy", {"arc_easy_test.jsonl"}), [&](const Json& line, const std::string& at) {
        const auto question = json_get<std::string>(line, "question", at);
        const auto key = json_get<std::string>(line, "answerKey", at);
        if (!line.contains("choices") || !line.at("choices").is_object())
          fail("{}: field \"choices\" must be an object with \"text\" and \"label\"", at);
        const Json& choices = line.at("choices");
        const auto texts = json_strings(choices, "text", 2, at);
        const auto labels = json_strings(choices, "label", 2, at);
        require_text(texts, at);
        if (texts.size() != labels.size())
          fail("{}: \"choices\" has {} texts but {} labels", at, texts.size(), labels.size());
        const auto right = std::ranges::find(labels, key);
        if (right == labels.end())
          fail("{}: field \"answerKey\" is \"{}\", which is none of the labels", at, key);
        task.documents.push_back(make_choices(next_id(task), "Question: " + question + "\nAnswer:",
                                              texts, static_cast<int>(right - labels.begin())));
      });
  return task;
}

Task read_piqa(const TaskData& data) {
  Task task = choice_task(true);
  task.data = read_json_lines(
      data.find("piqa", {"piqa_valid.jsonl"}), [&](const Json& line, const std::string& at) {
        const std::vector<std::string> choices{json_get<std::string>(line, "sol1", at),
                                               json_get<std::string>(line, "sol2", at)};
        require_text(choices, at);
        task.documents.push_back(make_choices(
            next_id(task), "Question: " + json_get<std::string>(line, "goal", at) + "\nAnswer:",
            choices, checked_gold(json_get<int64_t>(line, "label", at), 2, "label", at)));
      });
  return task;
}

// The choices are contexts here: the one after which the same continuation is likelier.
Task read_winogrande(const TaskData& data) {
  Task task = choice_task(false);
  task.data = read_json_lines(
      data.find("winogrande", {"winogrande_xl_valid.jsonl"}),
      [&](const Json& line, const std::string& at) {
        const auto sentence = json_get<std::string>(line, "sentence", at);
        const size_t blank = sentence.find('_');
        if (blank == std::string::npos) fail("{}: field \"sentence\" has no \"_\" to fill", at);
        const auto answer = json_get<std::string>(line, "answer", at);
        if (answer != "1" && answer != "2")
          fail("{}: field \"answer\" must be \"1\" or \"2\", not \"{}\"", at, answer);
        TaskDocument document;
        document.id = next_id(task);
        document.gold = answer == "1" ? 0 : 1;
        const std::string rest = std::string(target_delimiter) +
                                 std::string(strip(std::string_view(sentence).substr(blank + 1)));
        for (const char* option : {"option1", "option2"}) {
          const std::string context =
              sentence.substr(0, blank) + json_get<std::string>(line, option, at);
          document.requests.push_back({context, rest});
          measure(document, context);
        }
        task.documents.push_back(std::move(document));
      });
  return task;
}

Task read_hellaswag(const TaskData& data) {
  constexpr const char* approximate = "hellaswag_valid_approx.jsonl";
  Task task = choice_task(true);
  const auto path = data.find("hellaswag", {"hellaswag_valid.jsonl", approximate});
  // Where its contexts end is a guess; no result may pass for the benchmark's.
  if (path.filename() == approximate) task.name = "hellaswag (approximate)";
  task.data = read_json_lines(path, [&](const Json& line, const std::string& at) {
    task.documents.push_back(hellaswag_document(next_id(task), line, at));
  });
  return task;
}

namespace {

struct MmluQuestion {
  std::string prompt;
  std::vector<std::string> choices;  // what is scored: texts or letters
  int gold;
};

MmluQuestion mmlu_question(const Json& line, bool continuation, const std::string& where) {
  MmluQuestion result;
  const std::string question(strip(json_get<std::string>(line, "question", where)));
  const auto texts = json_strings(line, "choices", 2, where);
  result.gold =
      checked_gold(json_get<int64_t>(line, "answer", where), texts.size(), "answer", where);
  if (continuation) {
    require_text(texts, where);
    result.prompt = "Question: " + question + "\nAnswer:";
    result.choices = texts;
    return result;
  }
  if (texts.size() != 4) fail("{}: field \"choices\" must have 4 entries", where);
  result.prompt = question + "\n";
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string letter(1, static_cast<char>('A' + i));
    result.prompt += letter + ". " + texts[i] + "\n";
    result.choices.push_back(letter);
  }
  result.prompt += "Answer:";
  return result;
}

}  // namespace

Task read_mmlu(const TaskData& data, const std::string& subject, bool continuation, int shots) {
  Task task = choice_task(continuation);
  task.shots = shots;
  std::string before =
      fmt::format("The following are {}questions (with answers) about {}.\n\n",
                  continuation ? "" : "multiple choice ", replace_text(subject, "_", " "));
  std::string examples_fingerprint;
  if (shots > 0) {
    const auto path = data.find("mmlu_" + subject + "_dev", {"mmlu/" + subject + "_dev.jsonl"});
    int found = 0;
    const DataFile examples = read_json_lines(path, [&](const Json& line, const std::string& at) {
      if (found++ >= shots) return;
      const MmluQuestion one = mmlu_question(line, continuation, at);
      before += one.prompt;
      before += target_delimiter;
      before += one.choices[static_cast<size_t>(one.gold)];
      before += fewshot_delimiter;
    });
    if (found < shots)
      fail("{}: {} examples were asked for, but the file has only {}", path.string(), shots, found);
    examples_fingerprint = " " + examples.fingerprint;
  }
  task.data = read_json_lines(data.find("mmlu_" + subject, {"mmlu/" + subject + "_test.jsonl"}),
                              [&](const Json& line, const std::string& at) {
                                const MmluQuestion one = mmlu_question(line, continuation, at);
                                task.documents.push_back(make_choices(
                                    next_id(task), before + one.prompt, one.choices, one.gold));
                              });
  task.data.fingerprint += examples_fingerprint;
  return task;
}

}  // namespace sol
