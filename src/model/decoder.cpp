#include "model/decoder.h"

#include <fmt/ranges.h>

#include "base/fail.h"
#include "model/decoder_steps.h"
#include "model/normalizer.h"
#include "model/utf8.h"

namespace sol {

void DecodeChain::push_from(size_t step, std::string_view token, std::string& out) {
  if (step == steps_.size()) {
    out.append(token);
    return;
  }
  steps_[step]->push(token, [&](std::string_view next) { push_from(step + 1, next, out); });
}

void DecodeChain::push(std::string_view piece, std::string& out) {
  push_from(0, piece, out);
}

void DecodeChain::finish(std::string& out) {
  for (size_t step = 0; step < steps_.size(); ++step) {
    steps_[step]->finish([&](std::string_view next) { push_from(step + 1, next, out); });
  }
}

Decoder Decoder::parse(const Component& component) {
  Decoder decoder;
  if (component.is_null()) {
    decoder.factories_.push_back(decode_with_spaces);
    decoder.names_.push_back("spaces");
  } else {
    decoder.add(component);
  }
  return decoder;
}

void Decoder::add(const Component& component) {
  const std::string type = component.type();
  // A step that wants whole tokens must wait for the end of a text that has been joined.
  const auto add_step = [&](Factory factory) {
    if (joined_) {
      factories_.push_back([factory] { return decode_whole(factory()); });
    } else {
      factories_.push_back(std::move(factory));
    }
  };
  if (type == "Sequence") {
    component.allow_only({"type", "decoders"});
    for (const Component& part : component.list("decoders")) add(part);
    return;
  }
  if (type == "ByteLevel") {
    component.allow_only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    add_step(decode_letters);
    joined_ = true;
  } else if (type == "ByteFallback") {
    component.allow_only({"type"});
    add_step(decode_fallback);
  } else if (type == "Fuse") {
    component.allow_only({"type"});
    joined_ = true;
  } else if (type == "Replace") {
    component.allow_only({"type", "pattern", "content"});
    add_step([pattern = parse_pattern(component.child("pattern")),
              content = component.text("content")] { return decode_replace(pattern, content); });
  } else if (type == "Metaspace") {
    add_step([settings = parse_metaspace(component)] { return decode_metaspace(settings); });
  } else if (type == "Strip") {
    component.allow_only({"type", "content", "start", "stop"});
    const std::string content = component.text("content");
    const int64_t start = component.integer("start"), stop = component.integer("stop");
    if (content.empty() || content.size() != utf8_length(content[0])) {
      fail("{}.content: expected one character", component.where());
    }
    if (start < 0 || stop < 0) fail("{}: start and stop must not be negative", component.where());
    factories_.push_back([=, joined = joined_] {
      return decode_strip(content, static_cast<size_t>(start), static_cast<size_t>(stop), joined);
    });
  } else {
    component.unknown_type();
  }
  names_.push_back(type);
}

DecodeChain Decoder::begin() const {
  std::vector<std::unique_ptr<DecodeStep>> steps;
  for (const Factory& factory : factories_) steps.push_back(factory());
  return DecodeChain(std::move(steps));
}

std::string Decoder::describe() const {
  return fmt::format("{}", fmt::join(names_, " + "));
}

}  // namespace sol
