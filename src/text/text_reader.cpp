#include "text/text_reader.h"

#include <string_view>

#include "base/fail.h"
#include "base/json.h"
#include "text/byte_order_mark.h"
#include "text/byte_source.h"
#include "text/file_stamp.h"
#include "text/plain_text.h"

namespace sol {
namespace {

constexpr std::string_view end_of_document = "<|endoftext|>";

using OnDocument = std::function<void(std::string&&)>;

bool blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos;
}

std::string_view without_line_end(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// The newline before the end line belongs to the layout, not to the document.
int64_t emit_document(std::string& document, const OnDocument& on_document) {
  if (document.ends_with('\n')) document.pop_back();
  if (document.ends_with('\r')) document.pop_back();
  if (blank(document)) {
    document.clear();
    return 0;
  }
  on_document(std::move(document));
  document = {};
  return 1;
}

class PlainLines {
 public:
  PlainLines(LineReader& lines, const std::filesystem::path& path) : lines_(lines), path_(path) {}

  bool next(std::string& line) {
    if (!lines_.next(line)) return false;
    require_plain_text(line, path_, lines_.line_number(), before_);
    before_ += line.size();
    if (lines_.line_number() == 1 && line.starts_with(byte_order_mark))
      line.erase(0, byte_order_mark.size());
    return true;
  }

 private:
  LineReader& lines_;
  const std::filesystem::path& path_;
  uint64_t before_ = 0;  // bytes of the lines that came before
};

int64_t read_documents_of_text(PlainLines lines, const OnDocument& on_document) {
  int64_t count = 0;
  std::string line, document;
  while (lines.next(line)) {
    if (without_line_end(line) == end_of_document) {
      count += emit_document(document, on_document);
    } else {
      document += line;
    }
  }
  return count + emit_document(document, on_document);
}

int64_t read_wikitext(PlainLines lines, const OnDocument& on_document) {
  int64_t count = 0;
  std::string line;
  while (lines.next(line)) {
    if (blank(line)) continue;
    on_document(std::move(line));
    line = {};
    ++count;
  }
  return count;
}

int64_t read_json_lines(LineReader& lines, const std::string& path, const std::string& field,
                        const OnDocument& on_document) {
  int64_t count = 0;
  std::string line;
  while (lines.next(line)) {
    std::string text = text_of_json_line(line, lines.line_number(), field, path);
    if (text.empty()) continue;
    on_document(std::move(text));
    ++count;
  }
  return count;
}

}  // namespace

bool is_json_lines(const std::filesystem::path& path) {
  const std::string kind = extension_of(path);
  if (kind == ".jsonl") return true;
  if (!is_compressed(path)) return false;
  const std::string inner = extension_of(path.stem());
  return inner == ".jsonl" || inner == ".json";
}

std::string text_of_json_line(std::string_view line, int64_t number, const std::string& field,
                              const std::string& path) {
  if (number == 1 && line.starts_with(byte_order_mark)) line.remove_prefix(byte_order_mark.size());
  if (blank(line)) return {};
  const std::string where = fmt::format("{}, line {}", path, number);
  // The library passes over one at the beginning of whatever it is given.
  if (line.starts_with(byte_order_mark))
    fail("{}: begins with a byte order mark, which only a file may begin with; remove it", where);
  const Json json = parse_json(without_line_end(line), where, JsonNumbers::ignored);
  std::string text = json_get<std::string>(json, field.c_str(), where);
  return blank(text) ? std::string() : text;
}

void read_documents(const std::filesystem::path& path, const TextOptions& options,
                    const OnDocument& on_document) {
  const std::string kind = extension_of(is_compressed(path) ? path.stem() : path);
  const bool json_lines = is_json_lines(path);
  if (kind != ".txt" && kind != ".raw" && !json_lines)
    fail(
        "{}: unknown kind of text file; known are .txt, .raw and .jsonl, each also as .gz or "
        ".zst",
        path.string());
  LineReader lines(open_byte_source(path));
  const FileStamp before = stamp_of(path);
  int64_t count = 0;
  if (json_lines) {
    count = read_json_lines(lines, path.string(), options.text_field, on_document);
  } else if (options.format == TextOptions::Format::wikitext) {
    count = read_wikitext({lines, path}, on_document);
  } else {
    count = read_documents_of_text({lines, path}, on_document);
  }
  require_unchanged(path, before);
  if (count == 0) fail("{}: holds no text", path.string());
}

}  // namespace sol
