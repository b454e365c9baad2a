#include "text/preparation.h"

#include <system_error>
#include <vector>

#include "base/fail.h"
#include "text/prepared_data.h"

namespace sol {
namespace {

namespace fs = std::filesystem;

// Changes whenever the same corpus would give other ids.
constexpr int preparation_version = 1;

constexpr const char* temporary_mark = ".sol-tmp-";  // of a manifest whose writing was killed

}  // namespace

Json preparation_identity(const CorpusFiles& corpus, const CorpusOptions& options,
                          const Tokenizer& tokenizer) {
  return {{"preparation", preparation_version},
          {"tokenizer", tokenizer.fingerprint()},
          {"files", corpus.files.size()},
          {"file_bytes", corpus.bytes},
          {"corpus", corpus.identity},
          {"text_field", options.text_field},
          {"seed", options.seed},
          {"window_bytes", options.window_bytes},
          {"skip_bad_lines", options.skip_bad_lines}};
}

void require_same_preparation(const Json& found, const Json& wanted, const fs::path& dir) {
  if (found == wanted) return;
  const auto differs = [&](const char* field) {
    return !found.contains(field) || found[field] != wanted[field];
  };
  const auto was = [&](const char* field) {
    return found.contains(field) ? to_text(found[field]) : std::string("absent");
  };
  std::vector<std::string> differences;
  const auto add = [&](const char* field, const char* name) {
    if (differs(field))
      differences.push_back(
          fmt::format("{} was {} and is now {}", name, was(field), to_text(wanted[field])));
  };
  add("files", "the number of the corpus's files");
  add("file_bytes", "their size in bytes");
  if (differs("corpus") && differences.empty())
    differences.push_back("the corpus's files have other names, sizes or times of change");
  if (differs("tokenizer")) differences.push_back("it was prepared for another tokenizer");
  add("text_field", "--text-field");
  add("seed", "--seed");
  add("window_bytes", "--shuffle-buffer, in bytes,");
  add("skip_bad_lines", "--skip-bad-lines");
  if (differences.empty()) differences.push_back("another version of this program prepared it");
  std::string text;
  for (const std::string& difference : differences) text += (text.empty() ? "" : "; ") + difference;
  fail("{}: holds data prepared otherwise: {}. Choose another directory or delete it", dir.string(),
       text);
}

void require_directory_for_shards(const fs::path& dir) {
  if (is_prepared_data(dir)) return;
  std::error_code error;
  if (!fs::is_directory(dir, error)) return;  // to be made, or an error of that
  for (fs::directory_iterator entries(dir, error), end; !error && entries != end;
       entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (name.find(temporary_mark) != std::string::npos) continue;
    if (is_prepared_shard(name))
      fail(
          "{}: holds prepared data ({}) whose manifest.json is missing; restore that, delete the "
          "directory, or choose another one",
          dir.string(), name);
    fail("{}: holds other files ({}) and no prepared data; prepare into a directory of its own",
         dir.string(), name);
  }
  if (error) fail("{}: cannot be read: {}", dir.string(), error.message());
}

}  // namespace sol
