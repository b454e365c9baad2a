#include "model/tokenizer_file.h"

#include "base/fail.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/zero_bytes.h"

namespace sol {
namespace {

using nlohmann::json;

constexpr size_t kMaxDepth = 64;

// Receives the parser's events. What lies in model.vocab and model.merges goes into the lists, the
// rest into the document.
class Reader : public nlohmann::json_sax<json> {
 public:
  explicit Reader(TokenizerFile& file) : file_(file), where_(file.path.string()) {}

  bool null() override { return scalar(nullptr); }
  bool boolean(bool value) override { return scalar(value); }
  bool number_integer(number_integer_t value) override {
    if (mode_ == Mode::vocabulary) return vocabulary_id(value);
    return scalar(value);
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (mode_ == Mode::vocabulary) {
      if (value > static_cast<number_unsigned_t>(INT64_MAX)) {
        fail("{}: model.vocab: the id of \"{}\" is out of range", where_, key_);
      }
      return vocabulary_id(static_cast<int64_t>(value));
    }
    return scalar(value);
  }
  bool number_float(number_float_t value, const string_t&) override { return scalar(value); }
  bool binary(binary_t&) override { fail("{}: binary values are not JSON", where_); }

  bool string(string_t& value) override {
    if (mode_ == Mode::merges) return merge_line(value);
    if (mode_ == Mode::merge_pair) return merge_part(value);
    return scalar(std::move(value));
  }

  bool key(string_t& value) override {
    key_ = std::move(value);
    return true;
  }

  bool start_object(size_t) override {
    if (mode_ == Mode::document && in_model() && key_ == "vocab") {
      if (file_.has_vocabulary) fail("{}: model.vocab is there twice", where_);
      file_.has_vocabulary = true;
      mode_ = Mode::vocabulary;
      return true;
    }
    open(json::object());
    return true;
  }
  bool end_object() override {
    if (mode_ == Mode::vocabulary) {
      mode_ = Mode::document;
    } else {
      stack_.pop_back();
    }
    return true;
  }

  bool start_array(size_t) override {
    if (mode_ == Mode::document && in_model() && key_ == "merges") {
      if (file_.has_merges) fail("{}: model.merges is there twice", where_);
      file_.has_merges = true;
      mode_ = Mode::merges;
      return true;
    }
    if (mode_ == Mode::merges) {
      mode_ = Mode::merge_pair;
      pair_.clear();
      return true;
    }
    open(json::array());
    return true;
  }
  bool end_array() override {
    if (mode_ == Mode::merge_pair) {
      if (pair_.size() != 2) {
        fail("{}: model.merges[{}] has {} parts instead of 2", where_, entry_, pair_.size());
      }
      file_.merges.push_back({pair_[0] + pair_[1], pair_[0].size()});
      ++entry_;
      mode_ = Mode::merges;
    } else if (mode_ == Mode::merges) {
      mode_ = Mode::document;
    } else {
      stack_.pop_back();
    }
    return true;
  }

  bool parse_error(size_t, const std::string&, const json::exception& error) override {
    fail("{}: not valid JSON: {}", where_, json_reason(error.what()));
  }

 private:
  enum class Mode { document, vocabulary, merges, merge_pair };

  // Whether the innermost open object is the document's "model".
  bool in_model() const { return stack_.size() == 2 && stack_[1] == model_; }

  void wrong_kind() const {
    if (mode_ == Mode::vocabulary) {
      fail("{}: model.vocab: the id of \"{}\" is not an integer", where_, key_);
    }
    fail("{}: model.merges[{}] is neither \"a b\" nor [\"a\", \"b\"]", where_, entry_);
  }

  bool vocabulary_id(int64_t id) {
    file_.vocabulary.push_back({std::move(key_), id});
    return true;
  }

  bool merge_line(std::string& line) {
    if (line.starts_with("#version")) return true;  // the first line of a merges.txt
    const size_t space = line.find(' ');
    if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos) {
      fail("{}: model.merges[{}]: \"{}\" is not two pieces with a space between them", where_,
           entry_, line);
    }
    line.erase(space, 1);
    file_.merges.push_back({std::move(line), space});
    ++entry_;
    return true;
  }

  bool merge_part(std::string& part) {
    if (pair_.size() == 2) fail("{}: model.merges[{}] has more than 2 parts", where_, entry_);
    pair_.push_back(std::move(part));
    return true;
  }

