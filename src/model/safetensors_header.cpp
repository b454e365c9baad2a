#include "model/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/fail.h"
#include "base/zero_bytes.h"

namespace sol {
namespace {

constexpr uint64_t largest = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());

DType parse_dtype(const std::string& name, const std::string& where) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i64, DType::i32,
                           DType::i16, DType::i8, DType::u8, DType::boolean})
    if (to_string(type) == name) return type;
  fail("{}: dtype \"{}\" is not supported", where, name);
}

// Reads the header event by event rather than into a document: a document would silently keep one
// of two entries with the same name, and a header can hold very many.
class HeaderReader : public nlohmann::json::json_sax_t {
 public:
  HeaderReader(SafetensorsHeader& header, const std::string& where)
      : header_(header), where_(where) {}

  bool start_object(std::size_t) override {
    if (state_ == State::document) {
      state_ = State::names;
    } else if (state_ == State::entry) {
      state_ = State::fields;
    } else if (state_ == State::metadata) {
      state_ = State::metadata_keys;
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool key(string_t& name) override {
    switch (state_) {
      case State::names:
        if (!names_.insert(name).second) fail("{}: the name \"{}\" occurs twice", where_, name);
        if (name == "__metadata__") {
          state_ = State::metadata;
        } else {
          header_.tensors.push_back({name, {}, {}, 0, 0});
          dtype_.reset();
          shape_seen_ = false;
          offsets_seen_ = false;
          state_ = State::entry;
        }
        break;
      case State::fields:
        field(name);
        break;
      case State::metadata_keys:
        metadata_key_ = name;
        if (!header_.metadata.emplace(name, "").second)
          fail("{}: __metadata__ has \"{}\" twice", where_, name);
        state_ = State::metadata_value;
        break;
      default:
        unexpected("a name");
    }
    return true;
  }

  bool string(string_t& value) override {
    if (state_ == State::dtype) {
      dtype_ = parse_dtype(value, here());
      state_ = State::fields;
    } else if (state_ == State::metadata_value) {
      header_.metadata[metadata_key_] = value;
      state_ = State::metadata_keys;
    } else {
      unexpected("a string");
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (state_ == State::shape) {
      state_ = State::shape_numbers;
    } else if (state_ == State::offsets) {
      state_ = State::offset_numbers;
      offsets_.clear();
    } else {
      unexpected("an array");
    }
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (state_ == State::shape_numbers) {
      if (value > largest) fail("{}: the dimension {} is too large", here(), value);
      header_.tensors.back().shape.push_back(static_cast<int64_t>(value));
    } else if (state_ == State::offset_numbers) {
      if (offsets_.size() == 2) fail("{}: data_offsets must hold two numbers", here());
      offsets_.push_back(value);
    } else {
      unexpected("a number");
    }
    return true;
  }

  bool number_integer(number_integer_t value) override {
    if (state_ != State::shape_numbers && state_ != State::offset_numbers) unexpected("a number");
    fail("{}: {} holds the negative number {}", here(),
         state_ == State::shape_numbers ? "shape" : "data_offsets", value);
  }

  bool number_float(number_float_t, const string_t& text) override {
    if (state_ != State::shape_numbers && state_ != State::offset_numbers) unexpected("a number");
    fail("{}: {} holds {}, which is not a whole number of 64 bits", here(),
         state_ == State::shape_numbers ? "shape" : "data_offsets", text);
  }

  bool end_array() override {
    if (state_ == State::offset_numbers) {
      if (offsets_.size() != 2) fail("{}: data_offsets must hold two numbers", here());
      header_.tensors.back().begin = offsets_[0];
      header_.tensors.back().end = offsets_[1];
    }
    state_ = State::fields;
    return true;
  }

  bool end_object() override {
    if (state_ == State::fields) {
      const char* missing = !dtype_          ? "dtype"
                            : !shape_seen_   ? "shape"
                            : !offsets_seen_ ? "data_offsets"
                                             : nullptr;
      if (missing) fail("{}: has no {}", here(), missing);
      header_.tensors.back().type = *dtype_;
      state_ = State::names;
    } else if (state_ == State::metadata_keys) {
      state_ = State::names;
    } else {
      state_ = State::done;
    }
    return true;
  }

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("true or false"); }
  bool binary(binary_t&) override { unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    fail("{}: its header is not valid JSON (near byte {} of it)", where_, position);
  }

 private:
  enum class State {
    document,
    names,
    entry,
    fields,
    dtype,
    shape,
    shape_numbers,
    offsets,
    offset_numbers,
    metadata,
    metadata_keys,
    metadata_value,
    done,
  };

  void field(const std::string& name) {
    if (name == "dtype" && !dtype_) {
      state_ = State::dtype;
    } else if (name == "shape" && !shape_seen_) {
      shape_seen_ = true;
      state_ = State::shape;
    } else if (name == "data_offsets" && !offsets_seen_) {
      offsets_seen_ = true;
      state_ = State::offsets;
    } else {
      fail("{}: the field \"{}\" is unknown or occurs twice", here(), name);
    }
  }

  std::string here() const {
    return header_.tensors.empty() ? where_
                                   : where_ + ": tensor \"" + header_.tensors.back().name + "\"";
  }

  [[noreturn]] void unexpected(const char* what) const {
    fail("{}: its header has {} where none may be", here(), what);
  }

  SafetensorsHeader& header_;
  const std::string& where_;
  State state_ = State::document;
  std::set<std::string> names_;
  std::optional<DType> dtype_;
  bool shape_seen_ = false, offsets_seen_ = false;
  std::vector<uint64_t> offsets_;
  std::string metadata_key_;
};

void check_entry(const HeaderEntry& entry, uint64_t data_size, const std::string& where) {
  const auto at = [&] { return where + ": tensor \"" + entry.name + "\""; };
  if (entry.begin > entry.end)
    fail("{}: data_offsets are reversed: [{}, {}]", at(), entry.begin, entry.end);
  if (entry.end > data_size)
    fail("{}: ends at byte {} of the data, of which the file has only {}; is it truncated?", at(),
         entry.end, data_size);
  uint64_t bytes = 0;
  if (!tensor_bytes(entry.shape, entry.type, bytes))
    fail("{}: its shape has more elements than 64 bits can count", at());
  if (bytes != entry.end - entry.begin)
    fail("{}: its shape and dtype need {} bytes, its data_offsets give it {}", at(), bytes,
         entry.end - entry.begin);
}

void check_layout(const std::vector<HeaderEntry>& tensors, uint64_t data_size,
                  const std::string& where) {
  uint64_t position = 0;
  const std::string* previous = nullptr;
  for (const HeaderEntry& entry : tensors) {
    if (entry.begin < position)
      fail("{}: tensors \"{}\" and \"{}\" overlap", where, *previous, entry.name);
    if (entry.begin > position)
      fail("{}: {} bytes before tensor \"{}\" belong to no tensor", where, entry.begin - position,
           entry.name);
    position = entry.end;
    previous = &entry.name;
  }
  if (position != data_size)
    fail("{}: its last {} bytes belong to no tensor", where, data_size - position);
}

}  // namespace

bool tensor_bytes(const std::vector<int64_t>& shape, DType type, uint64_t& bytes) {
  uint64_t product = size_of(type);
  for (const int64_t dimension : shape) {
    if (dimension < 0) return false;
    if (__builtin_mul_overflow(product, static_cast<uint64_t>(dimension), &product)) return false;
    if (product > largest) return false;
  }
  bytes = product;
  return true;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, uint64_t data_size,
                                           const std::string& where) {
  refuse_zero_bytes(text, where);
  SafetensorsHeader header;
  HeaderReader reader(header, where);
  nlohmann::json::sax_parse(text, &reader);
  for (const HeaderEntry& entry : header.tensors) check_entry(entry, data_size, where);
  std::ranges::sort(header.tensors, [](const HeaderEntry& a, const HeaderEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_layout(header.tensors, data_size, where);
  return header;
}

}  // namespace sol
