// The tasks that are not multiple choice: word problems and whole pages.
#include "base/fail.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "evaluation/tasks/documents.h"
#include "model/python_text.h"
#include "text/byte_order_mark.h"
#include "text/plain_text.h"

namespace sol {
namespace {

std::string gsm8k_question(const std::string& question) {
  return "Given the following problem, reason and give a final answer to the problem.\nProblem: " +
         question +
         "\nYour response should end with \"The final answer is [answer]\" where [answer] is the "
         "response to the problem.\n";
}

// Each opening mark with the next closing one: the white space just inside them goes.
std::string tightened(std::string_view text, char open, char close) {
  std::string out;
  size_t done = 0;
  while (true) {
    const size_t begin = text.find(open, done);
    const size_t end = begin == std::string_view::npos ? begin : text.find(close, begin + 1);
    if (end == std::string_view::npos) break;
    out += text.substr(done, begin - done);
    out += open;
    out += strip(text.substr(begin + 1, end - begin - 1));
    out += close;
    done = end + 1;
  }
  return out += text.substr(done);
}

// The harness replaces "/' 5/" by the text "/'[0-9]/": surely not meant, but part of its figures.
std::string slashed_contractions(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (text.substr(at, 3) == "/' " && at + 4 < text.size() && text[at + 3] >= '0' &&
        text[at + 3] <= '9' && text[at + 4] == '/') {
      out += "/'[0-9]/";
      at += 5;
    } else {
      out += text[at++];
    }
  }
  return out;
}

}  // namespace

Task read_gsm8k(const TaskData& data) {
  Task task;
  task.kind = TaskKind::generation;
  task.stops = {"<|eot_id|>", "<|start_header_id|>user<|end_header_id|>", "Q:", "</s>",
                "<|im_end|>"};
  task.max_tokens = 256;

  const auto path = data.find("gsm8k_cot_llama_fewshot", {"gsm8k_cot_llama_fewshot.json"});
  const std::string text = read_file(path);
  const Json examples = parse_json(text, path.string());
  if (!examples.is_array() || examples.size() < 8)
    fail("{}: expected a list of at least 8 objects with \"question\" and \"target\"",
         path.string());
  task.shots = 8;
  std::vector<ChatMessage> turns;
  std::string before;
  for (size_t i = 0; i < 8; ++i) {
    const std::string where = fmt::format("{} entry {}", path.string(), i);
    const std::string question =
        gsm8k_question(json_get<std::string>(examples[i], "question", where));
    const auto target = json_get<std::string>(examples[i], "target", where);
    turns.push_back({"user", question});
    turns.push_back({"assistant", target});
    before += question + target;
    before += fewshot_delimiter;
  }

  task.data = read_json_lines(
      data.find("gsm8k_cot_llama", {"gsm8k_test.jsonl"}),
      [&](const Json& line, const std::string& at) {
        TaskDocument document;
        document.id = static_cast<int64_t>(task.documents.size());
        const std::string question = gsm8k_question(json_get<std::string>(line, "question", at));
        document.prompt = before + question;
        document.messages = turns;
        document.messages.push_back({"user", question});
        const auto answer = json_get<std::string>(line, "answer", at);
        const size_t mark = answer.rfind("####");
        if (mark == std::string::npos) fail("{}: field \"answer\" has no \"####\"", at);
        document.target = std::string(strip(std::string_view(answer).substr(mark + 4)));
        task.documents.push_back(std::move(document));
      });
  task.data.fingerprint += " " + hash_128(text);
  return task;
}

std::string detokenise_wikitext(std::string_view page) {
  std::string text = slashed_contractions(replace_text(page, "s '", "s'"));
  const auto replace = [&](std::string_view from, std::string_view to) {
    text = replace_text(text, from, to);
  };
  replace(" @-@ ", "-");
  replace(" @,@ ", ",");
  replace(" @.@ ", ".");
  for (const char mark : std::string_view(":;.!?,"))
    replace(std::string{' ', mark, ' '}, std::string{mark, ' '});
  for (const char* pair : {"()", "[]", "{}", "\"\"", "''"})
    text = tightened(text, pair[0], pair[1]);
  replace("= = = =", "====");
  replace("= = =", "===");
  replace("= =", "==");
  replace(" \u00B0 ", "\u00B0");
  replace(" \n", "\n");
  replace("\n ", "\n");
  replace(" N ", " 1 ");
  replace(" 's", "'s");
  return text;
}

std::vector<std::string> wikitext_pages(std::string_view raw) {
  std::vector<std::string> pages;
  std::vector<std::string_view> lines;
  const auto end_page = [&] {
    std::string page;
    for (size_t i = 0; i < lines.size(); ++i) {
      if (i > 0) page += '\n';
      page += lines[i];
    }
    // What precedes the first title is no page.
    if (!strip(page).empty()) pages.push_back(std::move(page));
    lines.clear();
  };
  // After the last newline there is one more line, an empty one, as where text is split at
  // newlines.
  for (size_t at = 0; at <= raw.size();) {
    const size_t end = std::min(raw.find('\n', at), raw.size());
    const std::string_view line = raw.substr(at, end - at);
    at = end + 1;
    // Headings of sections are "= = Section = =".
    const std::string marks = replace_text(replace_text(line, "= = =", "==="), "= =", "==");
    const std::string_view bare = strip(marks);
    if (bare.starts_with("= ") && bare.ends_with(" =")) end_page();
    lines.push_back(line);
  }
  end_page();
  return pages;
}

Task read_wikitext(const TaskData& data) {
  Task task;
  task.kind = TaskKind::rolling;
  const auto add = [&](const std::string& page) {
    TaskDocument document;
    document.id = static_cast<int64_t>(task.documents.size());
    document.text = detokenise_wikitext(page);
    document.words = static_cast<int64_t>(split_by_space_count(page));
    document.page_bytes = static_cast<int64_t>(page.size());
    task.documents.push_back(std::move(document));
  };
  const auto path = data.find("wikitext", {"wikitext2_test_pages.jsonl", "wiki.test.raw"});
  if (path.extension() == ".raw") {
    const std::string raw = read_file(path);
    require_plain_text(raw, path);
    std::string_view text = raw;
    if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
    for (const std::string& page : wikitext_pages(text)) add(page);
    if (task.documents.empty()) fail("{}: the file has no page", path.string());
    task.data = {path.filename().string(), hash_128(raw)};
  } else {
    task.data = read_json_lines(path, [&](const Json& line, const std::string& at) {
      add(json_get<std::string>(line, "page", at));
    });
  }
  return task;
}

}  // namespace sol
