// Models whose weights lie in memory that processes share: here two models of one process, of which
// the second one opens what the first one made.
#include <gmock/gmock.h>

#include "base/shared_memory.h"
#include "sol/error.h"
#include "sol/frozen_model.h"
#include "support.h"
#include "throws.h"

namespace sol::test {
namespace {

std::vector<float> logits_of(FrozenModel& model) {
  const auto sequence = model.create({});
  const std::vector<int32_t> tokens{1, 5, 9, 13, 2, 8};
  std::vector<float> logits(static_cast<size_t>(model.config().vocab_size));
  ExtendItem item{.sequence = sequence.get(), .tokens = tokens, .wanted = {}};
  item.wanted = {{tokens.size() - 1, {.logits = logits.data()}}};
  model.extend({&item, 1});
  return logits;
}

TEST(SharedWeightsTest, AModelComputesTheSameFromSharedWeights) {
  const auto dir = test_data() / "golden" / "tiny_untied_f32";
  for (const WeightFormat format : {WeightFormat::automatic, WeightFormat::int8}) {
    for (const Precision precision : {Precision::f32, Precision::bf16}) {
      const ModelOptions options{.precision = precision, .weights = format};
      const auto alone = load_model(dir, options);
      ModelOptions creating = options, opening = options;
      creating.shared_weights = SharedMemory::create();
      const auto first = load_model(dir, creating);
      opening.shared_weights = SharedMemory::open(creating.shared_weights->path());
      const auto second = load_model(dir, opening);
      EXPECT_EQ(logits_of(*first), logits_of(*alone));
      EXPECT_EQ(logits_of(*second), logits_of(*alone));
      EXPECT_EQ(second->parameter_count(), alone->parameter_count());
    }
  }
}

TEST(SharedWeightsTest, OthersMustWantTheSame) {
  const auto dir = test_data() / "golden" / "tiny_untied_f32";
  ModelOptions creating{.precision = Precision::f32, .weights = WeightFormat::int8};
  creating.shared_weights = SharedMemory::create();
  const auto first = load_model(dir, creating);
  ModelOptions opening{.precision = Precision::f32};
  opening.shared_weights = SharedMemory::open(creating.shared_weights->path());
  EXPECT_THAT([&] { load_model(dir, opening); },
              throws({"shared weights", "int8 weights", "f32 weights"}));
}

}  // namespace
}  // namespace sol::test
