// Speed of every kernel on every instruction set of this machine, in GB/s of memory read or
// GFLOP/s. Weights and caches are larger than the second-level cache; where they must not fit the
// last-level cache either (300 MiB on some servers) the name says "memory".
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string_view>
#include <vector>

#include "base/large_memory.h"
#include "base/threads.h"
#include "kernels/compressed.h"
#include "kernels/kernels.h"
#include "kernels/matmul.h"
#include "kernels/matmul_dnnl.h"

namespace {

using namespace sol;           // NOLINT
using namespace sol::kernels;  // NOLINT

// As the engine holds activations and weights.
using Floats = LargeVector<float>;
using Bytes = LargeVector<std::byte>;

Floats noise(size_t n) {
  std::minstd_rand generator(1);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  Floats x(n);
  for (float& v : x) v = uniform(generator);
  return x;
}

// Weights of any size without waiting for the generator: rows that repeat one of small numbers.
struct Matrix {
  Bytes memory;
  WeightView view;
  Matrix(int in, int out, WeightType type, Layout layout) {
    const bool by_output = layout == Layout::out_major;
    const int rows = by_output ? out : in, columns = by_output ? in : out;
    const auto bytes = static_cast<size_t>(row_bytes(type, columns));
    const auto values = noise(columns);
    std::vector<std::byte> row(bytes);
    const Kernels& k = kernels_for(Isa::reference);
    if (is_compressed(type))
      k.compress_row(values.data(), columns, type, row.data());
    else
      k.store(values.data(), columns,
              type == WeightType::f32 ? ElementType::f32 : ElementType::bf16, row.data());
    memory.resize(bytes * rows);
    for (size_t i = 0; i < memory.size(); i += bytes)
      std::copy(row.begin(), row.end(), memory.begin() + static_cast<ptrdiff_t>(i));
    view = {memory.data(), type, layout, in, out, dense_stride(type, columns)};
  }
};

constexpr WeightType kWeightTypes[] = {WeightType::f32, WeightType::bf16, WeightType::int8,
                                       WeightType::int4};

const char* name_of(ElementType type) {
  return type == ElementType::f32 ? "f32" : "bf16";
}
const char* name_of(Layout layout) {
  return layout == Layout::out_major ? "out_major" : "in_major";
}

void rate(benchmark::State& state, const char* what, double per_iteration) {
  state.counters[what] =
      benchmark::Counter(per_iteration / 1e9, benchmark::Counter::kIsIterationInvariantRate);
}

using Body = std::function<void(benchmark::State&)>;
void add(const std::string& name, Body body) {
  benchmark::RegisterBenchmark(name.c_str(), std::move(body))
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

// One row, on all threads: a cycle of matrices that together exceed every cache.
void register_matvecs(Isa isa) {
  for (const WeightType type : kWeightTypes) {
    for (const Layout layout : {Layout::out_major, Layout::in_major}) {
      for (const int keep : {100, 50, 30}) {
        if (layout == Layout::out_major && keep < 100) continue;
        add(fmt::format("{}/matvec/{}/{}/2048x8192/keep{}/memory", to_string(isa), name_of(layout),
                        to_string(type), keep),
            [=](benchmark::State& state) {
              const int in = 2048, out = 8192;
              const auto each =
                  static_cast<size_t>(matrix_bytes({nullptr, type, layout, in, out, 0}));
              const int count = static_cast<int>((size_t{640} << 20) / each);
              const bool by_output = layout == Layout::out_major;
              const Matrix all(by_output ? in : in * count, by_output ? out * count : out, type,
                               layout);
              const auto x = noise(in);
              std::vector<int> channels;
              for (int i = 0; i < in; ++i)
                if ((i * 37) % 100 < keep) channels.push_back(i);
              std::vector<float> y(out);
              int next = 0;
              for (auto _ : state) {
                WeightView w = all.view;
                w.in = in;
                w.out = out;
                w.data = all.memory.data() + each * (next++ % count);
                const int parts = thread_count();
                parallel_for(parts, [&](int64_t part) {
                  const Range r = split(out, parts, static_cast<int>(part), 64);
                  const int begin = static_cast<int>(r.begin), end = static_cast<int>(r.end);
                  if (layout == Layout::out_major)
                    kernels_for(isa).matvec_out_major(w, x.data(), begin, end, y.data());
                  else
                    kernels_for(isa).matmul_in_major(w, x.data(), 0, 1, channels.data(),
                                                     static_cast<int>(channels.size()), begin, end,
                                                     y.data(), 0);
                });
                benchmark::DoNotOptimize(y.data());
              }
              const double share =
                  layout == Layout::out_major ? 1.0 : static_cast<double>(channels.size()) / in;
              rate(state, "GB/s", static_cast<double>(each) * share);
            });
      }
    }
  }
}

void register_matmuls(Isa isa) {
  for (const MatmulMode mode : {MatmulMode::own, MatmulMode::library}) {
    for (const WeightType type : kWeightTypes) {
      for (const Layout layout : {Layout::out_major, Layout::in_major}) {
        for (const auto& shape : {std::pair{256, 1536}, {2048, 8192}}) {
          const int in = shape.first, out = shape.second;
          for (const int rows : {1, 2, 3, 4, 6, 8, 16, 64, 256}) {
            add(fmt::format("{}/matmul/{}/{}/{}/{}x{}/rows{}", to_string(isa),
                            mode == MatmulMode::own ? "own" : "library", name_of(layout),
                            to_string(type), in, out, rows),
                [=](benchmark::State& state) {
                  force_isa(isa);
                  const Matrix w(in, out, type, layout);
                  const auto x = noise(static_cast<size_t>(rows) * in);
                  Floats y(static_cast<size_t>(rows) * out);
                  for (auto _ : state) {
                    matmul(x.data(), in, rows, w.view, y.data(), out, mode);
                    benchmark::DoNotOptimize(y.data());
                  }
                  rate(state, "GFLOP/s", 2.0 * rows * in * out);
                });
          }
        }
      }
    }
  }
}

// What oneDNN alone makes of rows that kernels of our own are for, the weights from memory: as many
// matrices in turn as exceed the caches of two cores.
void register_narrow_matmuls(Isa isa) {
  const int in = 2048, out = 8192, matrices = 6;
  const auto add_one = [&](WeightType type, std::string_view by, Layout layout, int rows) {
    const bool own = by == "own", onednn = by == "onednn";
    if ((own && rows > 8) || (onednn && (rows < 4 || is_compressed(type)))) return;
    add(fmt::format("{}/narrow/{}/{}/{}/{}x{}/rows{}", to_string(isa), by, name_of(layout),
                    to_string(type), in, out, rows),
        [=](benchmark::State& state) {
          force_isa(isa);
          const bool by_output = layout == Layout::out_major;
          const Matrix all(by_output ? in : in * matrices, by_output ? out * matrices : out, type,
                           layout);
          const int64_t each = matrix_bytes({nullptr, type, layout, in, out, 0});
          const auto x = noise(static_cast<size_t>(rows) * in);
          Floats y(static_cast<size_t>(rows) * out);
          int next = 0;
          for (auto _ : state) {
            WeightView w = all.view;
            w.in = in;
            w.out = out;
            w.data = static_cast<const std::byte*>(w.data) + each * (next++ % matrices);
            if (onednn)
              dnnl_matmul(x.data(), in, rows, w, y.data(), out);
            else
              matmul(x.data(), in, rows, w, y.data(), out,
                     own ? MatmulMode::own : MatmulMode::library);
            benchmark::DoNotOptimize(y.data());
          }
          rate(state, "GFLOP/s", 2.0 * rows * in * out);
        });
  };
  for (const WeightType type : {WeightType::bf16, WeightType::int8, WeightType::int4})
    for (const std::string_view by : {"own", "library", "onednn"})
      for (const Layout layout : {Layout::out_major, Layout::in_major})
        for (const int rows : {1, 2, 4, 8, 16, 64, 512}) add_one(type, by, layout, rows);
}

// Rows of 8-bit activations with int8 weights.
void register_integer_matmuls(Isa isa) {
  for (const MatmulMode mode : {MatmulMode::own, MatmulMode::library}) {
    for (const Layout layout : {Layout::out_major, Layout::in_major}) {
      for (const int rows : {1, 2, 4, 6, 8, 16, 64, 256}) {
        const int in = 2048, out = 8192;
        add(fmt::format("{}/integer_matmul/{}/{}/{}x{}/rows{}", to_string(isa),
                        mode == MatmulMode::own ? "own" : "library", name_of(layout), in, out,
                        rows),
            [=](benchmark::State& state) {
              force_isa(isa);
              const Matrix w(in, out, WeightType::int8, layout);
              const auto x = noise(static_cast<size_t>(rows) * in);
              Floats y(static_cast<size_t>(rows) * out);
              for (auto _ : state) {
                integer_matmul(x.data(), in, rows, w.view, {}, y.data(), out, mode);
                benchmark::DoNotOptimize(y.data());
              }
              rate(state, "GFLOP/s", 2.0 * rows * in * out);
            });
      }
    }
  }
}

struct Cache {
  Bytes memory;
  std::vector<const std::byte*> blocks;
  CacheView view;
  Cache(int tokens, int dim, ElementType type)
      : memory(Matrix(dim, tokens, type == ElementType::f32 ? WeightType::f32 : WeightType::bf16,
                      Layout::out_major)
                   .memory) {
    const int block_tokens = 64;
    for (int j = 0; j < tokens; j += block_tokens)
      blocks.push_back(memory.data() + static_cast<size_t>(j) * dim * size_of(type));
    view = {blocks.data(), 0, block_tokens, dim, type};
  }
  const std::byte* at(int token) const {
    return memory.data() + static_cast<size_t>(token) * view.dim * size_of(view.type);
  }
};

// Rows of one key head over parts of a cache; each row keeps one page in `share`, or everything.
void register_parts(Isa isa, ElementType type, int dim, int rows, int page, int share) {
  add(fmt::format("{}/attend_part/{}/dim{}/{} rows/{}", to_string(isa), name_of(type), dim, rows,
                  share == 1 ? "dense" : fmt::format("1 in {} pages of {}", share, page)),
      [=](benchmark::State& state) {
        const int tokens = 8192;
        const Cache keys(tokens, dim, type), values(tokens, dim, type);
        const auto q = noise(static_cast<size_t>(rows) * dim);
        std::vector<float> scratch(attend_part_scratch);
        std::vector<float> partials(static_cast<size_t>(rows) * (dim + 2));
        std::vector<AttendRow> all;
        for (int r = 0; r < rows; ++r) all.push_back({&q[r * dim], &partials[r * (dim + 2)]});
        const uint64_t everybody = ~uint64_t{0} >> (64 - rows);
        std::vector<std::vector<AttendPiece>> parts(tokens / kPartTokens);
        std::minstd_rand generator(1);
        double row_tokens = 0;
        const int step = share == 1 ? 32 : page;
        for (int j = 0; j < tokens; j += step) {
          uint64_t who = share == 1 ? everybody : 0;
          for (int r = 0; r < rows && share > 1; ++r)
            who |= uint64_t{generator() % static_cast<unsigned>(share) == 0} << r;
          if (who)
            parts[j / kPartTokens].push_back(
                {keys.at(j), values.at(j), j % kPartTokens, step, who});
          row_tokens += step * __builtin_popcountll(who);
        }
        for (auto _ : state) {
          for (const auto& pieces : parts)
            kernels_for(isa).attend_part(all.data(), rows, dim, type, pieces.data(),
                                         static_cast<int>(pieces.size()),
                                         static_cast<int>(pieces.size()), {}, 0.1f, scratch.data());
          benchmark::DoNotOptimize(partials.data());
        }
        rate(state, "Gtoken/s", row_tokens);  // tokens times rows that attend to them
      });
}

void register_selection(Isa isa) {
  for (const int n : {256, 2048, 4096}) {
    add(fmt::format("{}/mark_largest/{} of {}", to_string(isa), n / 5, n),
        [=](benchmark::State& state) {
          // Many different inputs: one alone is learnt by the branch prediction.
          constexpr int kInputs = 64;
          const auto x = noise(static_cast<size_t>(n) * kInputs);
          std::vector<uint64_t> marks(static_cast<size_t>(n) / 64);
          std::vector<int32_t> scratch(static_cast<size_t>(mark_largest_scratch(n)));
          int input = 0;
          for (auto _ : state) {
            const float* from = x.data() + static_cast<size_t>(n) * (input++ % kInputs);
            kernels_for(isa).mark_largest(from, n, n / 5, false, false, marks.data(),
                                          scratch.data());
            benchmark::DoNotOptimize(marks.data());
          }
          rate(state, "Gelement/s", n);
        });
  }
}

void register_attention(Isa isa) {
  register_selection(isa);
  for (const ElementType type : {ElementType::f32, ElementType::bf16}) {
    for (const int dim : {64, 128}) {
      for (const int rows : {1, 4, 32}) register_parts(isa, type, dim, rows, 32, 1);
      for (const int rows : {1, 4, 32}) register_parts(isa, type, dim, rows, 4, 5);
      add(fmt::format("{}/attend_causal/{}/dim{}/64 rows x 4 heads over 1024", to_string(isa),
                      name_of(type), dim),
          [=](benchmark::State& state) {
            const int rows = 64, heads = 4, first = 960;
            const Cache keys(1024, dim, type), values(1024, dim, type);
            const auto q = noise(static_cast<size_t>(rows) * heads * dim);
            std::vector<float> out(q.size());
            std::vector<float> scratch(attend_causal_scratch(rows, heads, first + rows, dim));
            for (auto _ : state) {
              kernels_for(isa).attend_causal(q.data(), heads * dim, rows, heads, first, keys.view,
                                             values.view, 0.1f, scratch.data(), out.data());
              benchmark::DoNotOptimize(out.data());
            }
            rate(state, "GFLOP/s", 4.0 * rows * heads * dim * (first + rows / 2.0));
          });
    }
    for (const int heads : {1, 4}) {
      add(fmt::format("{}/page_scores/{}/dim64/{} heads/2048 pages", to_string(isa), name_of(type),
                      heads),
          [=](benchmark::State& state) {
            const Cache extrema(4096, 64, type);
            const PagesView view{extrema.blocks.data(), 0, 32, 64, type};
            const auto q = noise(static_cast<size_t>(heads) * 64);
            std::vector<float> score(static_cast<size_t>(heads) * 2048);
            for (auto _ : state) {
              kernels_for(isa).page_scores(q.data(), heads, view, 0, 2048, score.data(), 2048);
              benchmark::DoNotOptimize(score.data());
            }
            rate(state, "GB/s", 2.0 * 2048 * 64 * size_of(type));
          });
    }
  }
}

void register_elementwise(Isa isa) {
  const int n = 8192;
  const auto each = [&](const std::string& name, double bytes, auto run) {
    add(fmt::format("{}/{}/{}", to_string(isa), name, n), [=](benchmark::State& state) {
      const auto a = noise(n), b = noise(n);
      std::vector<float> out(n);
      for (auto _ : state) {
        run(kernels_for(isa), a.data(), b.data(), out.data());
        benchmark::DoNotOptimize(out.data());
      }
      rate(state, "GB/s", bytes * n);
    });
  };
  using K = const Kernels&;
  using In = const float*;
  each("rms_norm", 12, [](K k, In a, In b, float* out) { k.rms_norm(a, b, 1e-5f, n, out); });
  each("layer_norm", 16, [](K k, In a, In b, float* out) { k.layer_norm(a, b, b, 1e-5f, n, out); });
  each("silu_mul", 12, [](K k, In a, In b, float* out) { k.silu_mul(a, b, n, out); });
  each("gelu", 8, [](K k, In, In, float* out) { k.gelu(out, n); });
  each("add", 12, [](K k, In a, In, float* out) { k.add(out, a, n); });
  each("fake_quantise", 12, [](K k, In a, In, float* out) {
    k.store(a, n, ElementType::f32, out);
    k.fake_quantise(out, n, 5);
  });
  each("store_bf16", 6, [](K k, In a, In, float* out) { k.store(a, n, ElementType::bf16, out); });
  each("log_sum_exp", 4, [](K k, In a, In, float* out) { k.log_sum_exp(a, n, out, out + 1); });
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  for (const Isa isa : supported_isas()) {
    register_elementwise(isa);
    register_attention(isa);
    register_matvecs(isa);
    register_matmuls(isa);
    if (has_avx512(isa) && cpu_multiplies_bf16()) register_narrow_matmuls(isa);
    register_integer_matmuls(isa);
  }
  benchmark::AddCustomContext("processor", cpu_description());
  benchmark::AddCustomContext("threads", std::to_string(thread_count()));
  benchmark::RunSpecifiedBenchmarks();
}
