#include "base/hash.h"

#include <gtest/gtest.h>

namespace sol {
namespace {

TEST(Hash128, IsXxh3WhateverThePieces) {
  EXPECT_EQ(hash_128(""), "99aa06d3014798d86001c324468d497f");  // published for the empty input
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * i % 251);
  Hash128 hash;
  for (size_t begin = 0; begin < text.size(); begin += 37)
    hash.add(std::string_view(text).substr(begin, 37));
  EXPECT_EQ(hash.hexadecimal(), hash_128(text));
  EXPECT_NE(hash_128(text), hash_128(text.substr(1)));
}

}  // namespace
}  // namespace sol
