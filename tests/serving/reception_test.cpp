#include "serving/reception.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>

namespace sol {
namespace {

using std::chrono::milliseconds;

// The client's end of a connection to a reception.
class Client {
 public:
  explicit Client(Reception& reception) {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    socket_ = ends[0];
    reception.add(ends[1]);
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void send(const std::string& text) {
    EXPECT_EQ(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // What arrives next; empty when the connection has ended, "-" when nothing came in time.
  std::string next(milliseconds patience = milliseconds(5000)) {
    pollfd waited{socket_, POLLIN, 0};
    if (poll(&waited, 1, static_cast<int>(patience.count())) == 0) return "-";
    std::array<char, 100> buffer;
    const ssize_t count = recv(socket_, buffer.data(), buffer.size(), 0);
    return count <= 0 ? "" : std::string(buffer.data(), static_cast<size_t>(count));
  }

 private:
  int socket_;
};

std::string request(const std::string& path, const std::string& more = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: a\r\n" + more + "\r\n";
}

// Answers with the path; "/slow" once it is told to.
struct Answering {
  std::atomic<bool> go_on{false};
  std::atomic<int> slow{0};

  Reception::Handlers handlers() {
    return {[this](Connection& connection) {
              const std::string& path = connection.head().path;
              if (path == "/slow") {
                ++slow;
                while (!go_on) std::this_thread::sleep_for(milliseconds(1));
              }
              connection.write(path.data(), path.size());
            },
            [](const RequestHead& head) { return head.path == "/quick"; },
            [](Connection& connection, const ApiError& error) {
              const std::string status = std::to_string(error.status());
              connection.write(status.data(), status.size());
            }};
  }
  void wait_for(int count) const {
    while (slow < count) std::this_thread::sleep_for(milliseconds(1));
  }
};

ReceptionOptions options(int workers) {
  ReceptionOptions all;
  all.workers = workers;
  all.patience = milliseconds(50);
  return all;
}

TEST(Reception, AnswersOneRequestAfterTheOther) {
  const Ending ending;
  Answering answering;
  Reception reception(options(1), answering.handlers(), ending);
  Client client(reception);
  client.send(request("/a"));
  EXPECT_EQ(client.next(), "/a");
  client.send("\r\n" + request("/b") + "GET /c HT");
  EXPECT_EQ(client.next(), "/b");
  EXPECT_EQ(client.next(milliseconds(20)), "-");
  client.send("TP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.next(), "/c");
  EXPECT_EQ(client.next(), "");
}

TEST(Reception, RefusesWhatNoWorkerHasTimeForButAnswersTheQuick) {
  const Ending ending;
  Answering answering;
  Reception reception(options(2), answering.handlers(), ending);
  Client first(reception), second(reception), third(reception), fourth(reception);
  first.send(request("/slow"));
  second.send(request("/slow"));
  answering.wait_for(2);
  third.send(request("/a"));
  EXPECT_EQ(third.next(), "503");
  EXPECT_EQ(third.next(), "");
  fourth.send(request("/quick"));
  EXPECT_EQ(fourth.next(), "/quick");
  answering.go_on = true;
  EXPECT_EQ(first.next(), "/slow");
  EXPECT_EQ(second.next(), "/slow");
  first.send(request("/a"));
  EXPECT_EQ(first.next(), "/a");
}

TEST(Reception, OfTooManyTheFirstLeave) {
  const Ending ending;
  Answering answering;
  ReceptionOptions few = options(1);
  few.most_waiting = 2;
  Reception reception(few, answering.handlers(), ending);
  Client first(reception), second(reception), third(reception);
  EXPECT_EQ(first.next(), "");
  third.send(request("/a"));
  EXPECT_EQ(third.next(), "/a");
  second.send(request("/b"));
  EXPECT_EQ(second.next(), "/b");
}

TEST(Reception, GivesUpWhoSaysNothingOrNotAll) {
  const Ending ending;
  Answering answering;
  ReceptionOptions hasty = options(1);
  hasty.limits.idle = milliseconds(50);
  hasty.limits.request = milliseconds(100);
  Reception reception(hasty, answering.handlers(), ending);
  Client idle(reception), slow(reception), wrong(reception);
  slow.send("GET /");
  wrong.send("nonsense\n");
  EXPECT_EQ(wrong.next(), "400");
  EXPECT_EQ(wrong.next(), "");
  EXPECT_EQ(idle.next(), "");
  EXPECT_EQ(slow.next(), "408");
  EXPECT_EQ(slow.next(), "");
}

TEST(Reception, EndsOnceWhatItAnswersIsAnswered) {
  const Ending ending;
  Answering answering;
  Reception reception(options(2), answering.handlers(), ending);
  Client busy(reception), waiting(reception);
  busy.send(request("/slow"));
  answering.wait_for(1);
  waiting.send("GET /a HTTP");
  std::thread end([&] { reception.stop(); });
  answering.go_on = true;
  EXPECT_EQ(busy.next(), "/slow");
  EXPECT_EQ(busy.next(), "");
  EXPECT_EQ(waiting.next(), "");
  end.join();
}

}  // namespace
}  // namespace sol
