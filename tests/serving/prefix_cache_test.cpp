#include "serving/prefix_cache.h"

#include <numeric>

#include "support.h"

namespace sol {
namespace {

std::vector<int32_t> tokens_of(int n, int from = 0) {
  std::vector<int32_t> tokens(static_cast<size_t>(n));
  std::iota(tokens.begin(), tokens.end(), from);
  return tokens;
}

class PrefixCacheTest : public testing::Test {
 protected:
  std::unique_ptr<Sequence> computed(const std::vector<int32_t>& tokens) {
    auto sequence = model_->create({});
    ExtendItem item{sequence.get(), tokens, {}};
    model_->extend({&item, 1});
    return sequence;
  }
  void add(const std::vector<int32_t>& tokens) { cache_.add(tokens, computed(tokens)); }

  std::unique_ptr<FrozenModel> model_ =
      load_model(test::test_data() / "golden/tiny_tied_f32", {.precision = Precision::f32});
  PrefixCache cache_{*model_, 4};
};

TEST_F(PrefixCacheTest, SharesTheLongestCommonBeginning) {
  add(tokens_of(20));
  add(tokens_of(10, 100));
  auto prompt = tokens_of(12);
  prompt.push_back(999 % 300);
  EXPECT_EQ(cache_.match(prompt, 100), 12);
  EXPECT_EQ(cache_.match(prompt, 8), 8);
  EXPECT_EQ(cache_.match(prompt, 3), 0);  // shorter than what is worth it
  const auto shared = cache_.share(prompt, 8);
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->length(), 8);
  EXPECT_FALSE(cache_.share(tokens_of(9, 50), 9));
}

TEST_F(PrefixCacheTest, KeepsWhatIsLongerAndForgetsWhatWasNotUsed) {
  add(tokens_of(10));
  add(tokens_of(20));  // covers the first
  EXPECT_EQ(cache_.entries(), 1u);
  EXPECT_EQ(cache_.tokens(), 20);
  add(tokens_of(15));  // covered
  EXPECT_EQ(cache_.entries(), 1u);
  add(tokens_of(8, 100));
  add(tokens_of(8, 200));
  EXPECT_EQ(cache_.tokens(), 36);
  cache_.share(tokens_of(20), 18);
  cache_.shrink_to(30);  // the one at 100 was used longest ago
  EXPECT_EQ(cache_.tokens(), 28);
  EXPECT_EQ(cache_.match(tokens_of(8, 100), 8), 0);
  EXPECT_EQ(cache_.match(tokens_of(8, 200), 8), 8);
  cache_.shrink_to(0);
  EXPECT_EQ(cache_.entries(), 0u);
  EXPECT_EQ(model_->cache_use().blocks, 0u);
}

TEST_F(PrefixCacheTest, GivesBackItsBlocks) {
  add(tokens_of(40));
  const uint64_t kept = model_->cache_use().blocks;
  EXPECT_GT(kept, 0u);
  {
    const auto shared = cache_.share(tokens_of(40), 38);
    // Shared, but for the one that the shorter sequence ends in.
    EXPECT_LE(model_->cache_use().blocks, kept + 1);
  }
  cache_.shrink_to(0);
  EXPECT_EQ(model_->cache_use().blocks, 0u);
}

}  // namespace
}  // namespace sol
