#include "model/llama2c.h"

#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/mapped_file.h"
#include "base/staged_directory.h"
#include "model/safetensors.h"

namespace sol {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t later_versions_magic = 0x616b3432;  // "ak42"

struct Header {
  int64_t dim, hidden, layers, heads, kv_heads, vocab, length;
  bool shared_head;
  int64_t head_dim() const { return dim / heads; }
  int64_t kv_dim() const { return kv_heads * head_dim(); }
};

Header read_header(std::span<const std::byte> bytes, const std::string& where) {
  std::array<int32_t, 7> field{};
  if (bytes.size() < sizeof(field))
    fail("{}: {} bytes are too few for a checkpoint of llama2.c", where, bytes.size());
  std::memcpy(field.data(), bytes.data(), sizeof(field));
  if (static_cast<uint32_t>(field[0]) == later_versions_magic)
    fail("{}: a checkpoint of llama2.c's version {}; export it with --version 0", where, field[1]);
  // A negative vocabulary says that the head has weights of its own.
  const Header h{field[0], field[1],    field[2], field[3], field[4], std::abs(int64_t{field[5]}),
                 field[6], field[5] > 0};
  constexpr std::array names{"dim",        "hidden_dim", "n_layers", "n_heads",
                             "n_kv_heads", "vocab_size", "seq_len"};
  constexpr std::array<int64_t, 7> limits{1 << 16, 1 << 18, 512,    1 << 12,
                                          1 << 12, 1 << 20, 1 << 20};
  const std::array<int64_t, 7> values{h.dim,      h.hidden, h.layers, h.heads,
                                      h.kv_heads, h.vocab,  h.length};
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] < 1 || values[i] > limits[i])
      fail("{}: {} = {} must be from 1 to {}; not a checkpoint of llama2.c's legacy format", where,
           names[i], values[i], limits[i]);
  if (h.dim % h.heads != 0 || h.heads % h.kv_heads != 0 || h.head_dim() % 2 != 0)
    fail(
        "{}: {} channels cannot be divided among {} query and {} key heads of even width; not a "
        "checkpoint of llama2.c's legacy format",
        where, h.dim, h.heads, h.kv_heads);
  return h;
}

// The matrices of the file one after the other, all layers of a kind together.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::string where)
      : bytes_(bytes), where_(std::move(where)) {}

  std::span<const std::byte> take(int64_t floats, const char* name) {
    const auto size = static_cast<size_t>(floats) * sizeof(float);
    if (size > bytes_.size() - at_) fail("{}: ends within {}: truncated", where_, name);
    at_ += size;
    return bytes_.subspan(at_ - size, size);
  }
  void finish() const {
    if (at_ != bytes_.size())
      fail("{}: {} bytes longer than its header says", where_, bytes_.size() - at_);
  }

 private:
  std::span<const std::byte> bytes_;
  std::string where_;
  size_t at_ = sizeof(int32_t) * 7;
};

void require_finite(std::span<const std::byte> bytes, const std::string& name,
                    const std::string& where) {
  for (size_t i = 0; i < bytes.size(); i += sizeof(float)) {
    float value;
    std::memcpy(&value, bytes.data() + i, sizeof(value));
    if (!(std::abs(value) <= largest_weight))
      fail("{}: {} holds {} at element {}, not finite or too large", where, name, value,
           i / sizeof(float));
  }
}

// From pairs of neighbouring rows to halves: row 2 j of a head becomes its row j, 2 j + 1 its row
// head_dim / 2 + j.
void to_halves(std::span<const std::byte> from, int64_t heads, int64_t head_dim, int64_t columns,
               std::span<std::byte> to) {
  const auto row = static_cast<size_t>(columns) * sizeof(float);
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t i = 0; i < head_dim; ++i) {
      const int64_t target = h * head_dim + i / 2 + (i % 2) * (head_dim / 2);
      std::memcpy(to.data() + static_cast<size_t>(target) * row,
                  from.data() + static_cast<size_t>(h * head_dim + i) * row, row);
    }
}

