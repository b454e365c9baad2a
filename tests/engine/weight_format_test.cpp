// Models with compressed weights, made while loading or read from a converted directory.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "base/fail.h"
#include "engine/convert.h"
#include "engine/cpu_model.h"
#include "golden.h"
#include "kernels/compressed.h"
#include "sol/tokenizer.h"

namespace sol::test {
namespace {

using kernels::WeightType;
using testing::HasSubstr;

std::filesystem::path model_dir(const std::string& name) {
  return golden_dir() / name;
}

std::vector<int32_t> ids_for(const LlamaConfig& config, int n) {
  std::vector<int32_t> ids;
  for (int i = 0; i < n; ++i) ids.push_back((7 + 31 * i) % config.vocab_size);
  return ids;
}

// Logits of 24 positions: all but the last in a dense pass, the last by a decoded step.
std::vector<float> logits_of(FrozenModel& model, Action action = {}, StepCost* cost = nullptr) {
  const auto ids = ids_for(model.config(), 24);
  const size_t vocab = static_cast<size_t>(model.config().vocab_size);
  std::vector<float> logits(ids.size() * vocab);
  auto sequence = model.create({});
  ExtendItem item{sequence.get(), std::span(ids).first(23), {}};
  for (size_t i = 0; i < 23; ++i) item.wanted.push_back({i, {.logits = &logits[i * vocab]}});
  model.extend({&item, 1});
  DecodeItem step{sequence.get(), ids.back(), action, {.logits = &logits[23 * vocab]}, cost};
  model.decode({&step, 1});
  return logits;
}

// Mean over positions of KL(p || q), nats.
double divergence(const std::vector<float>& p, const std::vector<float>& q, size_t vocab) {
  double total = 0;
  for (size_t at = 0; at < p.size(); at += vocab) {
    double sum_p = 0, sum_q = 0;
    for (size_t v = 0; v < vocab; ++v) {
      sum_p += std::exp(static_cast<double>(p[at + v]));
      sum_q += std::exp(static_cast<double>(q[at + v]));
    }
    for (size_t v = 0; v < vocab; ++v) {
      const double log_p = p[at + v] - std::log(sum_p), log_q = q[at + v] - std::log(sum_q);
      total += std::exp(log_p) * (log_p - log_q);
    }
  }
  return total / static_cast<double>(p.size() / vocab);
}

ModelOptions with(WeightFormat format, bool deterministic = false,
                  Precision precision = Precision::f32) {
  return {.precision = precision, .deterministic = deterministic, .weights = format};
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

class WeightFormats : public testing::TestWithParam<std::tuple<Isa, const char*>> {
 protected:
  void SetUp() override { force_isa(std::get<0>(GetParam())); }
  std::filesystem::path dir() const { return model_dir(std::get<1>(GetParam())); }
  IsaGuard guard_;
};

// Random weights with large logits: whatever is lost in them shows.
TEST_P(WeightFormats, StayNearTheOriginal) {
  auto original = load_model(dir(), with(WeightFormat::automatic));
  const auto exact = logits_of(*original);
  const auto vocab = static_cast<size_t>(original->config().vocab_size);
  double before = 0;
  for (const auto& [format, bound] :
       {std::pair{WeightFormat::int8, 0.02}, {WeightFormat::int4, 1.0}}) {
    auto model = load_model(dir(), with(format));
    EXPECT_EQ(model->weight_format(), format);
    EXPECT_EQ(model->parameter_count(), original->parameter_count());
    EXPECT_EQ(model->fingerprint(), original->fingerprint());
    const double kl = divergence(exact, logits_of(*model), vocab);
    EXPECT_LT(kl, bound);
    EXPECT_GT(kl, before);
    before = kl;
  }
}

TEST_P(WeightFormats, ConvertedDirectoriesAreTheSameModel) {
  for (const auto& [type, format] :
       {std::pair{WeightType::int8, WeightFormat::int8}, {WeightType::int4, WeightFormat::int4}}) {
    const TemporaryDirectory temp;
    convert_model(dir(), temp.path() / "out", type);
    auto made = load_model(dir(), with(format));
    auto read = load_model(temp.path() / "out", with(WeightFormat::automatic));
    EXPECT_EQ(read->weight_format(), format);
    EXPECT_EQ(read->fingerprint(), made->fingerprint());
    EXPECT_EQ(read->parameter_count(), made->parameter_count());
    EXPECT_EQ(logits_of(*read), logits_of(*made));
  }
}

TEST_P(WeightFormats, DeterministicModeDoesNotDependOnBatches) {
  for (const WeightFormat format : {WeightFormat::int8, WeightFormat::int4}) {
    auto model = load_model(dir(), with(format, true));
    const auto together = logits_of(*model);
    const auto ids = ids_for(model->config(), 24);
    const size_t vocab = static_cast<size_t>(model->config().vocab_size);
    std::vector<float> alone(together.size());
    auto sequence = model->create({});
    for (size_t i = 0; i < 23; ++i) {
      ExtendItem item{sequence.get(), std::span(ids).subspan(i, 1), {}};
      item.wanted.push_back({0, {.logits = &alone[i * vocab]}});
      model->extend({&item, 1});
    }
    DecodeItem step{sequence.get(), ids.back(), {}, {.logits = &alone[23 * vocab]}, nullptr};
    model->decode({&step, 1});
    EXPECT_EQ(alone, together);
  }
}

INSTANTIATE_TEST_SUITE_P(
    EveryIsa, WeightFormats,
    testing::Combine(testing::ValuesIn(std::vector<Isa>(supported_isas().begin(),
                                                        supported_isas().end())),
                     testing::Values("tiny_tied_f32", "tiny_untied_f32", "tiny_tied_bf16")),
    [](const auto& param_info) {
      return std::string(to_string(std::get<0>(param_info.param))) + "_" +
             std::get<1>(param_info.param);
    });

TEST(WeightFormat, CostsATrainedModelLittle) {
  const auto dir = source_dir() / "models/default";
  const auto ids = Tokenizer::load(dir)->encode(
      "The house stood at the end of the village, and nobody had lived in it for many years. In "
      "the winter of that year the river rose higher than anyone could remember.");
  const auto logits = [&](WeightFormat format) {
    auto model = load_model(dir, with(format));
    const auto vocab = static_cast<size_t>(model->config().vocab_size);
    std::vector<float> result(ids.size() * vocab);
    auto sequence = model->create({});
    ExtendItem item{sequence.get(), ids, {}};
    for (size_t i = 0; i < ids.size(); ++i)
      item.wanted.push_back({i, {.logits = &result[i * vocab]}});
    model->extend({&item, 1});
    return result;
  };
  const auto exact = logits(WeightFormat::automatic);
  const size_t vocab = exact.size() / ids.size();
  EXPECT_LT(divergence(exact, logits(WeightFormat::int8), vocab), 5e-4);
  EXPECT_LT(divergence(exact, logits(WeightFormat::int4), vocab), 0.02);
}

TEST(WeightFormat, Bf16ConversionOfABf16ModelChangesNothing) {
  const TemporaryDirectory temp;
  convert_model(model_dir("tiny_tied_bf16"), temp.path() / "out", WeightType::bf16);
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    auto original =
        load_model(model_dir("tiny_tied_bf16"), with(WeightFormat::automatic, true, precision));
    auto converted =
        load_model(temp.path() / "out", with(WeightFormat::automatic, true, precision));
    EXPECT_EQ(logits_of(*converted), logits_of(*original));
    EXPECT_EQ(converted->fingerprint(), original->fingerprint());
  }
  // Codes can still be made of it.
  auto made = load_model(model_dir("tiny_tied_bf16"), with(WeightFormat::int4, true));
  auto again = load_model(temp.path() / "out", with(WeightFormat::int4, true));
  EXPECT_EQ(logits_of(*again), logits_of(*made));
}

TEST(WeightFormat, BytesOfAStepAreThoseOfCodesAndScales) {
  const auto bytes = [](WeightFormat format, float rho) {
    auto model = load_model(model_dir("tiny_tied_f32"), with(format));
    StepCost cost;
    logits_of(*model, {.rho = rho}, &cost);
    return cost.bytes;
  };
  const LlamaConfig config = load_config(model_dir("tiny_tied_f32"));
  const auto expected = [&](WeightType type, int kept) {
    const auto rows = [&](WeightType t, int64_t count, int n) {
      return static_cast<uint64_t>(count * kernels::row_bytes(t, n));
    };
    const int d = config.hidden_size, query = config.num_heads * config.head_dim;
    const int key = config.num_kv_heads * config.head_dim, wide = config.intermediate_size;
    return static_cast<uint64_t>(config.num_layers) *
               (rows(type, query + 2 * key, d) + rows(type, d, query) + rows(type, d, wide) +
                rows(type, kept, 2 * wide)) +
           rows(type == WeightType::int4 ? WeightType::int8 : type, config.vocab_size, d);
  };
  const uint64_t cache =
      bytes(WeightFormat::automatic, 1.0f) - expected(WeightType::f32, config.hidden_size);
  for (const auto& [format, type] :
       {std::pair{WeightFormat::int8, WeightType::int8}, {WeightFormat::int4, WeightType::int4}}) {
    EXPECT_EQ(bytes(format, 1.0f), expected(type, config.hidden_size) + cache);
    EXPECT_EQ(bytes(format, 0.5f), expected(type, config.hidden_size / 2) + cache);
  }
}

TEST(WeightFormat, CodesCannotBeTurnedIntoOthers) {
  const TemporaryDirectory temp;
  convert_model(model_dir("tiny_tied_f32"), temp.path() / "out", WeightType::int8);
  EXPECT_THAT(error_of([&] { load_model(temp.path() / "out", with(WeightFormat::int4)); }),
              HasSubstr("must be made from the original"));
}

// The golden model with another first weight in one of its matrices.
void write_changed(const std::filesystem::path& to, float weight) {
  const auto from = model_dir("tiny_tied_f32");
  const std::string changed = "model.layers.0.mlp.down_proj.weight";
  const TensorStore store = TensorStore::open_directory(from);
  const std::span<const std::byte> old = store.get(changed).bytes;
  std::vector<std::byte> bytes(old.begin(), old.end());
  std::memcpy(bytes.data(), &weight, sizeof(weight));
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, view] : store.tensors())
    tensors.push_back({name, view.type, view.shape,
                       name == changed ? std::span<const std::byte>(bytes) : view.bytes});
  std::filesystem::create_directory(to);
  std::filesystem::copy(from / "config.json", to / "config.json");
  write_safetensors(to / "model.safetensors", tensors);
}

