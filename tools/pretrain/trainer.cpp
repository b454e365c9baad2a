#include "trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/build_info.h"
#include "base/fail.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "base/output_file.h"
#include "base/stopwatch.h"
#include "base/threads.h"
#include "checkpoint.h"
#include "corpus.h"
#include "layout.h"
#include "model/model_directory.h"
#include "training/json_log.h"
#include "validation.h"

namespace sol::pretrain {
namespace {

namespace fs = std::filesystem;

constexpr const char* companions[] = {"config.json", "generation_config.json", "tokenizer.json",
                                      "tokenizer_config.json", "special_tokens_map.json"};

std::unique_ptr<Engine> make_engine(const TrainerOptions& o, const LlamaConfig& config,
                                    std::vector<float> weights) {
  const bool bf16 = o.precision == "bf16";
  if (o.device == "cpu" && bf16 && cpu_engine_runs())
    return make_cpu_engine(config, std::move(weights));
  return make_torch_engine(config, std::move(weights), o.device, bf16, o.micro_batch);
}

class Run {
 public:
  Run(const TrainerOptions& options, const std::function<void(const std::string&)>& note,
      std::stop_token stop)
      : o_(options),
        note_(note),
        stop_(std::move(stop)),
        config_(load_config(o_.model)),
        layout_(config_),
        log_(o_.out / "log.jsonl") {}

  bool operator()() {
    check();
    ensure_writable_directory(o_.out);
    const DirectoryLock lock(o_.out);
    open_text();
    start();
    note_(fmt::format("{} parameters, {} tokens of text, {}", layout_.size(), data_->token_count(),
                      engine_->describe()));
    validate();
    const bool complete = loop();
    if (validated_ != progress_.tokens) validate();
    save();
    return complete;
  }

 private:
  fs::path checkpoint_path() const { return o_.out / "checkpoint.safetensors"; }

  void check() const {
    if (o_.window > config_.max_position_embeddings)
      fail("windows of {}, but the model has {} positions", o_.window,
           config_.max_position_embeddings);
    if (o_.step_tokens < o_.window)
      fail("{} tokens a step are less than one window of {}", o_.step_tokens, o_.window);
    std::error_code ignored;
    if (fs::equivalent(o_.model, o_.out, ignored))
      fail(
          "{}: a run into the directory of the model that it starts from would replace that model; "
          "choose another with -o",
          o_.out.string());
    if (const std::string name = model_file_in(o_.out);
        !name.empty() && !path_exists(checkpoint_path()))
      fail("{}: holds a model that is not a run of this program ({}); choose another directory",
           o_.out.string(), name);
    // Also of a run that died before its first checkpoint, and nothing else.
    require_replaceable(o_.out / "log.jsonl", {"the log of a run of sol-pretrain", "{\"step\":"});
    if (!o_.from.empty() && o_.init)
      fail("--from goes on with the weights of {}, --init starts from those of {}; choose one",
           o_.from.string(), o_.model.string());
    if (o_.valid.empty() && (o_.valid_tokens > 0 || !o_.valid_lengths.empty()))
      fail("--valid-every and --valid-lengths are about text to validate on; name it with --valid");
    if (!o_.resume && path_exists(checkpoint_path()))
      fail("{}: holds a run already; go on with --resume or choose another directory",
           o_.out.string());
  }

