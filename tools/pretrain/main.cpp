// sol-pretrain: trains a base model.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/threads.h"
#include "common.h"
#include "openblas_environment.h"
#include "program.h"
#include "restart.h"
#include "trainer.h"
#include "validators.h"

namespace sol::app {
namespace {

void run_pretrain(const pretrain::TrainerOptions& options, int threads) {
  choose_openblas_kernels();
  set_thread_count(threads);
  const bool complete = pretrain::pretrain(
      options, [](const std::string& line) { note("{}", line); }, interrupt_token());
  note("{}: {}", options.out.string(), complete ? "complete" : "not complete; go on with --resume");
  if (interrupting_signal() != 0) throw Cancelled();  // as `sol` ends, so that scripts can tell
}

void add_train_options(CLI::App& command, pretrain::TrainerOptions& o) {
  command.add_option("--window", o.window, "Tokens of a window")
      ->check(in_range(2, 1 << 20))
      ->capture_default_str();
  command.add_option("--step-tokens", o.step_tokens, "Tokens of an optimizer step")
      ->check(at_least(2))
      ->capture_default_str();
  o.optimizer.learning_rate = 2e-3;
  command.add_option("--lr", o.optimizer.learning_rate, "Highest learning rate")
      ->check(positive_number())
      ->capture_default_str();
  command.add_option("--warmup-tokens", o.warmup_tokens, "Tokens over which the rate rises")
      ->check(in_range(0, uint64_t{1} << 50))
      ->capture_default_str();
  command
      .add_option("--decay-tokens", o.decay_tokens,
                  "Let the rate fall over so many tokens, from here on (resumed: from where it "
                  "began to), then end")
      ->check(at_least(1));
  command.add_option("--final-rate", o.final_rate, "Share of the highest rate after the decay")
      ->check(number_in(0, 1))
      ->capture_default_str();
  command.add_flag("--muon", o.optimizer.muon,
                   "Muon instead of AdamW for the layers' matrices, at the same rate");
  command.add_option("--beta2", o.optimizer.beta2, "AdamW's second moment")
      ->check(number_in(0, 0.999999))
      ->capture_default_str();
  command.add_option("--weight-decay", o.optimizer.weight_decay, "Of matrices")
      ->check(number_in(0, 1e6))
      ->capture_default_str();
  command.add_option("--clip", o.optimizer.clip, "Largest norm of the gradient")
      ->check(positive_number())
      ->capture_default_str();
  command.add_option("--seed", o.seed, "Of fresh weights and the order of the text")
      ->capture_default_str();
}

void add_limits(CLI::App& command, pretrain::TrainerOptions& o) {
  command.add_option("--tokens", o.tokens, "End after so many tokens in all")->check(at_least(1));
  command.add_option("--minutes", o.minutes, "End after so many minutes")->check(positive_number());
  command.add_option("--checkpoint-minutes", o.checkpoint_minutes, "Between checkpoints")
      ->check(positive_number())
      ->capture_default_str();
  command.add_option("--log-steps", o.log_steps, "Steps of one line of the log")
      ->check(at_least(1))
      ->capture_default_str();
  command
      .add_option("--valid-every", o.valid_tokens,
                  "Tokens between validations (default: at start and end only)")
      ->check(at_least(1));
  command.add_option("--valid-windows", o.valid_windows, "Windows of each validation file")
      ->check(at_least(1))
      ->capture_default_str();
  command.add_option("--valid-lengths", o.valid_lengths, "Their lengths (default: --window)")
      ->check(in_range(2, 1 << 20));
}

void add_pretrain_command(CLI::App& app) {
  auto o = std::make_shared<pretrain::TrainerOptions>();
  auto threads = std::make_shared<int>(0);
  CLI::App* command = app.add_subcommand("run", "Train a base model");
  command
      ->add_option("-m,--model", o->model,
                   "Directory with config.json and tokenizer.json of the model to train")
      ->required()
      ->type_name("DIR");
  command->add_flag("--init", o->init, "Start from the weights there instead of fresh ones");
  command->add_option("--data", o->data, "Text to train on, as for sol train; repeatable")
      ->required()
      ->type_name("FILE")
      ->allow_extra_args(false);
  command->add_option("--valid", o->valid, "Text to validate on (.raw: wikitext); repeatable")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command->add_option("-o,--out", o->out, "Directory that becomes the model")
      ->required()
      ->type_name("DIR");
  command->add_option("--cache", o->cache, "Where tokenised text is kept (default: OUT/cache)")
      ->type_name("DIR");
  CLI::Option* resume =
      command->add_flag("--resume", o->resume, "Go on from the checkpoint in OUT");
  command->add_option("--from", o->from, "Go on from the checkpoint in another run's directory")
      ->type_name("DIR")
      ->excludes(resume);
  add_train_options(*command, *o);
  add_limits(*command, *o);
  command->add_option("--device", o->device, "cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  command->add_option("--precision", o->precision, "Of products: bf16 or f32")
      ->check(CLI::IsMember({"bf16", "f32"}))
      ->capture_default_str();
  command->add_option("--micro-batch", o->micro_batch, "Windows held at a time by LibTorch")
      ->check(at_least(1))
      ->capture_default_str();
  command->add_flag("--save-f32", o->save_f32, "Write the model's weights as F32, not BF16");
  command->add_option("--threads", *threads, "Threads; 0 for as many as the process may use")
      ->check(in_range(0, 4096))
      ->capture_default_str();
  command->callback([o, threads] { run_pretrain(*o, *threads); });
}

}  // namespace
}  // namespace sol::app

int main(int argc, char** argv) {
  return sol::app::run_program(argc, argv, sol::app::add_pretrain_command,
                               {"sol-pretrain", "sol-pretrain: trains a base model for sol"});
}
