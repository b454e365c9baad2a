#include "text/prepared_data.h"

#include <numeric>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/hash.h"

namespace sol {
namespace {

namespace fs = std::filesystem;

constexpr const char* kind = "sol prepared data";
constexpr int format_version = 1;

fs::path manifest_path(const fs::path& dir) {
  return dir / "manifest.json";
}

int64_t sum(const PreparedManifest& manifest, int64_t PreparedShard::*field) {
  int64_t total = 0;
  for (const PreparedShard& shard : manifest.shards) total += shard.*field;
  return total;
}

Json to_json(const PreparedShard& shard) {
  Json json{{"tokens", shard.tokens}, {"documents", shard.documents}};
  if (shard.skipped > 0) {
    json["skipped"] = shard.skipped;
    json["first_skipped"] = shard.first_skipped;
  }
  json["end_file"] = shard.end.file;
  json["end_line"] = shard.end.line;
  return json;
}

PreparedShard shard_from_json(const Json& json, const std::string& where) {
  PreparedShard shard;
  const auto count = [&](const char* field) {
    const int64_t value = json_get<int64_t>(json, field, where);
    if (value < 0) fail("{}: field \"{}\" is negative", where, field);
    return value;
  };
  shard.tokens = count("tokens");
  shard.documents = count("documents");
  if (json.contains("skipped")) {
    shard.skipped = count("skipped");
    shard.first_skipped = json_get<std::string>(json, "first_skipped", where);
  }
  shard.end = {count("end_file"), count("end_line")};
  return shard;
}

}  // namespace

int64_t PreparedManifest::tokens() const {
  return sum(*this, &PreparedShard::tokens);
}
int64_t PreparedManifest::documents() const {
  return sum(*this, &PreparedShard::documents);
}
int64_t PreparedManifest::skipped() const {
  return sum(*this, &PreparedShard::skipped);
}

std::string PreparedManifest::key() const {
  return hash_128(to_text(identity));
}

bool is_prepared_data(const fs::path& dir) {
  return path_exists(manifest_path(dir));
}

namespace {

PreparedManifest manifest_from_text(const std::string& text, const std::string& where) {
  const Json json = parse_json(text, where);
  if (json_get<std::string>(json, "kind", where) != kind)
    fail("{}: is no manifest of prepared data", where);
  const int version = json_get<int>(json, "format_version", where);
  if (version != format_version)
    fail("{}: has format version {}; this program reads version {}", where, version,
         format_version);
  PreparedManifest manifest;
  manifest.complete = json_get<bool>(json, "complete", where);
  manifest.source = json_get<std::string>(json, "source", where);
  if (!json.contains("identity") || !json["identity"].is_object())
    fail("{}: field \"identity\" must be an object", where);
  manifest.identity = json["identity"];
  if (!json.contains("shards") || !json["shards"].is_array())
    fail("{}: field \"shards\" must be a list", where);
  for (const Json& shard : json["shards"])
    manifest.shards.push_back(
        shard_from_json(shard, fmt::format("{}, shard {}", where, manifest.shards.size())));
  return manifest;
}

}  // namespace

std::optional<PreparedManifest> read_prepared_manifest(const fs::path& dir) {
  if (!is_prepared_data(dir)) return std::nullopt;
  const std::string where = manifest_path(dir).string();
  const std::string text = read_file(where, default_json_limit);
  try {
    return manifest_from_text(text, where);
  } catch (const Error& error) {
    fail("{}; restore this file, or prepare the data anew in another directory", error.what());
  }
}

void write_prepared_manifest(const fs::path& dir, const PreparedManifest& manifest) {
  Json shards = Json::array();
  for (const PreparedShard& shard : manifest.shards) shards.push_back(to_json(shard));
  const Json json{{"kind", kind},
                  {"format_version", format_version},
                  {"complete", manifest.complete},
                  {"source", manifest.source},
                  {"identity", manifest.identity},
                  {"tokens", manifest.tokens()},
                  {"documents", manifest.documents()},
                  {"shards", shards}};
  write_file_atomically(manifest_path(dir), to_text(json, 1) + "\n");
}

fs::path prepared_shard_path(const fs::path& dir, size_t shard) {
  return dir / fmt::format("{:05}.ids", shard);
}

bool is_prepared_shard(const fs::path& path) {
  const std::string number = path.stem().string();
  const bool digits = number.find_first_not_of("0123456789") == number.npos;
  return path.extension() == ".ids" && number.size() >= 5 && digits;
}

CachedIds open_prepared_shard(const fs::path& dir, const PreparedManifest& manifest, size_t shard,
                              CacheCheck check) {
  const fs::path path = prepared_shard_path(dir, shard);
  const std::string makes_again =
      fmt::format("`sol prepare {} -o {}`, with the options of then, makes it again",
                  manifest.source, dir.string());
  if (!path_exists(path))
    fail("{}: is missing, but the manifest beside it counts on it; {}", path.string(), makes_again);
  const std::string remedy = "delete it, and " + makes_again;
  auto ids = open_block_cache(path, manifest.key(), check, remedy);
  if (!ids || !std::cmp_equal(ids->ids.size(), manifest.shards[shard].tokens))
    fail("{}: {}, but the manifest beside it counts on it; {}", path.string(),
         ids ? "is not the file that was written" : "is of other data", remedy);
  return *std::move(ids);
}

}  // namespace sol
