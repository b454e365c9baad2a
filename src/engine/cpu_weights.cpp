#include "engine/cpu_weights.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "base/large_memory.h"
#include "base/threads.h"
#include "engine/pack_weights.h"

namespace sol {

using kernels::Layout;
using kernels::WeightType;
using kernels::WeightView;

WeightType weight_type(Precision precision, WeightFormat format) {
  switch (format) {
    case WeightFormat::int8:
      return WeightType::int8;
    case WeightFormat::int4:
      return WeightType::int4;
    case WeightFormat::automatic:
      break;
  }
  return precision == Precision::bf16 ? WeightType::bf16 : WeightType::f32;
}

namespace {

WeightFormat format_of(WeightType type) {
  if (type == WeightType::int8) return WeightFormat::int8;
  if (type == WeightType::int4) return WeightFormat::int4;
  return WeightFormat::automatic;
}

// What a converted file is held as: its codes are final, bf16 is as good as an original.
WeightType converted_type(const Conversion& conversion, Precision precision, WeightFormat format) {
  const WeightType wanted = weight_type(precision, format);
  if (!kernels::is_compressed(conversion.type)) return wanted;
  if (format != WeightFormat::automatic && wanted != conversion.type)
    fail("the model was converted to {} weights; {} must be made from the original",
         to_string(conversion.type), to_string(wanted));
  return conversion.type;
}

// Before weights are made that could not be used.
void check_integer_products(const LlamaConfig& config, WeightType type) {
  if (type != WeightType::int8)
    fail("activations of 8 bits need weights of 8 bits: load the model with --weights int8");
  const int widest =
      std::max({config.hidden_size, config.intermediate_size, config.num_heads * config.head_dim});
  if (widest > kernels::kMostIntegerInputs)
    fail("activations of 8 bits: the sum of a product of {} inputs does not fit 32 bits", widest);
}

// Of everything that loading could make of the store's tensors: float32 of each, and what alignment
// to huge pages wastes.
size_t most_bytes(const TensorStore& store) {
  size_t bytes = 0;
  for (const auto& entry : store.tensors())
    bytes += static_cast<size_t>(entry.second.count()) * sizeof(float) + huge_page_bytes;
  return bytes;
}

bool suits(DType stored, WeightType type) {
  return (stored == DType::f32 && type == WeightType::f32) ||
         (stored == DType::bf16 && type == WeightType::bf16);
}

}  // namespace

std::string_view weights_name(const FrozenModel& model) {
  return to_string(weight_type(model.precision(), model.weight_format()));
}

DType stored_type(const LlamaConfig& config, const TensorStore& store) {
  if (const auto conversion = conversion_of(config, store)) return conversion->source_type;
  return find_llama_weights(config, store).layers.front().gate->type;
}

Precision resolve_precision(Precision requested, DType stored) {
  if (requested != Precision::automatic) return requested;
  return stored == DType::bf16 && cpu_multiplies_bf16() && has_avx512(current_isa())
             ? Precision::bf16
             : Precision::f32;
}

std::vector<float> CpuWeights::vector_of(const TensorView& tensor) {
  require_finite(tensor);
  parameters += static_cast<uint64_t>(tensor.count());
  return tensor.to_floats();
}

// The rows of a tensor that is not compressed.
WeightView CpuWeights::held(const TensorView& tensor, Layout layout, int in, int out,
                            WeightType type) {
  const int columns = layout == Layout::out_major ? in : out;
  WeightView view{tensor.bytes.data(), type, layout, in, out, kernels::dense_stride(type, columns)};
  if (suits(tensor.type, type)) {
    in_place_ = true;
    return view;
  }
  view.data = memory_.make(static_cast<size_t>(kernels::matrix_bytes(view)),
                           [&](std::byte* to) { pack_rows(tensor, type, to); });
  return view;
}

WeightView CpuWeights::matrix(const TensorView& tensor, WeightType type) {
  if (!memory_.filled()) require_finite(tensor);
  parameters += static_cast<uint64_t>(tensor.count());
  return held(tensor, Layout::out_major, static_cast<int>(tensor.shape[1]),
              static_cast<int>(tensor.shape[0]), type);
}

WeightView CpuWeights::converted(const ConvertedMatrix& matrix, WeightType type) {
  if (!memory_.filled()) check_converted(matrix);
  parameters += static_cast<uint64_t>(matrix.in) * static_cast<uint64_t>(matrix.out);
  if (!kernels::is_compressed(matrix.type))
    return held(*matrix.tensor, matrix.layout, matrix.in, matrix.out, type);
  in_place_ = true;
  return {matrix.tensor->bytes.data(), matrix.type, matrix.layout, matrix.in, matrix.out,
          matrix.tensor->shape[1]};
}

WeightView CpuWeights::by_channel(std::span<const TensorView* const> matrices) {
  const TensorView& first = *matrices.front();
  for (const TensorView* matrix : matrices) {
    if (!memory_.filled()) require_finite(*matrix);
    parameters += static_cast<uint64_t>(matrix->count());
  }
  const int in = static_cast<int>(first.shape[1]);
  const int out = static_cast<int>(first.shape[0]) * static_cast<int>(matrices.size());
  WeightView view{nullptr, type_, Layout::in_major, in, out, kernels::dense_stride(type_, out)};
  view.data = memory_.make(static_cast<size_t>(kernels::matrix_bytes(view)),
                           [&](std::byte* to) { pack_channels(matrices, type_, to); });
  return view;
}

void CpuWeights::load_original(const LlamaWeights& found, bool prune_down) {
  embedding = matrix(*found.embedding, embedding_type(type_));
  head = found.head == found.embedding ? embedding : matrix(*found.head, embedding_type(type_));
  final_norm = vector_of(*found.final_norm);
  for (const LlamaLayerWeights& layer : found.layers) {
    CpuLayer& out = layers.emplace_back();
    out.input_norm = vector_of(*layer.input_norm);
    out.post_norm = vector_of(*layer.post_norm);
    out.q = matrix(*layer.q, type_);
    out.k = matrix(*layer.k, type_);
    out.v = matrix(*layer.v, type_);
    out.o = matrix(*layer.o, type_);
    out.gate_up = by_channel(std::array{layer.gate, layer.up});
    out.down = prune_down ? by_channel(std::array{layer.down}) : matrix(*layer.down, type_);
  }
}

void CpuWeights::load_converted(const ConvertedWeights& found) {
  embedding = converted(found.embedding, embedding_type(type_));
  head = found.head.tensor == found.embedding.tensor ? embedding
                                                     : converted(found.head, embedding_type(type_));
  final_norm = vector_of(*found.final_norm);
  for (const ConvertedLayer& layer : found.layers) {
    CpuLayer& out = layers.emplace_back();
    out.input_norm = vector_of(*layer.input_norm);
    out.post_norm = vector_of(*layer.post_norm);
    out.q = converted(layer.q, type_);
    out.k = converted(layer.k, type_);
    out.v = converted(layer.v, type_);
    out.o = converted(layer.o, type_);
    out.gate_up = converted(layer.gate_up, type_);
    out.down = converted(layer.down, type_);
  }
}

void CpuWeights::count_bytes() {
  const auto bytes = [](const WeightView& w) {
    return static_cast<uint64_t>(kernels::matrix_bytes(w));
  };
  const CpuLayer& first = layers.front();
  const auto channel = [](const WeightView& w) {
    return static_cast<uint64_t>(kernels::row_bytes(w.type, w.out));
  };
  layer_fixed_bytes = bytes(first.q) + bytes(first.k) + bytes(first.v) + bytes(first.o);
  gate_up_row_bytes = channel(first.gate_up);
  if (first.down.layout == Layout::in_major)
    down_row_bytes = channel(first.down);
  else
    layer_fixed_bytes += bytes(first.down);
  head_bytes = bytes(head);
}

void CpuWeights::measure_rows() {
  const auto norms = [](const WeightView& w) {
    std::vector<float> result(static_cast<size_t>(w.in));
    parallel_for(w.in, [&](int64_t channel) {
      std::vector<float> row(static_cast<size_t>(w.out));
      kernels::kernels().widen_row(w, channel, 0, w.out, kernels::ElementType::f32, row.data());
      double squares = 0;
      for (const float weight : row) squares += static_cast<double>(weight) * weight;
      result[static_cast<size_t>(channel)] = static_cast<float>(std::sqrt(squares));
    });
    return result;
  };
  for (CpuLayer& layer : layers) {
    layer.gate_up_norms = norms(layer.gate_up);
    if (layer.down.layout == Layout::in_major) layer.down_norms = norms(layer.down);
  }
}

CpuWeights::CpuWeights(const LlamaConfig& config, TensorStore store, Precision precision,
                       const ModelOptions& options)
    : store_(std::move(store)) {
  const auto conversion = conversion_of(config, store_);
  type_ = conversion ? converted_type(*conversion, precision, options.weights)
                     : weight_type(precision, options.weights);
  format = format_of(type_);
  if (options.int8_activations) check_integer_products(config, type_);
  if (conversion && options.prune_down)
    fail(
        "a directory that `sol convert` wrote holds the down projection by outputs, so ρ cannot "
        "choose among its inputs: load the original directory");
  if (options.shared_weights)
    memory_ = WeightMemory(options.shared_weights, most_bytes(store_),
                           fmt::format("{} {} weights{}", fingerprint_of(config, store_),
                                       to_string(type_), options.prune_down ? " prune-down" : ""));
  if (conversion)
    load_converted(find_converted_weights(config, store_, conversion->type));
  else
    load_original(find_llama_weights(config, store_), options.prune_down);
  count_bytes();
  if (options.channel_scores == ChannelScores::weight_norm) measure_rows();
  if (!in_place_) store_ = TensorStore();  // the mapped file is not needed any more
}

}  // namespace sol
