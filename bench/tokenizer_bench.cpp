// Encoding, decoding and loading speed. SOL_BENCH_TOKENIZER names a directory with a tokenizer.json
// (the default model's otherwise), SOL_BENCH_TEXT a text file.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "sol/tokenizer.h"
#include "text/text_reader.h"

namespace {

std::filesystem::path from_environment(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value ? value : std::filesystem::path(SOL_SOURCE_DIR) / fallback;
}

const std::filesystem::path& directory() {
  static const auto dir = from_environment("SOL_BENCH_TOKENIZER", "models/default");
  return dir;
}

const std::string& text() {
  static const std::string content = [] {
    std::string all;
    sol::read_documents(from_environment("SOL_BENCH_TEXT", "data/wikitext-2/wiki.test.raw.zst"), {},
                        [&](std::string&& document) { all += document; });
    return all;
  }();
  return content;
}

const sol::Tokenizer& tokenizer() {
  static const auto instance = sol::Tokenizer::load(directory());
  return *instance;
}

void count_bytes(benchmark::State& state, size_t bytes) {
  state.SetBytesProcessed(static_cast<int64_t>(bytes) * state.iterations());
}

void load(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(sol::Tokenizer::load(directory()));
  count_bytes(state, std::filesystem::file_size(directory() / "tokenizer.json"));
}

void encode(benchmark::State& state) {
  tokenizer();
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer().encode(text()));
  count_bytes(state, text().size());
}

// A new tokenizer remembers no words yet.
void encode_first_time(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    const auto fresh = sol::Tokenizer::load(directory());
    state.ResumeTiming();
    benchmark::DoNotOptimize(fresh->encode(text()));
  }
  count_bytes(state, text().size());
}

void decode(benchmark::State& state) {
  const auto ids = tokenizer().encode(text());
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer().decode(ids));
  count_bytes(state, text().size());
}

BENCHMARK(load)->Unit(benchmark::kMillisecond);
BENCHMARK(encode)->Unit(benchmark::kMillisecond);
BENCHMARK(encode_first_time)->Unit(benchmark::kMillisecond);
BENCHMARK(decode)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
