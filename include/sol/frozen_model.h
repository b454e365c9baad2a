// FrozenModel: a language model whose weights never change, executed densely over many tokens
// (extend) or token by token under efficiency actions (decode). Training, evaluation, generation
// and serving all go through these calls.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "sol/action.h"
#include "sol/config.h"

namespace sol {

class SharedMemory;

// Type of the product operands and, apart, of the stored cache. Residual stream, norms, rotary,
// softmax, page scores, quantiser and logits are always float32.
enum class Precision { automatic, f32, bf16 };
std::string_view to_string(Precision precision);  // as on the command line

// What the weight matrices are held as. automatic: as stored, in the precision's type. int8, int4:
// codes and scales, made while loading unless the directory holds them already (`sol convert`);
// products then use the weights that the codes stand for. int4 keeps embedding and head at 8 bits.
// Norms are always float32.
enum class WeightFormat { automatic, int8, int4 };

// How ρ ranks a token's channels. weight_norm is not in the paper: |x_j| times the norm of the
// weights that it meets (WINA, arXiv 2505.19427).
enum class ChannelScores { magnitude, weight_norm };
// How κ ranks pages. moments is not in the paper: the mean attention weight of a page whose keys
// are spread about their mean as their variance says, instead of Quest's bound by their extrema.
enum class PageScores { extrema, moments };

struct ModelOptions {
  Precision precision =
      Precision::automatic;    // bf16 for bf16 weights where the processor multiplies bf16 and the
                               // instruction set in use is avx512 (base/cpu.h), else f32
  bool deterministic = false;  // own products in one order of summation: bit-identical results for
                               // every batch size and thread count
  WeightFormat weights = WeightFormat::automatic;
  bool prune_down = false;  // not in the paper: ρ also chooses among the inputs of the MLP's down
                            // projection (TEAL prunes every matrix); dense passes are as ever
  bool int8_activations = false;  // not in the paper: every product's input is rounded to 8 bits
                                  // with one scale per token, and products are sums of integers;
                                  // in dense passes too. Needs int8 weights
  ChannelScores channel_scores = ChannelScores::magnitude;
  PageScores page_scores = PageScores::extrema;
  // Where the weights lie that loading makes (others are used in place, in the mapped file): memory
  // that processes of one machine share, of which the one that created it loads first; null:
  // private memory (base/shared_memory.h).
  std::shared_ptr<SharedMemory> shared_weights = nullptr;
};

// Most sinks, and most window tokens: far more than any context, and no sum of them overflows.
inline constexpr int most_forced_tokens = 1 << 24;

// What κ's page selection needs to know, fixed per sequence (paper, appendix, "Token sparsity via
// Quest").
struct SequenceOptions {
  int page_size = 4;        // S: keys per Quest page
  int sinks = 4;            // T_s: first keys, always attended to
  int window = 2;           // T_w: last keys before the current one, always attended to
  bool force_sinks = true;  // false: the authors' code, which forces neither sinks nor window and
                            // keeps every page that ties with the last kept one
  Precision cache = Precision::automatic;  // as the model's precision where automatic
};

// Where the results of one position go. Null pointers are not computed: K·B rows of a 128 K
// vocabulary are never materialised when only log p(y) is wanted.
struct OutputRequest {
  float* hidden = nullptr;    // [hidden_size], after the final norm
  float* logits = nullptr;    // [vocab_size]
  int32_t target = -1;        // token y for log_prob
  float* log_prob = nullptr;  // log p(y), nats
  float* entropy = nullptr;   // of the whole distribution, nats

