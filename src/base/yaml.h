// A YAML mapping read strictly: unknown keys, wrong types and duplicates are errors that name the
// file, the line and the key.
#pragma once

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sol {

class YamlMap {
 public:
  static YamlMap read(const std::filesystem::path& path);
  static YamlMap parse(const std::string& text, const std::string& where);

  bool has(const std::string& key) const;
  // Getters mark a key as known. T: bool, int, int64_t, double, std::string, std::vector<double>,
  // std::vector<std::string>.
  template <typename T>
  T get(const std::string& key);
  template <typename T>
  T get_or(const std::string& key, T fallback);
  YamlMap map(const std::string& key);  // a nested mapping; must exist
  std::optional<YamlMap> optional_map(const std::string& key);
  void reject_unknown() const;  // throws Error for a key that nobody asked for, listing known ones

  const std::string& where() const { return where_; }

 private:
  YamlMap(YAML::Node node, std::string where, std::string section);
  std::string full_name(const std::string& key) const;  // with the sections it lies in
  YAML::Node find(const std::string& key) const;        // undefined when absent
  int line_of_key(const std::string& key) const;
  YAML::Node node_;
  std::string where_, section_;
  std::set<std::string> known_;
};

}  // namespace sol
