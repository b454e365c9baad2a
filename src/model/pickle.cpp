#include "model/pickle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "base/fail.h"

namespace sol {
namespace {

constexpr const char* ordered_dict = "collections.OrderedDict";
constexpr const char* rebuild_tensor = "torch._utils._rebuild_tensor_v2";
constexpr const char* rebuild_parameter = "torch._utils._rebuild_parameter";

constexpr std::array<std::pair<std::string_view, DType>, 9> storages{
    {{"torch.FloatStorage", DType::f32},
     {"torch.DoubleStorage", DType::f64},
     {"torch.HalfStorage", DType::f16},
     {"torch.BFloat16Storage", DType::bf16},
     {"torch.LongStorage", DType::i64},
     {"torch.IntStorage", DType::i32},
     {"torch.ShortStorage", DType::i16},
     {"torch.CharStorage", DType::i8},
     {"torch.ByteStorage", DType::u8}}};

// Values that say nothing about weights, but stand among a run's settings.
constexpr std::array<std::string_view, 6> dtypes{"torch.float32", "torch.float16", "torch.bfloat16",
                                                 "torch.float64", "torch.int64",   "torch.int32"};

std::optional<DType> storage_type(std::string_view name) {
  for (const auto& [known, type] : storages)
    if (known == name) return type;
  return std::nullopt;
}

bool is_known(std::string_view name) {
  return name == ordered_dict || name == rebuild_tensor || name == rebuild_parameter ||
         storage_type(name) || std::ranges::find(dtypes, name) != dtypes.end();
}

}  // namespace

const PickleValue* PickleDict::find(std::string_view key) const {
  for (auto item = items.rbegin(); item != items.rend(); ++item)
    if (const auto* text = item->first->as<std::string>(); text && *text == key)
      return item->second;
  return nullptr;
}

// Python's pickle machine (Lib/pickletools.py describes its instructions), without those that make
// objects of classes.
class Unpickler {
 public:
  Unpickler(Pickle& out, std::span<const std::byte> bytes, std::string where)
      : out_(out), bytes_(bytes), where_(std::move(where)) {}

  void run() {
    for (;;) {
      const auto code = static_cast<unsigned char>(take(1)[0]);
      if (code == '.') break;
      execute(code);
    }
    out_.root_ = pop();
  }

 private:
  using Value = PickleValue;

  [[noreturn]] void malformed(const char* what) const {
    fail("{}: malformed at byte {}: {}", where_, at_, what);
  }

  std::span<const std::byte> take(size_t n) {
    if (n > bytes_.size() - at_) fail("{}: truncated at byte {}", where_, at_);
    at_ += n;
    return bytes_.subspan(at_ - n, n);
  }
  uint64_t number(size_t bytes) {
    uint64_t out = 0;
    const auto from = take(bytes);
    for (size_t i = 0; i < bytes; ++i) out |= static_cast<uint64_t>(from[i]) << (8 * i);
    return out;
  }
  std::string text(size_t n) {
    const auto from = take(n);
    return {reinterpret_cast<const char*>(from.data()), n};
  }
  std::string line() {
    std::string out;
    for (char c; (c = static_cast<char>(take(1)[0])) != '\n';) out += c;
    return out;
  }

  template <typename T>
  Value* push(T&& data) {
    out_.values_.push_back(Value{std::forward<T>(data)});
    stack_.push_back(&out_.values_.back());
    return stack_.back();
  }
  Value* pop() {
    if (stack_.empty() || (!marks_.empty() && stack_.size() == marks_.back()))
      malformed("there is nothing left to take");
    Value* value = stack_.back();
    stack_.pop_back();
    return value;
  }
  Value* top() {
    Value* value = pop();
    stack_.push_back(value);
    return value;
  }
  std::vector<const Value*> pop_to_mark() {
    if (marks_.empty()) malformed("there is no mark");
    std::vector<const Value*> out(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()),
                                  stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return out;
  }
  template <typename T>
  T& top_as(const char* what) {
    T* value = std::get_if<T>(&top()->data);
    if (!value) malformed(what);
    return *value;
  }
  void push_tuple(size_t n) {
    PickleList list;
    for (size_t i = 0; i < n; ++i) list.items.insert(list.items.begin(), pop());
    push(std::move(list));
  }
  void push_integer(size_t bytes) {  // signed, of up to eight bytes
    if (bytes > 8) malformed("an integer of more than 64 bits");
    if (bytes == 0) return void(push(int64_t{0}));
    const uint64_t value = number(bytes);
    const size_t unused = 64 - 8 * bytes;
    push(static_cast<int64_t>(value << unused) >> unused);
  }

  void set_items(const std::vector<const Value*>& items) {
    if (items.size() % 2 != 0) malformed("a key without a value");
    auto& dict = top_as<PickleDict>("items for what is no dictionary");
    for (size_t i = 0; i < items.size(); i += 2) dict.items.emplace_back(items[i], items[i + 1]);
  }
  void append(const std::vector<const Value*>& items) {
    auto& list = top_as<PickleList>("items for what is no list");
    list.items.insert(list.items.end(), items.begin(), items.end());
  }

  void push_name(std::string name) {
    if (!is_known(name))
      fail("{}: holds an object of Python's {}, which this program neither knows nor runs", where_,
           name);
    push(PickleName{std::move(name)});
  }