  void open_text() {
    const auto tokenizer = Tokenizer::load(o_.model);
    if (tokenizer->vocab_size() > config_.vocab_size)
      fail("{}: the tokenizer has {} tokens, the model {}", o_.model.string(),
           tokenizer->vocab_size(), config_.vocab_size);
    TextOptions text;
    text.framed = true;
    const fs::path cache = o_.cache.empty() ? o_.out / "cache" : o_.cache;
    data_ = BlockDataset::open(o_.data, text, *tokenizer, o_.window + 1, cache, stop_);
    validation_.emplace(o_.valid, *tokenizer, cache,
                        o_.valid_lengths.empty() ? std::vector<int>{o_.window} : o_.valid_lengths,
                        o_.valid_windows, stop_);
    Hash128 text_hash;
    text_hash.add(std::as_bytes(data_->ids()));
    identity_ = {{"tokenizer", tokenizer->fingerprint()},
                 {"hidden_size", config_.hidden_size},
                 {"layers", config_.num_layers},
                 {"heads", config_.num_heads},
                 {"kv_heads", config_.num_kv_heads},
                 {"head_dim", config_.head_dim},
                 {"intermediate_size", config_.intermediate_size},
                 {"vocab_size", config_.vocab_size},
                 {"parameters", layout_.size()},
                 {"text_tokens", data_->token_count()},
                 {"text_hash", text_hash.hexadecimal()},
                 {"seed", o_.seed}};
  }

  void start() {
    if (o_.resume || !o_.from.empty()) {
      const fs::path path = o_.resume ? checkpoint_path() : o_.from / "checkpoint.safetensors";
      Checkpoint saved = load_checkpoint(path, identity_);
      if (saved.state.weights.size() != static_cast<size_t>(layout_.size()))
        fail("{}: {} weights instead of {}", path.string(), saved.state.weights.size(),
             layout_.size());
      if (saved.progress.muon && !o_.optimizer.muon)
        fail(
            "{}: was trained with Muon, whose moments are not what AdamW could go on with; add "
            "--muon",
            path.string());
      progress_ = saved.progress;
      engine_ = make_engine(o_, config_, saved.state.weights);
      engine_->restore(saved.state);
    } else {
      engine_ = make_engine(o_, config_,
                            o_.init ? load_weights(o_.model, config_, layout_)
                                    : initial_weights(config_, layout_, o_.seed));
    }
    engine_steps_ = engine_->state().steps;
    if (progress_.window != o_.window) {
      progress_.window = o_.window;
      progress_.position = 0;
    }
    // Another run's checkpoint is the beginning of this one, whose rate falls from here on or not.
    if (!o_.from.empty()) progress_.decay_begin = -1;
    if (progress_.decay_begin >= 0 && o_.decay_tokens == 0)
      fail("{}: its learning rate has been falling since token {}; go on with its --decay-tokens",
           checkpoint_path().string(), progress_.decay_begin);
    if (o_.decay_tokens > 0 && progress_.decay_begin < 0) progress_.decay_begin = progress_.tokens;
    log_.begin("step", o_.resume ? engine_steps_ : 0);
  }

  void copy_companions() const {
    std::error_code ignored;
    if (fs::equivalent(o_.model, o_.out, ignored)) return;
    for (const char* name : companions)
      if (path_exists(o_.model / name))
        write_file_atomically(o_.out / name, read_file(o_.model / name));
  }

  int64_t last_token() const {
    int64_t last = std::numeric_limits<int64_t>::max();
    if (o_.tokens > 0) last = o_.tokens;
    if (o_.decay_tokens > 0) last = std::min(last, progress_.decay_begin + o_.decay_tokens);
    return last;
  }

  // Warm-up, stable, decay (Hu et al. 2024, MiniCPM): rises linearly, stays, and falls linearly
  // whenever it is told to, so that the length of a run need not be known when it starts.
  double learning_rate() const {
    const auto share = [](int64_t done, int64_t all) {
      return std::min(1.0, static_cast<double>(done) / static_cast<double>(all));
    };
    double factor = 1;
    if (o_.warmup_tokens > 0) factor = share(progress_.tokens + o_.step_tokens, o_.warmup_tokens);
    if (o_.decay_tokens > 0)
      factor *= 1 - (1 - o_.final_rate) *
                        share(progress_.tokens - progress_.decay_begin, o_.decay_tokens);
    return factor * o_.optimizer.learning_rate;
  }