// All tensors under Hugging Face's names; they copy from the mapped file when they are written.
std::vector<TensorToMake> make_tensors(const Header& h, Reader& reader, const std::string& where,
                                       const std::stop_token& stop) {
  std::vector<TensorToMake> tensors;
  const auto add = [&](const std::string& name, std::vector<int64_t> shape,
                       std::span<const std::byte> from, int64_t heads = 0) {
    tensors.push_back({name, DType::f32, shape, [=](std::span<std::byte> to) {
                         if (stop.stop_requested()) throw Cancelled();
                         require_finite(from, name, where);
                         if (heads > 0) {
                           to_halves(from, heads, shape[0] / heads, shape[1], to);
                         } else {
                           std::memcpy(to.data(), from.data(), to.size());
                         }
                       }});
  };
  const auto add_layers = [&](const char* name, std::vector<int64_t> shape, int64_t heads = 0) {
    int64_t count = 1;
    for (const int64_t n : shape) count *= n;
    for (int64_t i = 0; i < h.layers; ++i)
      add(fmt::format("model.layers.{}.{}.weight", i, name), shape, reader.take(count, name),
          heads);
  };
  add("model.embed_tokens.weight", {h.vocab, h.dim}, reader.take(h.vocab * h.dim, "the embedding"));
  add_layers("input_layernorm", {h.dim});
  add_layers("self_attn.q_proj", {h.dim, h.dim}, h.heads);
  add_layers("self_attn.k_proj", {h.kv_dim(), h.dim}, h.kv_heads);
  add_layers("self_attn.v_proj", {h.kv_dim(), h.dim});
  add_layers("self_attn.o_proj", {h.dim, h.dim});
  add_layers("post_attention_layernorm", {h.dim});
  add_layers("mlp.gate_proj", {h.hidden, h.dim});
  add_layers("mlp.down_proj", {h.dim, h.hidden});
  add_layers("mlp.up_proj", {h.hidden, h.dim});
  add("model.norm.weight", {h.dim}, reader.take(h.dim, "the final norm"));
  reader.take(h.length * h.head_dim(), "the rotary tables");  // cosines and sines, of no use
  if (!h.shared_head)
    add("lm_head.weight", {h.vocab, h.dim}, reader.take(h.vocab * h.dim, "the head"));
  reader.finish();
  return tensors;
}

Json config_of(const Header& h) {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"hidden_size", h.dim},
          {"intermediate_size", h.hidden},
          {"num_hidden_layers", h.layers},
          {"num_attention_heads", h.heads},
          {"num_key_value_heads", h.kv_heads},
          {"head_dim", h.head_dim()},
          {"vocab_size", h.vocab},
          {"max_position_embeddings", h.length},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 10000.0},
          {"hidden_act", "silu"},
          {"tie_word_embeddings", h.shared_head},
          {"attention_bias", false},
          {"mlp_bias", false},
          {"bos_token_id", 1},
          {"eos_token_id", 2},
          {"torch_dtype", "float32"}};
}

}  // namespace

void convert_llama2c(const fs::path& checkpoint, const fs::path& tokenizer, const fs::path& to,
                     const std::stop_token& stop) {
  const MappedFile file(checkpoint);
  const std::string where = checkpoint.string();
  const Header header = read_header(file.bytes(), where);
  Reader reader(file.bytes(), where);
  const std::vector<TensorToMake> tensors = make_tensors(header, reader, where, stop);
  const Json tokenizer_json = read_llama2c_tokenizer(tokenizer, static_cast<int>(header.vocab));

  StagedDirectory staged(to);
  const auto write = [&](const char* name, const Json& json) {
    write_file_atomically(staged.path() / name, to_text(json, 2) + "\n");
  };
  make_safetensors(staged.path() / "model.safetensors", tensors, {{"format", "pt"}});
  write("config.json", config_of(header));
  write("tokenizer.json", tokenizer_json);
  write("tokenizer_config.json", {{"tokenizer_class", "PreTrainedTokenizerFast"},
                                  {"bos_token", "<s>"},
                                  {"eos_token", "</s>"},
                                  {"unk_token", "<unk>"},
                                  {"add_bos_token", true},
                                  {"clean_up_tokenization_spaces", false},
                                  {"model_max_length", header.length}});
  // llama2.c's texts are separated by begin tokens, and that is where its run stops.
  write("generation_config.json", {{"bos_token_id", 1}, {"eos_token_id", {1, 2}}});
  staged.place();
}

}  // namespace sol