  bool wants_head() const { return logits || log_prob || entropy; }
  bool wants_anything() const { return hidden || wants_head(); }
};

// With more sequences decoded together than this, channels that ρ drops are zeroed, not skipped:
// each keeps its own share, and of four with ρ = 0.5 that choose independently only one channel in
// sixteen is dropped by all (docs/performance.md).
inline constexpr int most_skipping_sequences = 4;

// What one decode step really cost, measured while executing.
struct StepCost {
  double attended = 1.0;  // share of the keys attended to, mean over layers and query heads
                          // (nominal κ plus rounding to pages and forced keys)
  uint64_t bytes = 0;     // weights, keys, values and page extrema this item needed
};

// A sequence's cached keys and values. Made by FrozenModel::create and fork, used only with the
// model that made it; destroying it releases its cache blocks.
class Sequence {
 public:
  virtual ~Sequence() = default;
  virtual int length() const = 0;  // tokens in the cache
  virtual const SequenceOptions& options() const = 0;
  virtual uint64_t own_bytes() const = 0;  // cache bytes that no other sequence shares
};

// Cache blocks that sequences hold; what several share counts once.
struct CacheUse {
  uint64_t blocks = 0;
  uint64_t bytes = 0;
};

struct ExtendItem {
  Sequence* sequence = nullptr;
  std::span<const int32_t> tokens;  // appended to the cache
  struct Wanted {
    size_t index;  // position within `tokens`
    OutputRequest out;
  };
  std::vector<Wanted> wanted;
};

struct DecodeItem {
  Sequence* sequence = nullptr;
  int32_t token = -1;  // appended to the cache
  Action action;
  OutputRequest out;
  StepCost* cost = nullptr;  // may be null
};

// What FrozenModel::device() is on the CPU by our own kernels.
inline constexpr const char* native_device = "native";

// create, extend, decode, fork, truncate and the destruction of sequences are for one caller at a
// time: a pass uses all threads and the model's own working memory. Calls that are const may be
// made on any thread, also meanwhile.
class FrozenModel {
 public:
  virtual ~FrozenModel() = default;

  virtual const LlamaConfig& config() const = 0;
  virtual const std::string& fingerprint() const = 0;  // hexadecimal; see model/fingerprint.h
  virtual Precision precision() const = 0;             // never automatic
  virtual uint64_t parameter_count() const = 0;
  // automatic: as the precision says.
  virtual WeightFormat weight_format() const { return WeightFormat::automatic; }
  // Where it is executed: native_device, or a LibTorch device.
  virtual std::string device() const { return native_device; }
  // Largest amount of memory that the device's allocator has held so far; 0 where nobody counts it.
  virtual uint64_t device_peak_bytes() const { return 0; }
  // Options in effect that the paper does not have, as on the command line without dashes: results
  // made under them say so.
  virtual std::vector<std::string> outside_paper() const { return {}; }

  // An empty sequence. Throws Error for options that make no sense (page size outside 1..4096,
  // sinks or window outside 0..most_forced_tokens).
  virtual std::unique_ptr<Sequence> create(const SequenceOptions& options) = 0;

  // Dense pass over each item's tokens, in chunks. A sequence may occur once only. Throws Error
  // when a token is outside the vocabulary or a sequence would outgrow max_position_embeddings
  // (nothing has changed then), Cancelled between chunks when `stop` was requested (sequences are
  // truncated back to their old length, as after any other error).
  virtual void extend(std::span<ExtendItem> items, std::stop_token stop = {}) = 0;

  // One token per item, each under its own action; sequences may differ in length and options.
  // Same errors as extend.
  virtual void decode(std::span<DecodeItem> items) = 0;

  // n children that share the parent's cache blocks; a block is copied when one of its owners
  // writes into it.
  virtual std::vector<std::unique_ptr<Sequence>> fork(const Sequence& parent, int n) = 0;

  // Forgets all but the first `length` tokens. A refresh is truncate + extend.
  virtual void truncate(Sequence& sequence, int length) = 0;

  // Of all sequences of this model that exist now.
  virtual CacheUse cache_use() const = 0;

  // Input embedding of a token, float32 [hidden_size]. Throws Error for a token outside the
  // vocabulary, or where `out` is shorter.
  virtual void embedding(int32_t token, std::span<float> out) const = 0;
};

// What a model's matrices are held as, for results: "f32", "bf16", "int8" or "int4".
std::string_view weights_name(const FrozenModel& model);

// Loads a Hugging Face directory, or one that `sol convert` wrote, for execution on the CPU. Throws
// Error for anything wrong with the files (see model/safetensors.h, config.h), a tensor missing or
// misshapen, a weight that is NaN, infinite or beyond 2^127.
std::unique_ptr<FrozenModel> load_model(const std::filesystem::path& dir,
                                        const ModelOptions& options = {});

}  // namespace sol