  template <typename T>
  bool scalar(T&& value) {
    place(json(std::forward<T>(value)));
    return true;
  }

  void open(json container) {
    if (stack_.size() == kMaxDepth) fail("{}: nested more than {} levels deep", where_, kMaxDepth);
    json* placed = place(std::move(container));
    if (stack_.size() == 1 && key_ == "model") model_ = placed;
    stack_.push_back(placed);
  }

  json* place(json value) {
    if (mode_ != Mode::document) wrong_kind();
    if (stack_.empty()) {
      file_.document = std::move(value);
      return &file_.document;
    }
    json& parent = *stack_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    const auto [member, inserted] = parent.emplace(key_, std::move(value));
    if (!inserted) fail("{}: the field \"{}\" is there twice in one object", where_, key_);
    return &*member;
  }

  TokenizerFile& file_;
  std::string where_;
  Mode mode_ = Mode::document;
  std::vector<json*> stack_;
  const json* model_ = nullptr;
  std::string key_;
  std::vector<std::string> pair_;
  size_t entry_ = 0;
};

}  // namespace

TokenizerFile TokenizerFile::read(const std::filesystem::path& path) {
  return parse(read_file(path), path);
}

TokenizerFile TokenizerFile::parse(std::string_view text, const std::filesystem::path& path) {
  TokenizerFile file;
  file.path = path;
  file.fingerprint = hash_128(text);
  refuse_zero_bytes(text, path.string());
  Reader reader(file);
  json::sax_parse(text.begin(), text.end(), &reader);
  if (!file.document.is_object()) fail("{}: not a JSON object", path.string());
  return file;
}

Component TokenizerFile::component(const char* field) const {
  static const json null;
  const auto found = document.find(field);
  return {found == document.end() ? null : *found, path.string() + ": " + field};
}

std::string Component::at(const char* field) const {
  return where_ + "." + field;
}

const json& Component::require(const char* field) const {
  if (!node_->is_object()) fail("{}: expected an object", where_);
  const auto found = node_->find(field);
  if (found == node_->end()) fail("{}: the field \"{}\" is missing", where_, field);
  return *found;
}

std::string Component::type() const {
  return text("type");
}

Component Component::child(const char* field) const {
  return {require(field), at(field)};
}

std::vector<Component> Component::items() const {
  if (!node_->is_array()) fail("{}: expected a list", where_);
  std::vector<Component> items;
  for (size_t i = 0; i < node_->size(); ++i) {
    items.emplace_back((*node_)[i], where_ + "[" + std::to_string(i) + "]");
  }
  return items;
}

std::vector<std::pair<std::string, Component>> Component::members(const char* field) const {
  const json& node = require(field);
  if (!node.is_object()) fail("{}: expected an object", at(field));
  std::vector<std::pair<std::string, Component>> items;
  for (const auto& [key, value] : node.items()) {
    items.emplace_back(key, Component(value, at(field) + "." + key));
  }
  return items;
}

std::string Component::as_text() const {
  if (!node_->is_string()) fail("{}: expected a string", where_);
  return node_->get<std::string>();
}

int64_t Component::as_integer() const {
  const bool fits =
      node_->is_number_integer() &&
      !(node_->is_number_unsigned() && node_->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX));
  if (!fits) fail("{}: expected an integer", where_);
  return node_->get<int64_t>();
}

std::string Component::text(const char* field) const {
  return child(field).as_text();
}

int64_t Component::integer(const char* field) const {
  return child(field).as_integer();
}

bool Component::flag(const char* field) const {
  const json& node = require(field);
  if (!node.is_boolean()) fail("{}: expected true or false", at(field));
  return node.get<bool>();
}

bool Component::flag_or(const char* field, bool fallback) const {
  return has(field) && !child(field).is_null() ? flag(field) : fallback;
}

std::string Component::text_or(const char* field, const std::string& fallback) const {
  return has(field) && !child(field).is_null() ? text(field) : fallback;
}

void Component::allow_only(std::initializer_list<const char*> fields) const {
  if (!node_->is_object()) fail("{}: expected an object", where_);
  for (const auto& [key, value] : node_->items()) {
    bool known = false;
    for (const char* field : fields) known = known || key == field;
    if (!known) fail("{}: the field \"{}\" is not supported", where_, key);
  }
}

void Component::unknown_type() const {
  fail("{}: the type \"{}\" is not supported", where_, type());
}

}  // namespace sol