  const Value* argument(const PickleList& arguments, size_t i) {
    if (i >= arguments.items.size()) malformed("a call with too few arguments");
    return arguments.items[i];
  }
  std::vector<int64_t> integers(const Value* value) {
    const auto* list = value->as<PickleList>();
    if (!list) malformed("a tensor's shape is no list");
    std::vector<int64_t> out;
    for (const Value* item : list->items) {
      if (!item->as<int64_t>()) malformed("a tensor's size is no integer");
      out.push_back(*item->as<int64_t>());
    }
    return out;
  }

  void call() {
    const Value* arguments_value = pop();
    const Value* callee = pop();
    const auto* arguments = arguments_value->as<PickleList>();
    const auto* name = callee->as<PickleName>();
    if (!arguments || !name) malformed("a call of what is no function");
    if (name->name == ordered_dict && arguments->items.empty()) return void(push(PickleDict{}));
    if (name->name == rebuild_parameter) {
      const auto* tensor = argument(*arguments, 0)->as<PickleTensor>();
      if (!tensor) malformed("a parameter that is no tensor");
      return void(push(PickleTensor(*tensor)));
    }
    if (name->name != rebuild_tensor)
      fail("{}: calls {}, which this program does not run", where_, name->name);
    const auto* storage = argument(*arguments, 0)->as<PickleStorage>();
    const auto* offset = argument(*arguments, 1)->as<int64_t>();
    if (!storage || !offset) malformed("a tensor without storage or offset");
    push(PickleTensor{*storage, *offset, integers(argument(*arguments, 2)),
                      integers(argument(*arguments, 3))});
  }

  // ('storage', its class, the entry's key, a device, its number of elements)
  void push_storage() {
    const Value* id = pop();
    const auto* list = id->as<PickleList>();
    if (!list || list->items.size() != 5) malformed("a reference to what is no storage");
    const auto* kind = list->items[0]->as<std::string>();
    const auto* type_name = list->items[1]->as<PickleName>();
    const auto* key = list->items[2]->as<std::string>();
    const auto* count = list->items[4]->as<int64_t>();
    const auto type = type_name ? storage_type(type_name->name) : std::nullopt;
    if (!kind || *kind != "storage" || !type || !key || !count || *count < 0)
      malformed("a reference to what is no storage");
    push(PickleStorage{*key, *type, *count});
  }

  void recall(uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) malformed("refers to what is not there");
    stack_.push_back(found->second);
  }

  void execute(unsigned char code) {
    switch (code) {
      case 0x80:  // protocol
        if (number(1) > 4) fail("{}: a pickle of a later protocol", where_);
        return;
      case 0x95:  // a frame's length
        number(8);
        return;
      case '(':
        return marks_.push_back(stack_.size());
      case 'N':
        return void(push(std::monostate{}));
      case 0x88:
        return void(push(true));
      case 0x89:
        return void(push(false));
      case 'K':
        return void(push(static_cast<int64_t>(number(1))));
      case 'M':
        return void(push(static_cast<int64_t>(number(2))));
      case 'J':
        return push_integer(4);
      case 0x8a:
        return push_integer(number(1));
      case 'G': {  // big-endian
        uint64_t bits = 0;
        for (const std::byte b : take(8)) bits = bits << 8 | static_cast<uint64_t>(b);
        return void(push(std::bit_cast<double>(bits)));
      }
      case 'X':
        return void(push(text(number(4))));
      case 0x8c:
        return void(push(text(number(1))));
      case '}':
        return void(push(PickleDict{}));
      case ']':
      case ')':
        return void(push(PickleList{}));
      case 't':
        return void(push(PickleList{pop_to_mark()}));
      case 0x85:
        return push_tuple(1);
      case 0x86:
        return push_tuple(2);
      case 0x87:
        return push_tuple(3);
      case 'a': {
        const Value* item = pop();
        return append({item});
      }
      case 'e':
        return append(pop_to_mark());
      case 's': {
        const Value *value = pop(), *key = pop();
        return set_items({key, value});
      }
      case 'u':
        return set_items(pop_to_mark());
      case 'q':
        memo_[number(1)] = top();
        return;
      case 'r':
        memo_[number(4)] = top();
        return;
      case 0x94: {
        const size_t next = memo_.size();
        memo_[next] = top();
        return;
      }
      case 'h':
        return recall(number(1));
      case 'j':
        return recall(number(4));
      case 'c': {
        const std::string module = line();
        return push_name(module + "." + line());
      }
      case 0x93: {
        const Value *name = pop(), *module = pop();
        if (!name->as<std::string>() || !module->as<std::string>()) malformed("a name is no text");
        return push_name(*module->as<std::string>() + "." + *name->as<std::string>());
      }
      case 'Q':
        return push_storage();
      case 'R':
        return call();
      case 'b':  // attributes; those of a dictionary (a state_dict's versions) say nothing of value
        pop();
        top_as<PickleDict>("attributes for what is no dictionary");
        return;
      default:
        fail(
            "{}: the instruction {:#04x} at byte {} is not one that tensors and settings "
            "need",
            where_, code, at_ - 1);
    }
  }

  Pickle& out_;
  std::span<const std::byte> bytes_;
  std::string where_;
  size_t at_ = 0;
  std::vector<Value*> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, Value*> memo_;
};

Pickle::Pickle(std::span<const std::byte> bytes, const std::string& where) {
  Unpickler(*this, bytes, where).run();
}

}  // namespace sol
