// What tells a study's results from another's: its settings, and the content of its files.
#include <cstdio>
#include <memory>
#include <string_view>

#include "base/fail.h"
#include "base/file_io.h"
#include "base/hash.h"
#include "reproduction/study.h"

namespace sol {
namespace {

namespace fs = std::filesystem;

// A text may be larger than memory; what changes it changes its size, beginning or end.
std::string text_identity(const fs::path& file) {
  constexpr uint64_t ends = 1 << 20;
  const int descriptor = open_regular_file(file);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(fdopen(descriptor, "rb"),
                                                               std::fclose);
  if (!stream) fail("{}: cannot be read", file.string());
  const uint64_t size = fs::file_size(file);
  std::string bytes(ends, '\0');
  Hash128 hash;
  hash.add(fmt::format("{} ", size));
  for (const uint64_t from : {uint64_t{0}, size > ends ? size - ends : 0}) {
    if (std::fseek(stream.get(), static_cast<long>(from), SEEK_SET) != 0)
      fail("{}: cannot be read", file.string());
    const size_t got = std::fread(bytes.data(), 1, bytes.size(), stream.get());
    hash.add(std::string_view(bytes).substr(0, got));
  }
  return hash.hexadecimal();
}

Json named(const fs::path& file, const std::string& identity) {
  return {{"name", file.filename().string()}, {"identity", identity}};
}

Json text_json(const StudyText& text) {
  Json files = Json::array();
  for (const fs::path& file : text.files) files.push_back(named(file, text_identity(file)));
  return {{"name", text.name},
          {"label", text.label},
          {"files", files},
          {"format", text.format == TextOptions::Format::wikitext ? "wikitext" : "documents"}};
}

Json controller_json(const StudyController& controller) {
  Json overrides = Json::array();
  for (const auto& [key, value] : controller.overrides) overrides.push_back(key + "=" + value);
  const fs::path file =
      controller.ready.empty() ? controller.configuration : controller.ready / "controller.json";
  return {{"name", controller.name},
          {controller.ready.empty() ? "config" : "ready", named(file, hash_128(read_file(file)))},
          {"set", overrides},
          {"updates", controller.updates},
          {"minutes", controller.minutes}};
}

Json levels_json(const std::vector<float>& kappa, const std::vector<float>& rho,
                 const std::vector<int>& bits) {
  return {{"keep", kappa}, {"prune", rho}, {"bits", bits}};
}

}  // namespace

Json Study::to_json() const {
  Json families_json = Json::array();
  for (const StudyFamily& family : families) {
    Json controllers = Json::array();
    for (const StudyController& controller : family.controllers)
      controllers.push_back(controller_json(controller));
    families_json.push_back(
        {{"name", family.name}, {"title", family.title}, {"controllers", controllers}});
  }
  Json texts = Json::array();
  for (const StudyText& text : experiments.transfer.texts) texts.push_back(text_json(text));
  const PollutionOptions& pollution = experiments.pollution;
  Json json{
      {"name", name},
      {"quick", quick},
      {"seed", seed},
      {"train", text_json(train)},
      {"valid", text_json(valid)},
      {"test", text_json(test)},
      {"context", context},
      {"blocks", blocks},
      {"validation_blocks", validation_blocks},
      {"budgets", budgets},
      {"families", families_json},
      {"spaces",
       {{"controllers", experiments.spaces.controllers},
        {"baselines", experiments.spaces.baselines}}},
      {"landscape",
       {{"schedules", experiments.landscape.schedules}, {"points", experiments.landscape.points}}},
      {"search",
       {{"schedules", experiments.search.schedules}, {"points", experiments.search.points}}},
      {"single",
       {{"controllers", experiments.single.controllers},
        {"schedules", experiments.single.schedules},
        {"points", experiments.single.points}}},
      {"horizons", {{"controllers", experiments.horizons.controllers}}},
      {"pollution",
       {{"windows", pollution.windows},
        {"prefix", pollution.prefix},
        {"corrupted", pollution.corrupted},
        {"tail", pollution.tail},
        {"page_size", pollution.sequence.page_size}}},
      {"timed",
       {{"controller", experiments.timed.controller},
        {"blocks", experiments.timed.blocks},
        {"points", experiments.timed.points}}},
      {"behaviour",
       {{"controller", experiments.behaviour.controller},
        {"points", experiments.behaviour.points}}},
      {"free",
       {{"controller", experiments.free.controller},
        {"prompts", experiments.free.prompts},
        {"prompt_tokens", experiments.free.prompt_tokens},
        {"tokens", experiments.free.tokens},
        {"points", experiments.free.points}}},
      {"transfer",
       {{"controller", experiments.transfer.controller},
        {"texts", texts},
        {"contexts", experiments.transfer.contexts},
        {"blocks", experiments.transfer.blocks}}},
      {"seeds",
       {{"controller", experiments.seeds.controller}, {"seeds", experiments.seeds.seeds}}}};
  // Only where a study asks for them: directories of those that do not stay theirs.
  if (sweep_blocks) json["sweep_blocks"] = *sweep_blocks;
  if (experiments.single.budgets > 0) json["single"]["budgets"] = experiments.single.budgets;
  if (grid == GridRequest::Kind::paper) json["grid"] = "paper";
  const PollutionOptions usual;
  if (pollution.kappa != usual.kappa || pollution.rho != usual.rho || pollution.bits != usual.bits)
    json["pollution"].update(levels_json(pollution.kappa, pollution.rho, pollution.bits));
  const StudyExperiments::Static &methods = experiments.static_methods, usual_methods;
  if (methods.kappa != usual_methods.kappa || methods.rho != usual_methods.rho ||
      methods.bits != usual_methods.bits)
    json["static"] = levels_json(methods.kappa, methods.rho, methods.bits);
  return json;
}

}  // namespace sol
