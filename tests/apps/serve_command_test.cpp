// sol serve and sol calibrate as processes; what the server answers is tests/serving's.
#include <arpa/inet.h>
#include <httplib.h>
#include <sys/socket.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/file_io.h"
#include "base/json.h"
#include "made_controller.h"

namespace sol::test {
namespace {

// What the program under test writes stands in a file: it runs until it is told to end.
class ServeProcess {
 public:
  // `hangup`: what becomes of SIGHUP before the program begins.
  explicit ServeProcess(std::vector<std::string> arguments, sighandler_t hangup = SIG_DFL) {
    arguments.insert(arguments.begin(), {"serve", "--port", "0"});
    const std::string out = (directory_.path() / "out").string();
    process_ = fork();
    if (process_ == 0) {
      const int file = open(out.c_str(), O_CREAT | O_WRONLY, 0600);
      dup2(file, 1);
      dup2(file, 2);
      std::signal(SIGHUP, hangup);
      std::vector<char*> argv{const_cast<char*>(SOL_BINARY)};
      for (const std::string& argument : arguments)
        argv.push_back(const_cast<char*>(argument.c_str()));
      argv.push_back(nullptr);
      execv(SOL_BINARY, argv.data());
      _exit(126);
    }
  }
  ~ServeProcess() {
    if (process_ > 0) end(SIGKILL);
  }

