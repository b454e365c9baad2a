// sol inspect: what a model directory holds.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/file_io.h"
#include "base/json.h"
#include "commands.h"
#include "common.h"
#include "engine/converted_weights.h"
#include "engine/pack_weights.h"
#include "kernels/compressed.h"
#include "model/llama_weights.h"
#include "sol/error.h"
#include "sol/tokenizer.h"

namespace sol::app {
namespace {

struct InspectFlags {
  std::filesystem::path dir;
  bool json = false;
};

struct Inspection {
  std::filesystem::path dir;
  LlamaConfig config;
  TensorStore store;
  std::optional<Conversion> conversion;
  int64_t parameters = 0, bytes = 0;
  std::map<std::string, int64_t> parameters_of_type;
  std::string tokenizer;  // empty: the directory has none
  std::string fingerprint;
  std::vector<std::string> problems;  // what keeps it from being run, or from reading text
};

void count(Inspection& result, const TensorView& tensor, int64_t parameters,
           const std::string& type) {
  result.parameters += parameters;
  result.bytes += static_cast<int64_t>(tensor.bytes.size());
  result.parameters_of_type[type] += parameters;
}

// Adds what a check that loading makes has against these weights.
template <typename Weights>
void examine(Inspection& result, void (*check)(const Weights&), const Weights& weights) {
  try {
    check(weights);
  } catch (const Error& error) {
    result.problems.push_back(fmt::format("cannot run: {}", error.what()));
  }
}

void count_floats(Inspection& result, const TensorView& tensor) {
  count(result, tensor, tensor.count(), std::string(to_string(tensor.type)));
  examine(result, require_finite, tensor);
}

// Every weight once: a tied head is the embedding.
void count_original(Inspection& result) {
  const LlamaWeights weights = find_llama_weights(result.config, result.store);
  std::set<const TensorView*> all{weights.embedding, weights.final_norm, weights.head};
  for (const LlamaLayerWeights& layer : weights.layers)
    all.insert({layer.input_norm, layer.q, layer.k, layer.v, layer.o, layer.post_norm, layer.gate,
                layer.up, layer.down});
  for (const TensorView* tensor : all) count_floats(result, *tensor);
}

void count_converted(Inspection& result) {
  const ConvertedWeights weights =
      find_converted_weights(result.config, result.store, result.conversion->type);
  std::map<const TensorView*, ConvertedMatrix> matrices;
  const auto add = [&](const ConvertedMatrix& matrix) { matrices.emplace(matrix.tensor, matrix); };
  count_floats(result, *weights.final_norm);
  add(weights.embedding);
  add(weights.head);
  for (const ConvertedLayer& layer : weights.layers) {
    count_floats(result, *layer.input_norm);
    count_floats(result, *layer.post_norm);
    for (const ConvertedMatrix& matrix :
         {layer.q, layer.k, layer.v, layer.o, layer.gate_up, layer.down})
      add(matrix);
  }
  for (const auto& [tensor, matrix] : matrices) {
    count(result, *tensor, int64_t{matrix.in} * matrix.out,
          kernels::is_compressed(matrix.type) ? std::string(to_string(matrix.type))
                                              : std::string(to_string(tensor->type)));
    examine(result, check_converted, matrix);
  }
}

// What the other commands would refuse, beside the weights themselves.
void add_problems(Inspection& model, const Tokenizer* tokenizer) {
  if (!tokenizer)
    model.problems.push_back("cannot read or write text: there is no tokenizer.json");
  else if (tokenizer->vocab_size() > model.config.vocab_size)
    model.problems.push_back(
        fmt::format("cannot run: the tokenizer has {} tokens, the model only {}",
                    tokenizer->vocab_size(), model.config.vocab_size));
}

Inspection inspect(const std::filesystem::path& dir) {
  Inspection result{.dir = dir,
                    .config = load_config(dir),
                    .store = TensorStore::open_directory(dir),
                    .conversion = {},
                    .parameters_of_type = {},
                    .tokenizer = {},
                    .fingerprint = {},
                    .problems = {}};
  result.conversion = conversion_of(result.config, result.store);
  result.conversion ? count_converted(result) : count_original(result);
  std::shared_ptr<const Tokenizer> tokenizer;
  if (path_exists(dir / "tokenizer.json")) tokenizer = Tokenizer::load(dir);
  if (tokenizer) result.tokenizer = tokenizer->describe();
  result.fingerprint = fingerprint_of(result.config, result.store);
  add_problems(result, tokenizer.get());
  return result;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string thousands(int64_t n) {
  std::string text = std::to_string(n);
  for (size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

// "model.layers.12.mlp.up_proj.weight" as "model.layers.*.mlp.up_proj.weight".
std::string without_layer_number(const std::string& name) {
  const size_t start = name.find("layers.");
  if (start == std::string::npos) return name;
  const size_t number = start + std::string_view("layers.").size();
  const size_t end = name.find_first_not_of("0123456789", number);
  if (end == number || end == std::string::npos) return name;
  return name.substr(0, number) + "*" + name.substr(end);
}

// One row for the tensors that differ in their layer only.
std::string tensor_table(const TensorStore& store) {
  std::map<std::vector<std::string>, std::pair<int, size_t>> rows;
  size_t name_width = 0, shape_width = 0;
  for (const auto& [name, tensor] : store.tensors()) {
    const std::vector<std::string> key{
        without_layer_number(name), std::string(to_string(tensor.type)), shape_text(tensor.shape)};
    auto& [count, bytes] = rows[key];
    ++count;
    bytes += tensor.bytes.size();
    name_width = std::max(name_width, key[0].size());
    shape_width = std::max(shape_width, key[2].size());
  }
  std::string text = fmt::format("{:<{}}  {:<4}  {:<{}}  {:>5}  {:>15}\n", "tensor", name_width,
                                 "type", "shape", shape_width, "count", "bytes");
  for (const auto& [key, total] : rows)
    text +=
        fmt::format("{:<{}}  {:<4}  {:<{}}  {:>5}  {:>15}\n", key[0], name_width, key[1], key[2],
                    shape_width, total.first, thousands(static_cast<int64_t>(total.second)));
  return text;
}

std::string dtype_text(const Inspection& model) {
  std::string text;
  for (const auto& [type, parameters] : model.parameters_of_type)
    text += text.empty() ? type : ", " + type;
  return text;
}

void print_table(const Inspection& model) {
  const LlamaConfig& config = model.config;
  const auto row = [](const char* name, const std::string& value) {
    print("{:<14}{}\n", name, value);
  };
  row("model", model.dir.string());
  row("type", config.model_type);
  row("layers", std::to_string(config.num_layers));
  row("hidden", std::to_string(config.hidden_size));
  row("MLP", std::to_string(config.intermediate_size));
  row("heads", fmt::format("{} query, {} key/value, {} wide", config.num_heads, config.num_kv_heads,
                           config.head_dim));
  row("vocabulary", std::to_string(config.vocab_size));
  row("context", std::to_string(config.max_position_embeddings));
  std::string rotary = fmt::format("theta {}", config.rope_theta);
  if (config.rope_scaling)
    rotary += fmt::format(", llama3 scaling: factor {}, low {}, high {}, original context {}",
                          config.rope_scaling->factor, config.rope_scaling->low_freq_factor,
                          config.rope_scaling->high_freq_factor,
                          config.rope_scaling->original_max_position_embeddings);
  row("rotary", rotary);
  row("head", config.tie_word_embeddings ? "tied to the embedding" : "its own");
  row("dtype", dtype_text(model));
  if (model.conversion)
    row("converted", fmt::format("to {} weights, from {}", to_string(model.conversion->type),
                                 to_string(model.conversion->source_type)));
  row("parameters", thousands(model.parameters));
  row("bytes", fmt::format("{} in {} file{}", thousands(model.bytes), model.store.files().size(),
                           model.store.files().size() == 1 ? "" : "s"));
  row("tokenizer", model.tokenizer.empty() ? "none in this directory" : model.tokenizer);
  row("fingerprint",
      model.fingerprint + (model.conversion ? " (of the original, whose controllers fit)" : ""));
  for (const std::string& problem : model.problems) row("problem", problem);
  if (model.problems.empty()) row("can run", "yes");
  print("\n{}", tensor_table(model.store));
}

Json rope_json(const LlamaConfig& config) {
  if (!config.rope_scaling) return nullptr;
  return {
      {"rope_type", "llama3"},
      {"factor", config.rope_scaling->factor},
      {"low_freq_factor", config.rope_scaling->low_freq_factor},
      {"high_freq_factor", config.rope_scaling->high_freq_factor},
      {"original_max_position_embeddings", config.rope_scaling->original_max_position_embeddings}};
}

void print_json(const Inspection& model) {
  const LlamaConfig& config = model.config;
  Json json{{"model", model.dir.string()},
            {"model_type", config.model_type},
            {"num_layers", config.num_layers},
            {"hidden_size", config.hidden_size},
            {"intermediate_size", config.intermediate_size},
            {"num_heads", config.num_heads},
            {"num_kv_heads", config.num_kv_heads},
            {"head_dim", config.head_dim},
            {"vocab_size", config.vocab_size},
            {"max_position_embeddings", config.max_position_embeddings},
            {"rope_theta", config.rope_theta},
            {"rope_scaling", rope_json(config)},
            {"tie_word_embeddings", config.tie_word_embeddings},
            {"parameters", model.parameters},
            {"bytes", model.bytes},
            {"parameters_by_dtype", model.parameters_of_type},
            {"weights", model.conversion ? Json(std::string(to_string(model.conversion->type)))
                                         : Json(nullptr)},
            {"tokenizer", model.tokenizer.empty() ? Json(nullptr) : Json(model.tokenizer)},
            {"fingerprint", model.fingerprint},
            {"problems", model.problems}};
  Json& files = json["files"] = Json::array();
  for (const std::filesystem::path& file : model.store.files())
    files.push_back(file.filename().string());
  Json& tensors = json["tensors"] = Json::array();
  for (const auto& [name, tensor] : model.store.tensors())
    tensors.push_back({{"name", name},
                       {"dtype", std::string(to_string(tensor.type))},
                       {"shape", tensor.shape},
                       {"bytes", tensor.bytes.size()}});
  print("{}\n", to_text(json, 2));
}

}  // namespace

void add_inspect_command(CLI::App& app) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* command = app.add_subcommand(
      "inspect", "Show a model's shapes, parameters, bytes, dtype, tokenizer and fingerprint");
  command->add_option("dir,-m,--model", flags->dir,
                      "Model directory in Hugging Face's layout (default: the embedded model)");
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags] {
    const Inspection model = inspect(flags->dir.empty() ? default_model_dir() : flags->dir);
    flags->json ? print_json(model) : print_table(model);
  });
}

}  // namespace sol::app
