// A YAML mapping read strictly: unknown keys, wrong types and duplicates are errors that name the
// file, the line and the key.
#pragma once

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sol {

class YamlMap {
 public:
  static YamlMap read(const std::filesystem::path& path);
  static YamlMap parse(const std::string& text, const std::string& where);

  // Sets a key with its sections, "rollout.batch", to a YAML value; missing sections are made. Of a
  // whole document only, before sections of it are read. What is wrong with such a value is told
  // with the override's name instead of a line. Where the file has an alias (*name), only the key
  // named changes.
  void override_value(const std::string& key, const std::string& value);

  // All of these mark a key as known. T: bool, int, int64_t, double, std::string,
  // std::vector<double>, std::vector<std::string>.
  bool has(const std::string& key);
  template <typename T>
  T get(const std::string& key);
  template <typename T>
  T get_or(const std::string& key, T fallback);
  // Nothing where the key is absent or null.
  template <typename T>
  std::optional<T> get_optional(const std::string& key);
  YamlMap map(const std::string& key);  // a nested mapping; must exist
  std::optional<YamlMap> optional_map(const std::string& key);
  // The keys in the file's order, for a mapping whose keys are names of the user's own; each is
  // then known. `yaml_text` is a value as YAML again, on one line.
  std::vector<std::string> keys();
  std::string yaml_text(const std::string& key);
  void reject_unknown() const;  // throws Error for a key that nobody asked for, listing known ones

  // Where a key of this map, or of sections in it ("rollout.batch"), comes from, for messages:
  // "c.yaml, line 12" or "c.yaml, override rollout.batch"; the innermost section that there is
  // where the key is absent.
  std::string place(const std::string& key) const;

 private:
  using Names = std::set<std::string>;
  YamlMap(YAML::Node node, std::string where, std::string section,
          std::shared_ptr<Names> overridden);
  std::string full_name(const std::string& key) const;  // with the sections it lies in
  std::string place(const YAML::Node& node, const std::string& full_name) const;
  YAML::Node node_;
  std::string where_, section_;
  std::shared_ptr<Names> overridden_;  // full names
  Names known_;
};

}  // namespace sol