// What is converted can be read; what no format could hold is refused before that.
TEST(Convert, WeightsStayFiniteInEveryFormat) {
  const TemporaryDirectory temp;
  const auto largest = temp.path() / "largest", larger = temp.path() / "larger";
  write_changed(largest, -largest_weight);
  write_changed(larger, std::nextafter(largest_weight, INFINITY));
  EXPECT_THAT(error_of([&] { load_model(larger); }), HasSubstr("not finite or too large"));
  for (const WeightType type : {WeightType::bf16, WeightType::int8, WeightType::int4}) {
    const auto out = temp.path() / std::string(to_string(type));
    EXPECT_EQ(error_of([&] {
                convert_model(largest, out, type);
                load_model(out);
              }),
              "no error");
    EXPECT_THAT(error_of([&] { convert_model(larger, temp.path() / "none", type); }),
                HasSubstr("not finite or too large"));
  }
}

TEST(Convert, RefusesWhatItCannotDo) {
  const TemporaryDirectory temp;
  const auto out = temp.path() / "out";
  convert_model(model_dir("tiny_tied_f32"), out, WeightType::int8);
  EXPECT_THAT(error_of([&] { convert_model(out, temp.path() / "again", WeightType::int4); }),
              HasSubstr("was converted to int8 weights already"));
  EXPECT_THAT(error_of([&] { convert_model(model_dir("tiny_tied_f32"), out, WeightType::int4); }),
              HasSubstr("not empty"));
  EXPECT_FALSE(std::filesystem::exists(temp.path() / "again"));
}

