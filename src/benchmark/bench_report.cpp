#include "benchmark/bench_report.h"

#include <fmt/format.h>

namespace sol {
namespace {

std::string name_of(BenchKind kind) {
  return kind == BenchKind::prefill ? "prefill" : "decode";
}

// Gigabytes or, for a prefill, tera-operations per second.
double rate(const BenchRow& row) {
  return row.kind == BenchKind::prefill ? row.operations / row.median() / 1e12
                                        : row.bytes / row.median() / 1e9;
}

Json to_json(const StageTimes& t) {
  return {{"projections", t.projections},
          {"page_scoring", t.page_scoring},
          {"attention", t.attention},
          {"mlp", t.mlp},
          {"head", t.head}};
}

}  // namespace

std::string ceilings_text(const Ceilings& ceilings) {
  std::string text = "memory     reads";
  for (const ReadRate& read : ceilings.reads) {
    text += fmt::format("  {} thread{} {:.1f} GB/s", read.threads, read.threads == 1 ? "" : "s",
                        read.bytes_per_second / 1e9);
  }
  text += "\nproducts   ";
  for (const MatrixRate& product : ceilings.products) {
    text += fmt::format("{} {:.2f} T/s  ", product.type, product.operations_per_second / 1e12);
  }
  return text + "(4096 x 4096, 1024 rows, oneDNN, all threads)\n";
}

std::string bench_header() {
  return fmt::format("{:<8}{:>4}{:>6}{:>8}  {:<16}{:>9}{:>10}{:>9}{:>7}{:>9}{:>8}{:>8}{:>8}  {}\n",
                     "", "thr", "batch", "context", "action", "tokens/s", "ms", "rate", "ceil",
                     "MB", "bytes", "time", "spread", "proj / scores / attn / mlp / head / policy");
}

std::string bench_line(const BenchRow& row) {
  const bool prefill = row.kind == BenchKind::prefill;
  const double share = row.share_of_ceiling();
  const double total = row.stages.total() + row.policy;
  const auto percent = [&](double part) { return total > 0 ? 100 * part / total : 0.0; };
  std::string line = fmt::format(
      "{:<8}{:>4}{:>6}{:>8}  {:<16}{:>9.1f}{:>10.2f}{:>9}{:>7}", name_of(row.kind), row.threads,
      row.batch, prefill ? row.tokens : row.context,
      prefill || row.action.dense() ? "dense" : to_string(row.action), row.tokens_per_second(),
      1e3 * row.median(), fmt::format("{:.2f}{}", rate(row), prefill ? " T" : " G"),
      share > 0 ? fmt::format("{:.0f} %", 100 * share) : "-");
  line += prefill ? fmt::format("{:>9}{:>8}{:>8}", "", "", "")
                  : fmt::format("{:>9.1f}{:>7.1f}%{:>7.1f}%", row.bytes / 1e6,
                                100 * row.bytes / row.dense_bytes, 100 * row.time_to_dense);
  line += fmt::format("{:>7.0f}%  {:.1f} / {:.1f} / {:.1f} / {:.1f} / {:.1f} / {:.1f} %{}\n",
                      100 * row.spread(), percent(row.stages.projections),
                      percent(row.stages.page_scoring), percent(row.stages.attention),
                      percent(row.stages.mlp), percent(row.stages.head), percent(row.policy),
                      row.from_cache ? "  (from the processor's cache)" : "");
  return line;
}

std::string bench_csv(std::span<const BenchRow> rows) {
  std::string text =
      "kind,threads,batch,context,tokens,action,from_cache,tokens_per_second,seconds,spread,bytes,"
      "dense_bytes,bytes_per_second,operations_per_second,share_of_ceiling,bytes_to_dense,"
      "time_to_dense,projections,page_scoring,attention,mlp,head,policy\n";
  for (const BenchRow& row : rows) {
    const bool prefill = row.kind == BenchKind::prefill;
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", name_of(row.kind),
        row.threads, row.batch, row.context, row.tokens, to_string(row.action),
        row.from_cache ? 1 : 0, row.tokens_per_second(), row.median(), row.spread(), row.bytes,
        row.dense_bytes, prefill ? 0.0 : row.bytes / row.median(),
        prefill ? row.operations / row.median() : 0.0, row.share_of_ceiling(),
        row.bytes / row.dense_bytes, row.time_to_dense, row.stages.projections,
        row.stages.page_scoring, row.stages.attention, row.stages.mlp, row.stages.head, row.policy);
  }
  return text;
}

Json bench_json(std::span<const BenchRow> rows, const Ceilings& ceilings, const RunInfo& info) {
  Json out{{"reads", Json::array()}, {"products", Json::array()}};
  for (const ReadRate& read : ceilings.reads) {
    out["reads"].push_back(
        {{"threads", read.threads}, {"bytes_per_second", read.bytes_per_second}});
  }
  for (const MatrixRate& product : ceilings.products) {
    out["products"].push_back({{"type", product.type},
                               {"rows", product.rows},
                               {"operations_per_second", product.operations_per_second}});
  }
  out["rows"] = Json::array();
  for (const BenchRow& row : rows) {
    out["rows"].push_back({{"kind", name_of(row.kind)},
                           {"threads", row.threads},
                           {"batch", row.batch},
                           {"context", row.context},
                           {"tokens", row.tokens},
                           {"action", to_string(row.action)},
                           {"from_cache", row.from_cache},
                           {"seconds", row.seconds},
                           {"tokens_per_second", row.tokens_per_second()},
                           {"spread", row.spread()},
                           {"bytes", row.bytes},
                           {"dense_bytes", row.dense_bytes},
                           {"operations", row.operations},
                           {"ceilings", row.ceilings},
                           {"share_of_ceiling", row.share_of_ceiling()},
                           {"time_to_dense", row.time_to_dense},
                           {"stages", to_json(row.stages)},
                           {"policy", row.policy}});
  }
  out["run"] = to_json(info);
  return out;
}

OutputKind bench_csv_kind() {
  return {"a table of `sol bench`", "kind,threads,batch,"};
}

OutputKind bench_json_kind() {
  return {"a result of `sol bench`", "{\n  \"reads\": ["};
}

}  // namespace sol