  void validate() {
    if (validation_->empty() || stop_.stop_requested()) return;
    Json results = validation_->measure(*engine_);
    std::string text =
        fmt::format("step {} tokens {}: validation", engine_steps_, progress_.tokens);
    for (const Json& r : results)
      text +=
          fmt::format("  {} {}: {:.4f} nats/token ({:.4f} in the second half), {:.4f} bits/byte",
                      r.at("file").get<std::string>(), r.at("window").get<int>(),
                      r.at("nats_per_token").get<double>(), r.at("second_half").get<double>(),
                      r.at("bits_per_byte").get<double>());
    note_(text);
    log_.append({{"step", engine_steps_}, {"tokens", progress_.tokens}, {"validation", results}});
    validated_ = progress_.tokens;
  }

  void save() {
    progress_.seconds = seconds_before_ + run_time_.seconds();
    progress_.muon = progress_.muon || o_.optimizer.muon;
    const EngineState state = engine_->state();
    log_.flush();
    // First, so that what follows is known as this run's.
    save_checkpoint(checkpoint_path(), {progress_, state}, identity_);
    copy_companions();
    save_weights(o_.out, layout_, state.weights, o_.save_f32);
  }

  bool loop() {
    WindowOrder order(data_->ids(), o_.window, o_.seed);
    const int64_t windows = o_.step_tokens / o_.window, step_tokens = windows * o_.window;
    const double flops = training_flops(config_, o_.window);
    seconds_before_ = progress_.seconds;
    Stopwatch since_save;
    double loss_sum = 0, norm_sum = 0, seconds = 0;  // of the steps since the last line
    int steps = 0;
    while (progress_.tokens < last_token()) {
      if (stop_.stop_requested()) return false;
      if (o_.minutes > 0 && run_time_.seconds() >= 60 * o_.minutes) return false;
      const Stopwatch step;
      OptimizerSettings settings = o_.optimizer;
      settings.learning_rate = learning_rate();
      loss_sum += engine_->accumulate(order.batch(progress_.position, windows));
      norm_sum += engine_->step(settings);
      seconds += step.seconds();
      ++engine_steps_;
      ++steps;
      progress_.position += windows;
      progress_.tokens += step_tokens;
      if (steps == o_.log_steps) {
        const double rate = static_cast<double>(steps * step_tokens) / seconds;
        const Json line{{"step", engine_steps_},
                        {"tokens", progress_.tokens},
                        {"window", o_.window},
                        {"loss", loss_sum / steps},
                        {"learning_rate", settings.learning_rate},
                        {"gradient_norm", norm_sum / steps},
                        {"tokens_per_second", rate},
                        {"tflops", rate * flops / 1e12}};
        log_.append(line);
        note_(fmt::format(
            "step {} tokens {:.2f}M loss {:.4f} rate {:.2e} norm {:.2f} {:.0f} "
            "tokens/s {:.3f} TFLOP/s",
            engine_steps_, static_cast<double>(progress_.tokens) / 1e6, loss_sum / steps,
            settings.learning_rate, norm_sum / steps, rate, rate * flops / 1e12));
        loss_sum = norm_sum = seconds = 0;
        steps = 0;
      }
      if (o_.valid_tokens > 0 && progress_.tokens - validated_ >= o_.valid_tokens) validate();
      if (since_save.seconds() >= 60 * o_.checkpoint_minutes) {
        save();
        since_save = Stopwatch();
      }
    }
    return true;
  }

  const TrainerOptions& o_;
  const std::function<void(const std::string&)>& note_;
  std::stop_token stop_;
  LlamaConfig config_;
  Layout layout_;
  JsonLog log_;
  Json identity_;
  std::optional<BlockDataset> data_;
  std::optional<Validation> validation_;
  std::unique_ptr<Engine> engine_;
  Progress progress_;
  Stopwatch run_time_;
  double seconds_before_ = 0;
  int64_t engine_steps_ = 0, validated_ = -1;
};

}  // namespace

bool pretrain(const TrainerOptions& options, const std::function<void(const std::string&)>& note,
              std::stop_token stop) {
  return Run(options, note, std::move(stop))();
}

}  // namespace sol::pretrain