TEST(Convert, LeavesNothingBehindWhenStopped) {
  const TemporaryDirectory temp;
  std::stop_source source;
  EXPECT_THROW(convert_model(
                   model_dir("tiny_tied_f32"), temp.path() / "out", WeightType::int8,
                   [&](int64_t done, int64_t) {
                     if (done == 3) source.request_stop();
                   },
                   source.get_token()),
               Cancelled);
  EXPECT_TRUE(std::filesystem::is_empty(temp.path()));
}

// A converted file whose metadata and tensors can be changed.
class Converted : public testing::Test {
 protected:
  void SetUp() override {
    convert_model(model_dir("tiny_tied_f32"), dir(), WeightType::int4);
    const TensorStore store = TensorStore::open_directory(dir());
    metadata = store.metadata();
    for (const auto& [name, view] : store.tensors()) {
      bytes[name].assign(view.bytes.begin(), view.bytes.end());
      tensors.push_back({name, view.type, view.shape, {}});
    }
  }
  std::filesystem::path dir() const { return temp_.path() / "model"; }
  std::string error() {
    for (TensorToWrite& tensor : tensors) tensor.bytes = bytes[tensor.name];
    write_safetensors(dir() / "model.safetensors", tensors, metadata);
    return error_of([&] { load_model(dir()); });
  }
  TemporaryDirectory temp_;
  std::map<std::string, std::string> metadata;
  std::map<std::string, std::vector<std::byte>> bytes;
  std::vector<TensorToWrite> tensors;
};

