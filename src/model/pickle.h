// A pickled object as data. Nothing in it is ever run: of Python's names only those that make
// dictionaries and tensors are known, and any other is an error that names it.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "model/safetensors.h"

namespace sol {

struct PickleValue;

struct PickleList {  // or tuple
  std::vector<const PickleValue*> items;
};
struct PickleDict {
  std::vector<std::pair<const PickleValue*, const PickleValue*>> items;  // as they were set
  const PickleValue* find(std::string_view key) const;  // the last of that key; null: none
};
struct PickleName {  // a class, function or dtype, by name only
  std::string name;
};
struct PickleStorage {
  std::string key;  // of the archive's entry
  DType type = DType::f32;
  int64_t count = 0;
};
struct PickleTensor {
  PickleStorage storage;
  int64_t offset = 0;
  std::vector<int64_t> shape, strides;
};

struct PickleValue {
  std::variant<std::monostate, bool, int64_t, double, std::string, PickleList, PickleDict,
               PickleName, PickleStorage, PickleTensor>
      data;
  template <typename T>
  const T* as() const {
    return std::get_if<T>(&data);
  }
};

class Pickle {
 public:
  // Of protocols 2 to 4. `where` is what messages call it. Throws Error for anything truncated,
  // malformed or unknown.
  Pickle(std::span<const std::byte> bytes, const std::string& where);
  const PickleValue& root() const { return *root_; }

 private:
  friend class Unpickler;
  std::deque<PickleValue> values_;  // all there are: they may refer to each other in circles
  const PickleValue* root_ = nullptr;
};

}  // namespace sol