  std::string output() const {
    const auto path = directory_.path() / "out";
    return path_exists(path) ? read_file(path) : "";
  }
  // Waits for a line of output; the text behind `begin` on it.
  std::string line(const std::string& begin) const {
    for (int i = 0; i < 600; ++i) {
      const std::string text = output();
      const size_t at = text.find(begin);
      const size_t stop = text.find('\n', at);
      if (at != std::string::npos && stop != std::string::npos)
        return text.substr(at + begin.size(), stop - at - begin.size());
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return "";
  }
  httplib::Client client() const {
    httplib::Client client(line("listening on "));
    client.set_read_timeout(60);
    for (int i = 0; i < 600; ++i) {
      const auto health = client.Get("/health");
      if (health && health->status == 200) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return client;
  }
  void send(int signal) const { kill(process_, signal); }
  int end(int signal) {
    send(signal);
    int status = 0;
    waitpid(std::exchange(process_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  TemporaryDirectory directory_;
  pid_t process_ = -1;
};

// read_file() wants a file's size beforehand, which those of /proc do not have.
std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

const std::string controller = (source_dir() / "models/default/controllers/2l-harsh").string();

TEST(ServeCommand, AnswersUntilToldToEndAndLetsRunningRequestsFinish) {
  ServeProcess serve({"-c", controller, "--log"});
  auto client = serve.client();
  const auto answer = client.Post(
      "/v1/completions", R"({"prompt": "The sea", "max_tokens": 8, "sol": {"budget": 0.6}})",
      "application/json");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200) << answer->body;

  std::string stream;
  std::atomic<bool> begun{false};
  std::thread reader([&] {
    auto other = serve.client();
    httplib::Request request;
    request.method = "POST";
    request.path = "/v1/completions";
    request.headers = {{"Content-Type", "application/json"}};
    request.body =
        R"({"prompt": "The sea", "max_tokens": 300, "ignore_eos": true, "stream": true})";
    request.content_receiver = [&](const char* data, size_t size, uint64_t, uint64_t) {
      stream.append(data, size);
      begun = true;
      return true;
    };
    other.send(request);
  });
  while (!begun) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(serve.end(SIGTERM), 0);
  reader.join();
  EXPECT_NE(stream.find("data: [DONE]"), std::string::npos);
  EXPECT_NE(serve.output().find("POST /v1/completions 200"), std::string::npos) << serve.output();
  EXPECT_NE(serve.output().find("shutting down"), std::string::npos);
}

TEST(ServeCommand, AClosedTerminalEndsItUnlessStartedWithNohup) {
  {
    ServeProcess serve({"--latency", "off"});
    ASSERT_TRUE(serve.client().Get("/health"));
    EXPECT_EQ(serve.end(SIGHUP), 0);
    EXPECT_NE(serve.output().find("shutting down"), std::string::npos) << serve.output();
  }
  ServeProcess serve({"--latency", "off"}, SIG_IGN);
  auto client = serve.client();
  serve.send(SIGHUP);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const auto health = client.Get("/health");
  ASSERT_TRUE(health);
  EXPECT_EQ(health->status, 200);
  EXPECT_EQ(serve.end(SIGTERM), 0);
}

// However long a request may take, and whatever those that run are given.
TEST(ServeCommand, RequestsThatAreNotAllThereDoNotKeepItFromEnding) {
  ServeProcess serve({"--latency", "off", "--request-seconds", "3000"});
  (void)serve.client();
  const std::string port = serve.line("listening on http://127.0.0.1:");
  std::vector<int> sockets;
  for (const std::string& begin :
       {std::string(), std::string("GET /health HTTP/1.1\r\nHost: loc"),
        std::string(
            "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Content-Length: 20\r\n\r\n{")}) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(std::stoi(port)));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockets.push_back(socket(AF_INET, SOCK_STREAM, 0));
    ASSERT_EQ(connect(sockets.back(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_EQ(write(sockets.back(), begin.data(), begin.size()),
              static_cast<ssize_t>(begin.size()));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(serve.end(SIGTERM), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  for (const int socket : sockets) close(socket);
}

TEST(ServeCommand, SaysAnIpv6AddressAsAUrl) {
  const std::filesystem::path addresses = "/proc/net/if_inet6";
  if (!path_exists(addresses) ||
      text_of(addresses).find("00000000000000000000000000000001 ") == std::string::npos)
    GTEST_SKIP() << "this machine has no IPv6";
  ServeProcess serve({"--latency", "off", "--host", "::1"});
  EXPECT_NE(serve.line("listening on http://[::1]:"), "") << serve.output();
}

TEST(ServeCommand, WhereItsAddressCannotBePrintedSaysWhich) {
  const RunResult result =
      run_program("/bin/sh", {"-c", "exec " SOL_BINARY " serve --port 0 --latency off >/dev/full"});
  EXPECT_EQ(result.code, 1);
  for (const char* words : {"http://127.0.0.1:", "standard output", "No space left"})
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
}

TEST(ServeCommand, WithoutThreadsForItsConnectionsItDoesNotStart) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "an address sanitizer needs more address space than this test leaves";
#endif
  // Of more than a thousand threads' stacks, a few have room.
  const RunResult result =
      run_program("/bin/sh", {"-c", "ulimit -s 8192; ulimit -v 3000000; exec " SOL_BINARY
                                    " serve --port 0 --latency off --threads 1 --queue 1000"});
  EXPECT_EQ(result.code, 1) << testing::PrintToString(result);
  for (const char* words : {"threads", "ulimit", "--queue"})
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
}

TEST(ServeCommand, SaysWhatIsWrongBeforeItServes) {
  const auto fails = [](std::vector<std::string> arguments, const std::vector<std::string>& words) {
    arguments.insert(arguments.begin(), "serve");
    const RunResult result = run_sol(arguments);
    EXPECT_TRUE(result.code == 1 || result.code == 2) << testing::PrintToString(result);
    for (const std::string& word : words)
      EXPECT_NE(result.err.find(word), std::string::npos) << word << " in " << result.err;
  };
  fails({"--port", "70000"}, {"--port"});
  fails({"--port", "0", "--reasoning-effort", "low=2"}, {"low=2", "net keep-rate"});
  fails({"--port", "0", "--reasoning-effort", "some=0.5"}, {"some=0.5"});
  fails({"--port", "0", "--context", "1000000"}, {"1000000", "positions"});
  fails({"--port", "0", "-m", "/nowhere"}, {"/nowhere"});
  fails({"--port", "0", "--host", "203.0.113.7"}, {"203.0.113.7"});
  fails({"--port", "0", "-c", controller, "--horizon", "8"}, {"--horizon"});
  fails({"--port", "0", "--costs", "/nowhere.json"}, {"/nowhere.json"});
  fails({"--port", "0", "--context", "512", "--cache-tokens", "130", "--latency", "off"},
        {"--context 512", "--cache-tokens", "128"});
  fails({"--port", "0", "--reasoning-effort", "low= 0.5"}, {"net keep-rate"});
  const std::string weights = (source_dir() / "models/default/model.safetensors").string();
  fails({"--port", "0", "--chat-template", weights}, {weights, "is no text"});
  const TemporaryDirectory directory;
  // A controller without a frontier cannot say what a net keep-rate means, be it all.
  const std::string unmeasured = (directory.path() / "unmeasured").string();
  Controller made = made_controller(default_fingerprint());
  made.set_frontier({});
  made.save(unmeasured);
  fails({"--port", "0", "-c", unmeasured, "--latency", "off", "--reasoning-effort", "high=1.0"},
        {"--reasoning-effort", "frontier"});
  const std::string broken = (directory.path() / "chat.jinja").string();
  write_file_atomically(broken, "{% if %}");
  fails({"--port", "0", "--chat-template", broken}, {broken});
  // Before anybody is told that the server listens.
  for (const std::string& file : {weights, broken})
    EXPECT_EQ(run_sol({"serve", "--port", "0", "--chat-template", file}).out, "");
  EXPECT_EQ(run_sol({"serve", "--port", "0", "-c", directory.path().string()}).out, "");
  fails({"--port", "0", "--api-key", "a b"}, {"--api-key", "a space"});
  fails({"--port", "0", "--api-key", ""}, {"--api-key", "empty"});
}

TEST(ServeCommand, NeedsADescriptorForEachConnection) {
  const RunResult result =
      run_program("/bin/sh", {"-c", "ulimit -n 64; exec " SOL_BINARY " serve --port 0"});
  EXPECT_EQ(result.code, 1);
  for (const char* words : {"open files", "allows 64", "ulimit -n", "--queue"})
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
}

TEST(ServeCommand, TakesItsKeyFromTheEnvironment) {
  const auto status = [](const ServeProcess& serve, const char* key) {
    const auto answer =
        serve.client().Get("/v1/models", {{"Authorization", std::string("Bearer ") + key}});
    return answer ? answer->status : 0;
  };
  for (const char* variable : {"secret", "secret\n", "secret\r\n"}) {
    setenv("SOL_API_KEY", variable, 1);
    const ServeProcess serve({"--latency", "off"});
    EXPECT_EQ(status(serve, "secret"), 200) << variable;
    EXPECT_EQ(status(serve, "other"), 401) << variable;
  }
  // A key that is nothing but the end of a line is no key, and no reason to ask for none.
  for (const char* variable : {"", "\n", "secret\n\n", " secret"}) {
    setenv("SOL_API_KEY", variable, 1);
    const RunResult result = run_sol({"serve", "--port", "0"});
    EXPECT_EQ(result.code, 1) << variable;
    EXPECT_NE(result.err.find("SOL_API_KEY"), std::string::npos) << result.err;
  }
  unsetenv("SOL_API_KEY");
}

// What a small cache cannot hold is not offered, and nobody is refused for not having asked.
TEST(ServeCommand, AChatWithoutALimitFitsASmallCache) {
  const std::string chat_template = (source_dir() / "tests/page/chat.jinja").string();
  const ServeProcess serve(
      {"--latency", "off", "--cache-tokens", "130", "--chat-template", chat_template});
  auto client = serve.client();
  const auto post = [&](const char* path, const char* body) {
    const auto answer = client.Post(path, body, "application/json");
    return answer ? std::pair(answer->status, Json::parse(answer->body)) : std::pair(0, Json());
  };
  const auto [status, answer] =
      post("/v1/chat/completions",
           R"({"messages": [{"role": "user", "content": "hi"}], "ignore_eos": true})");
  ASSERT_EQ(status, 200) << answer;
  EXPECT_EQ(answer["usage"]["total_tokens"], 128) << answer;
  const auto models = client.Get("/v1/models");
  ASSERT_TRUE(models);
  EXPECT_EQ(Json::parse(models->body)["data"][0]["sol"]["context"], 128);
  const auto [too_much, error] =
      post("/v1/completions", R"({"prompt": "The sea", "max_tokens": 128})");
  EXPECT_EQ(too_much, 400);
  EXPECT_EQ(error["error"]["param"], "max_tokens") << error;
  EXPECT_EQ(post("/v1/completions", R"({"prompt": [70, 71], "max_tokens": 126})").first, 200);
}

TEST(CalibrateCommand, SaysWhatIsWrongBeforeItMeasures) {
  const TemporaryDirectory directory;
  const std::string file = (directory.path() / "costs.json").string();
  // Nobody waits for so many repetitions.
  const std::vector<std::string> begin{"calibrate", "-o", file, "--repetitions", "100000000"};
  const auto fails = [&](std::vector<std::string> arguments, const char* words, int code = 1) {
    arguments.insert(arguments.begin(), begin.begin(), begin.end());
    const RunResult result = run_sol(arguments);
    EXPECT_EQ(result.code, code) << testing::PrintToString(result);
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
    EXPECT_FALSE(path_exists(file));
  };
  fails({"--context", "512,64"}, "64 follows 512");
  fails({"--context", "64,64"}, "64 follows 64");
  fails({"--context", "64,99999"}, "99999");
  fails({"--context", "1"}, "from 2 to", 2);
  for (const char* lengths : {"16,,36", ",36", "16,", "16, ,36"})
    fails({"--context", lengths}, "--context: ", 2);
  fails({"--horizon", "100000"}, "100000 steps");
}

TEST(CalibrateCommand, MeasuresWhatServeReads) {
  const TemporaryDirectory directory;
  const std::string file = (directory.path() / "costs.json").string();
  const RunResult measured = run_sol(
      {"calibrate", "-c", controller, "-o", file, "--context", "32, 128", "--repetitions", "5"});
  ASSERT_EQ(measured.code, 0) << testing::PrintToString(measured);
  EXPECT_NE(measured.out.find("dense ms"), std::string::npos);
  {
    ServeProcess serve({"-c", controller, "--costs", file});
    const auto models = serve.client().Get("/v1/models");
    ASSERT_TRUE(models);
    EXPECT_GT(Json::parse(models->body)["data"][0]["sol"]["latency"]["dense_ms"], 0.0);
    EXPECT_EQ(serve.end(SIGINT), 0);
  }
  // For another horizon, and measured on something else.
  RunResult other = run_sol({"serve", "--port", "0", "--costs", file, "--horizon", "8"});
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.err.find("16 steps"), std::string::npos) << other.err;
  Json table = Json::parse(read_file(file));
  table["run"]["threads"] = 77;
  write_file_atomically(file, table.dump());
  other = run_sol({"serve", "--port", "0", "-c", controller, "--costs", file});
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.err.find("threads"), std::string::npos) << other.err;
}

}  // namespace
}  // namespace sol::test