TEST_F(Converted, IsReadAsWritten) {
  EXPECT_EQ(error(), "no error");
}

TEST_F(Converted, DamagedScalesAreNamed) {
  std::vector<std::byte>& rows = bytes["model.layers.1.mlp.down_proj.weight"];
  const LlamaConfig config = load_config(dir());
  const auto row = kernels::row_bytes(WeightType::int4, config.intermediate_size);
  const auto scales = kernels::code_bytes(WeightType::int4, config.intermediate_size);
  rows[static_cast<size_t>(2 * row + scales)] = std::byte{0x80};
  rows[static_cast<size_t>(2 * row + scales + 1)] = std::byte{0x7f};
  const std::string message = error();
  EXPECT_THAT(message, HasSubstr("model.layers.1.mlp.down_proj.weight"));
  EXPECT_THAT(message, HasSubstr("row 2"));
}

// Some kernels would take it for 0.
TEST_F(Converted, CodesThatStandForNothingAreNamed) {
  std::vector<std::byte>& rows = bytes["model.embed_tokens.weight"];  // of int8
  const auto row = kernels::row_bytes(WeightType::int8, load_config(dir()).hidden_size);
  rows[static_cast<size_t>(2 * row + 5)] = std::byte{0x80};
  const std::string message = error();
  EXPECT_THAT(message, HasSubstr("model.embed_tokens.weight"));
  EXPECT_THAT(message, HasSubstr("row 2 has a code of -128"));
}

TEST_F(Converted, OtherVersionsAndFieldsAreErrors) {
  metadata["format_version"] = "2";
  EXPECT_THAT(error(), HasSubstr("format version 2"));
  metadata["format_version"] = "1";
  metadata["weights"] = "int5";
  EXPECT_THAT(error(), HasSubstr("int5"));
  metadata["weights"] = "int8";  // not what the tensors are
  EXPECT_THAT(error(), HasSubstr("ask for"));
  metadata["weights"] = "int4";
  metadata.erase("source_fingerprint");
  EXPECT_THAT(error(), HasSubstr("source_fingerprint"));
}

TEST_F(Converted, AnotherConfigurationIsAnError) {
  Json config = read_json(dir() / "config.json");
  config["rope_theta"] = 1234.0;
  write_file_atomically(dir() / "config.json", config.dump());
  EXPECT_THAT(error(), HasSubstr("another config.json"));
}

TEST_F(Converted, TensorsMustBeTheOnesOfTheModel) {
  tensors.push_back({"model.extra.weight", DType::u8, {4}, {}});
  bytes["model.extra.weight"].resize(4);
  EXPECT_THAT(error(), HasSubstr("model.extra.weight"));
  tensors.pop_back();
  std::erase_if(tensors, [](const TensorToWrite& t) {
    return t.name == "model.layers.0.mlp.gate_up_proj.weight";
  });
  EXPECT_THAT(error(), HasSubstr("mlp.gate_up_proj.weight"));
}

}  // namespace
}  // namespace sol::test
