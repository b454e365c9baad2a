#include "serving/chunked_decoder.h"

#include <gtest/gtest.h>

#include "serving/api_error.h"

namespace sol {
namespace {

struct Decoded {
  std::string data;
  size_t taken = 0;
  bool done = false;
};

// In pieces of so many bytes.
Decoded decode(const std::string& bytes, size_t piece) {
  ChunkedDecoder decoder;
  Decoded decoded;
  while (decoded.taken < bytes.size() && !decoder.done())
    decoded.taken +=
        decoder.take(std::string_view(bytes).substr(decoded.taken, piece), decoded.data);
  decoded.done = decoder.done();
  return decoded;
}

TEST(ChunkedDecoder, TakesABodyAndNoMore) {
  const std::string next = "GET / HTTP/1.1\r\n";
  const std::string body = "5\r\nhello\r\n006\r\n world\r\n0\r\n\r\n";
  for (const size_t piece : {1u, 2u, 3u, 1000u}) {
    const Decoded decoded = decode(body + next, piece);
    EXPECT_TRUE(decoded.done);
    EXPECT_EQ(decoded.data, "hello world");
    EXPECT_EQ(decoded.taken, body.size());
  }
  const std::string rich = "A;x;y=z\r\n0123456789\r\n00\r\nX-Sum: 1\r\nY:\r\n\r\n";
  for (const size_t piece : {1u, 7u, 1000u}) {
    const Decoded decoded = decode(rich + next, piece);
    EXPECT_EQ(decoded.data, "0123456789");
    EXPECT_EQ(decoded.taken, rich.size());
  }
  EXPECT_EQ(decode("0\r\n\r\n" + next, 1000).taken, 5u);
}

TEST(ChunkedDecoder, IsNotDoneBeforeTheEnd) {
  const std::string body = "2\r\nab\r\n0\r\n\r\n";
  for (size_t size = 0; size < body.size(); ++size)
    EXPECT_FALSE(decode(body.substr(0, size), 1000).done) << size;
}

TEST(ChunkedDecoder, RefusesWhatReadersTakeDifferently) {
  for (const std::string bytes : {"0x5\r\nhello\r\n",
                                  "+5\r\nhello\r\n",
                                  "-5\r\nhello\r\n",
                                  "5junk\r\nhello\r\n",
                                  "5 \r\nhello\r\n",
                                  " 5\r\nhello\r\n",
                                  "\r\nhello\r\n",
                                  "g\r\n",
                                  "5\nhello\r\n",
                                  "5\rhello",
                                  "5\r\nhello!\r\n",
                                  "5\r\nhello\n0\r\n",
                                  "5\r\nhello0\r\n",
                                  "5;a\nhello\r\n",
                                  "5;a\rb\r\n",
                                  "0\r\n\n",
                                  "0\r\nX: 1\n\r\n",
                                  "0\r\n\rX",
                                  "7fffffffffffffff\r\n",
                                  "fffffffffffffffff\r\n",
                                  "0000000000000005\r\nhello\r\n"}) {
    try {
      (void)decode(bytes, 3);
      ADD_FAILURE() << bytes;
    } catch (const ApiError& error) {
      EXPECT_EQ(error.status(), 400);
    }
  }
  // Nobody reads extensions and trailers, so they have little room.
  EXPECT_THROW((void)decode("1;" + std::string(70000, 'x'), 4096), ApiError);
  EXPECT_THROW((void)decode("0\r\n" + std::string(70000, 'x'), 4096), ApiError);
}

}  // namespace
}  // namespace sol
