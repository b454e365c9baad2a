// Data files of invented questions.
#pragma once

#include <fstream>
#include <string>
#include <string_view>

#include "evaluation/tasks/task.h"
#include "support.h"
#include "throws.h"

namespace sol::test {

// A directory of data that tests write into.
class MadeData {
 public:
  void write(const std::string& name, std::string_view content) const {
    const auto path = directory.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << content;
  }
  TaskData data() const {
    TaskData result;
    result.add(directory.path().string());
    return result;
  }
  Task task(const std::string& name, const TaskOptions& options = {}) const {
    return load_task(name, data(), options);
  }
  // A few documents of every task.
  void write_all() const {
    write(
        "arc_easy_test.jsonl",
        R"({"id":"1","question":"What do cows drink?","choices":{"text":["water","stones","air"],"label":["A","B","C"]},"answerKey":"A"}
{"id":"2","question":"What is cold?","choices":{"text":["a fire","the sun","a lamp","ice in winter"],"label":["1","2","3","4"]},"answerKey":"4"}
{"id":"3","question":"Where do fish live?","choices":{"text":["in trees","in the river"],"label":["A","B"]},"answerKey":"B"}
)");
    write(
        "piqa_valid.jsonl",
        R"({"goal":"to boil an egg","sol1":"put it in hot water","sol2":"put it in the post","label":0}
{"goal":"to stop rain","sol1":"ask it","sol2":"wait ","label":1}
)");
    write(
        "winogrande_xl_valid.jsonl",
        R"({"sentence":"The cup did not fit the bag as _ was too large. ","option1":"the cup","option2":"the bag","answer":"1"}
)");
    write(
        "hellaswag_valid.jsonl",
        R"({"activity_label":"Baking","ctx_a":"[header] How to bake [title] Mix the flour.","ctx_b":"then YOU","endings":["knead  it. [step] Wait.","sing","run away","[substeps] sleep"],"label":"0"}
)");
    write("mmlu/made_subject_test.jsonl",
          R"({"question":" Two and two? ","choices":["three","four","five","six"],"answer":1}
)");
    write("mmlu/made_subject_dev.jsonl",
          R"({"question":"One and one?","choices":["two","three","four","five"],"answer":0}
{"question":"Three less one?","choices":["nine","three","two","one"],"answer":2}
)");
    std::string examples = "[";
    for (int i = 0; i < 8; ++i)
      examples += std::string(i ? "," : "") + R"({"question":"q)" + std::to_string(i) +
                  R"(","target":"The final answer is )" + std::to_string(i) + "\"}";
    write("gsm8k_cot_llama_fewshot.json", examples + "]");
    write(
        "gsm8k_test.jsonl",
        "{\"question\":\"Ann has 2 cats and buys 1. How many?\",\"answer\":\"2+1=3\\n#### 3 \"}\n");
    write("wikitext2_test_pages.jsonl",
          R"({"page":" = A Title = \n \n The old man said : \" it is late . \" \n"})"
          "\n");
  }

  TemporaryDirectory directory;
};

}  // namespace sol::test
