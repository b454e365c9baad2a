#include "model/post_processor.h"

#include <map>

#include "base/fail.h"

namespace sol {
namespace {

using SpecialTokens = std::map<std::string, std::vector<int32_t>>;

SpecialTokens parse_special_tokens(const Component& component, const Vocabulary& vocabulary,
                                   const AddedTokens& added) {
  SpecialTokens tokens;
  for (const auto& [name, entry] : component.members("special_tokens")) {
    std::vector<int32_t>& ids = tokens[name];
    for (const Component& item : entry.list("ids")) {
      const int64_t id = item.as_integer();
      const bool known = vocabulary.has(id) || (id >= 0 && id < added.id_limit() &&
                                                added.by_id(static_cast<int32_t>(id)));
      if (!known) fail("{}: no token has the id {}", item.where(), id);
      ids.push_back(static_cast<int32_t>(id));
    }
  }
  return tokens;
}

void apply_template(const Component& component, const SpecialTokens& tokens,
                    PostProcessor& result) {
  bool text_seen = false;
  for (const Component& part : component.list("single")) {
    part.allow_only({"SpecialToken", "Sequence"});
    if (part.has("Sequence")) {
      const Component sequence = part.child("Sequence");
      if (sequence.text("id") != "A" || text_seen) {
        fail("{}: a template for one text must hold its sequence A once", sequence.where());
      }
      text_seen = true;
      continue;
    }
    const Component special = part.child("SpecialToken");
    const auto found = tokens.find(special.text("id"));
    if (found == tokens.end()) {
      fail("{}: \"{}\" is not among special_tokens", special.where(), special.text("id"));
    }
    auto& side = text_seen ? result.after : result.before;
    side.insert(side.end(), found->second.begin(), found->second.end());
  }
  if (!text_seen) fail("{}.single: the sequence A is missing", component.where());
}

void add(const Component& component, const Vocabulary& vocabulary, const AddedTokens& added,
         PostProcessor& result) {
  const std::string type = component.type();
  if (type == "Sequence") {
    component.allow_only({"type", "processors"});
    for (const Component& part : component.list("processors")) add(part, vocabulary, added, result);
  } else if (type == "TemplateProcessing") {
    component.allow_only({"type", "single", "pair", "special_tokens"});
    if (!result.before.empty() || !result.after.empty()) {
      fail("{}: more than one template is not supported", component.where());
    }
    apply_template(component, parse_special_tokens(component, vocabulary, added), result);
  } else if (type == "ByteLevel") {
    // It only corrects offsets, which nobody here asks for.
    component.allow_only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  } else {
    component.unknown_type();
  }
}

}  // namespace

PostProcessor PostProcessor::parse(const Component& component, const Vocabulary& vocabulary,
                                   const AddedTokens& added) {
  PostProcessor result;
  if (!component.is_null()) add(component, vocabulary, added, result);
  return result;
}

}  // namespace sol
