// Event files, read back by a parser of our own that shares nothing with the encoder but CRC-32C,
// which has tests with known vectors.
#include "training/event_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "base/crc32c.h"
#include "base/file_io.h"
#include "support.h"
#include "throws.h"
#include "training/action_counts.h"
#include "training/metrics_events.h"
#include "training/run_log.h"

namespace sol::test {
namespace {

namespace fs = std::filesystem;

template <typename T>
T take(std::string_view& text) {
  T value;
  EXPECT_GE(text.size(), sizeof(T));
  std::memcpy(&value, text.data(), sizeof(T));
  text.remove_prefix(sizeof(T));
  return value;
}

// Data of every frame; both checksums are compared.
std::vector<std::string> frames(std::string_view file) {
  const auto check = [](std::string_view bytes, uint32_t stored) {
    const uint32_t unmasked = stored - 0xA282EAD8u;
    EXPECT_EQ((unmasked >> 17) | (unmasked << 15), crc32c(bytes));
  };
  std::vector<std::string> found;
  while (!file.empty()) {
    const std::string_view length_bytes = file.substr(0, 8);
    const auto length = take<uint64_t>(file);
    check(length_bytes, take<uint32_t>(file));
    found.emplace_back(file.substr(0, length));
    file.remove_prefix(length);
    check(found.back(), take<uint32_t>(file));
  }
  return found;
}

// A protocol buffer's fields by number, numbers as doubles.
struct Fields {
  std::map<int, std::vector<double>> numbers;
  std::map<int, std::vector<std::string>> bytes;
};

uint64_t varint(std::string_view& text) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = take<uint8_t>(text);
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
}

Fields parse(std::string_view text) {
  Fields fields;
  while (!text.empty()) {
    const uint64_t key = varint(text);
    const int field = static_cast<int>(key >> 3);
    switch (key & 7) {
      case 0:
        fields.numbers[field].push_back(static_cast<double>(varint(text)));
        break;
      case 1:
        fields.numbers[field].push_back(take<double>(text));
        break;
      case 2: {
        const uint64_t size = varint(text);
        fields.bytes[field].emplace_back(text.substr(0, size));
        text.remove_prefix(size);
        break;
      }
      case 5:
        fields.numbers[field].push_back(static_cast<double>(take<float>(text)));
        break;
      default:
        ADD_FAILURE() << "wire type " << (key & 7);
        return fields;
    }
  }
  return fields;
}

std::map<std::string, Fields> values(const Fields& event) {
  std::map<std::string, Fields> found;
  const Fields summary = parse(event.bytes.at(5).at(0));
  for (const std::string& value : summary.bytes.at(1)) {
    const Fields fields = parse(value);
    EXPECT_TRUE(found.emplace(fields.bytes.at(1).at(0), fields).second);
  }
  return found;
}

std::vector<fs::path> event_files(const fs::path& dir) {
  std::set<fs::path> found;
  for (const auto& entry : fs::directory_iterator(dir))
    if (entry.path().filename().string().find("tfevents") != std::string::npos)
      found.insert(entry.path());
  return {found.begin(), found.end()};
}

// The frame of the empty string, worked out by hand from the format's definition.
TEST(EventFile, FramesHaveMaskedChecksums) {
  const std::string frame = tfrecord("");
  ASSERT_EQ(frame.size(), 16u);
  EXPECT_EQ(frame.substr(0, 8), std::string(8, '\0'));
  EXPECT_EQ(frame.substr(12), std::string("\xd8\xea\x82\xa2", 4));  // of CRC 0: the mask alone
  EXPECT_EQ(frames(tfrecord("abc") + tfrecord("")), (std::vector<std::string>{"abc", ""}));
}

TEST(EventFile, HoldsWhatWasAppended) {
  TemporaryDirectory dir;
  EventFile file(dir.path(), 7);
  file.append(300, {{"a/b", 0.5}, {"nan", std::nan("")}},
              {{"h", {1, 2, 4}, {10, 0, 30}}, {"e", {}, {}}});
  const auto records = frames(read_file(file.path()));
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(parse(records[0]).bytes.at(3).at(0), "brain.Event:2");
  const Fields start = parse(records[1]);
  EXPECT_EQ(start.numbers.at(2).at(0), 7);
  EXPECT_EQ(parse(start.bytes.at(7).at(0)).numbers.at(1).at(0), 1);
  const Fields event = parse(records[2]);
  EXPECT_EQ(event.numbers.at(2).at(0), 300);
  EXPECT_GT(event.numbers.at(1).at(0), 1.6e9);
  auto found = values(event);
  EXPECT_EQ(found.size(), 3u);
  EXPECT_EQ(found.at("a/b").numbers.at(2).at(0), 0.5);
  EXPECT_TRUE(std::isnan(found.at("nan").numbers.at(2).at(0)));
  const Fields histogram = parse(found.at("h").bytes.at(5).at(0));
  EXPECT_EQ(histogram.numbers.at(1).at(0), 1);
  EXPECT_EQ(histogram.numbers.at(2).at(0), 4);
  EXPECT_EQ(histogram.numbers.at(3).at(0), 40);
  EXPECT_EQ(histogram.numbers.at(4).at(0), 130);
  EXPECT_EQ(histogram.numbers.at(5).at(0), 490);
  std::string_view limits = histogram.bytes.at(6).at(0);
  for (const double limit : {1.5, 3.0, 4.0}) EXPECT_EQ(take<double>(limits), limit);
  std::string_view counts = histogram.bytes.at(7).at(0);
  for (const double count : {10.0, 0.0, 30.0}) EXPECT_EQ(take<double>(counts), count);
  EXPECT_TRUE(limits.empty() && counts.empty());
  EXPECT_THAT([&] { EventFile(dir.path() / "none", 1); }, throws({"none", "cannot be written"}));
}

// A number that is added to the metrics must not be left out of the event files.
TEST(EventFile, EveryNumberOfTheMetricsHasATag) {
  CollectionMetrics metrics;
  metrics.actions[0] = {{0.1, 3}, {1.0, 4}};
  size_t numbers = 0;
  const Json json = to_json(metrics);
  for (const auto& [field, value] : json.items())
    if (field != "collection" && field != "actions") numbers += value.is_array() ? value.size() : 1;
  metrics.reward = -2.5;
  metrics.gap = {0.1, 0.2, 0.3};
  std::map<std::string, double> found;
  for (const EventScalar& scalar : metric_scalars(metrics)) {
    EXPECT_TRUE(found.emplace(scalar.tag, scalar.value).second) << scalar.tag;
    // Own groups keep TensorBoard's page in order: a new field needs a line in the list of tags.
    if (scalar.tag != "perplexity" && scalar.tag != "budget_range_share") {
      EXPECT_NE(scalar.tag.find('/'), std::string::npos) << scalar.tag;
    }
  }
  EXPECT_EQ(found.size(), numbers);
  EXPECT_EQ(found.at("reward/mean"), -2.5);
  EXPECT_EQ(found.at("budget_gap/rho"), 0.2);
  const auto histograms = metric_histograms(metrics);
  EXPECT_EQ(histograms[0].tag, "actions/kappa");
  EXPECT_EQ(histograms[0].counts, (std::vector<double>{3, 4}));
}

TEST(RunLog, AResumedRunBeginsAnotherEventFile) {
  TemporaryDirectory dir;
  const auto collect = [](RunLog& log, int64_t collection) {
    CollectionMetrics metrics;
    metrics.collection = collection;
    log.append(metrics);
  };
  RunLog first(dir.path());
  first.begin(0, {{"blocks", 1}});
  EXPECT_TRUE(event_files(dir.path()).empty());
  collect(first, 1);
  collect(first, 2);
  EXPECT_EQ(event_files(dir.path()).size(), 1u);
  // The checkpoint knew of one collection: the second is made again.
  RunLog second(dir.path());
  second.begin(1, {{"blocks", 2}});
  collect(second, 2);
  const auto files = event_files(dir.path());
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(frames(read_file(files[0])).size(), 4u);
  const auto resumed = frames(read_file(files[1]));
  ASSERT_EQ(resumed.size(), 3u);
  EXPECT_EQ(parse(resumed[1]).numbers.at(2).at(0), 2);  // everything from there on is void
  EXPECT_EQ(read_json(dir.path() / "run.json")["blocks"], 2);
  // A run that begins anew leaves nothing of an earlier one.
  RunLog third(dir.path());
  third.begin(0, {});
  EXPECT_TRUE(event_files(dir.path()).empty());
}

TEST(ActionCounts, LevelsAreCountedPerAxis) {
  const ActionSpace space({0.1f, 1.0f}, {0.5f, 0.75f, 1.0f}, {5, 16});
  Schedule schedule;
  for (const auto& [kappa, rho, bits] :
       {std::array{0, 2, 1}, std::array{1, 2, 0}, std::array{1, 1, 0}})
    schedule.actions.push_back(space.index(kappa, rho, bits));
  const std::vector<Schedule> schedules(2, schedule);
  const auto counts = count_actions(space, schedules);
  EXPECT_EQ(counts[0], (std::vector<LevelCount>{{0.1, 2}, {1.0, 4}}));
  EXPECT_EQ(counts[1], (std::vector<LevelCount>{{0.5, 0}, {0.75, 2}, {1.0, 4}}));
  EXPECT_EQ(counts[2], (std::vector<LevelCount>{{5, 4}, {16, 2}}));
}

TEST(Metrics, ActionsComeBackAndMayBeMissing) {
  CollectionMetrics metrics;
  metrics.learning_rate = 0.25;
  metrics.actions[2] = {{5, 7}, {16, 9}};
  Json json = to_json(metrics);
  EXPECT_EQ(json["actions"]["bits"].dump(), "[[5.0,7],[16.0,9]]");
  EXPECT_EQ(metrics_from_json(json, "x").actions, metrics.actions);
  EXPECT_EQ(metrics_from_json(json, "x").learning_rate, 0.25);
  Json broken = json;
  broken["actions"]["rho"] = 3;
  EXPECT_THAT([&] { metrics_from_json(broken, "x"); }, throws({"x", "actions", "rho"}));
  broken["actions"]["rho"] = Json::array({Json::array({1})});
  EXPECT_THAT([&] { metrics_from_json(broken, "x"); }, throws({"x", "actions", "pairs"}));
  broken["actions"]["rho"] = Json::array({Json::array({0.5, -3})});
  EXPECT_THAT([&] { metrics_from_json(broken, "x"); }, throws({"x", "actions", "pairs"}));
  json.erase("actions");
  json.erase("learning_rate");
  EXPECT_TRUE(metrics_from_json(json, "x").actions[2].empty());
}

TEST(Metrics, WhatCannotBeNegativeIsNot) {
  CollectionMetrics metrics;
  metrics.reward = metrics.log_likelihood = metrics.loss = metrics.seconds_left = -1;
  const Json json = to_json(metrics);
  EXPECT_EQ(metrics_from_json(json, "x").reward, -1);
  for (const char* field : {"perplexity", "seconds", "seconds_update", "update", "steps"}) {
    Json broken = json;
    broken[field] = -5;
    EXPECT_THAT([&] { metrics_from_json(broken, "x"); },
                throws({"x: field", field, "is -5", "negative"}));
  }
}

}  // namespace
}  // namespace sol::test
