#include "serving/http_server.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <system_error>
#include <thread>

#include "base/fail.h"
#include "serving/access.h"
#include "serving/api_key.h"
#include "serving/connection_server.h"
#include "serving/model_description.h"
#include "serving/page_files.h"
#include "serving/request_common.h"
#include "serving/request_json.h"
#include "serving/running_request.h"

namespace sol {
namespace {

constexpr const char* json_type = "application/json";
// How often a waiting request looks whether its client is still there.
constexpr std::chrono::milliseconds patience{100};

void answer(httplib::Response& response, const Json& json, int status = 200) {
  response.status = status;
  response.set_content(to_text(json), json_type);
}

void answer(httplib::Response& response, const ApiError& error) {
  if (error.retry_after() > 0)
    response.set_header("Retry-After", std::to_string(error.retry_after()));
  answer(response, error.to_json(), error.status());
}

bool is_page(const std::string& path) {
  return std::ranges::any_of(page_files(), [&](const PageFile& file) { return file.path == path; });
}

constexpr std::string_view model_route = "/v1/models/";  // and a name
constexpr size_t most_path_bytes = 1024;

bool names_model(const std::string& path) {
  return path.starts_with(model_route) && path.size() > model_route.size();
}

// Empty where there is no such path.
std::string allowed_methods(const std::string& path) {
  static const std::set<std::string> read{"/health", "/metrics", "/v1/models", "/tokenizer_info"};
  static const std::set<std::string> asked{"/tokenize", "/detokenize", "/v1/completions",
                                           "/v1/chat/completions"};
  if (asked.contains(path)) return "POST";
  return read.contains(path) || is_page(path) || names_model(path) ? "GET, HEAD" : "";
}

// httplib takes paths for regular expressions.
std::string as_pattern(std::string_view path) {
  std::string pattern;
  for (const char c : path) pattern += c == '.' ? "\\." : std::string(1, c);
  return pattern;
}

bool is_read(const std::string& method) {
  return method == "GET" || method == "HEAD";
}

// For logs, where a line must stay one.
std::string printable(std::string text) {
  for (char& c : text)
    if ((c >= 0 && c < ' ') || c == 0x7f) c = '?';
  return text;
}

// Gives the memory that a large body took back to the system: as JSON it is a hundred megabytes, of
// which the allocator would keep a copy for every few threads.
struct LargeBody {
  size_t bytes = 0;
  ~LargeBody() {
    if (bytes > 256 * 1024) malloc_trim(0);
  }
};

}  // namespace

struct HttpServer::Impl {
  Impl(const HttpOptions& http_options, Metrics& server_metrics)
      : options(http_options), metrics(server_metrics), server(limits()) {}

  ConnectionLimits limits() const {
    ConnectionLimits all;
    all.request = std::chrono::milliseconds(static_cast<int64_t>(options.request_seconds * 1e3));
    return all;
  }
  using Handler = std::function<void(const httplib::Request&, httplib::Response&)>;
  // A handler whose exceptions become errors in JSON.
  Handler guarded(Handler handler) {
    return [this, handler = std::move(handler)](const httplib::Request& request,
                                                httplib::Response& response) {
      try {
        handler(request, response);
      } catch (...) {
        answer(response, api_error_of(std::current_exception()));
      }
    };
  }
  void add_routes();
  void complete(httplib::Response& response, bool chat);
  httplib::Server::HandlerResponse before(const httplib::Request& request,
                                          httplib::Response& response) const;
  void describe_error(const httplib::Request& request, httplib::Response& response) const;
  void count(const std::string& method, const std::string& path, int status) const;
  void start();

  const ServedModel& model() const {
    const ServedModel* loaded = served.load();
    if (!loaded)
      throw ApiError(503, "server_error", "loading", "the model is being loaded; try again soon");
    if (refusing) throw shutting_down();
    return *loaded;
  }
  // What `use` makes of the request's body.
  template <typename Use>
  auto with_body(const Use& use) const;

  HttpOptions options;
  AccessRules access;
  Metrics& metrics;
  ConnectionServer server;
  std::atomic<const ServedModel*> served{nullptr};
  std::atomic<Scheduler*> scheduler{nullptr};
  std::atomic<bool> refusing{false};
  std::atomic<uint64_t> requests{0};
  std::atomic<int> unfinished{0};
  std::atomic<bool> listening{true};
  std::thread thread;
};

template <typename Use>
auto HttpServer::Impl::with_body(const Use& use) const {
  Connection& connection = *Connection::current();
  const std::string* type = connection.head().find("content-type");
  require_json_type(type ? *type : "");
  LargeBody large;
  const std::string text = connection.read_body(options.body_limit);
  large.bytes = text.size();
  const RequestJson json(text);
  return use(*json);
}

httplib::Server::HandlerResponse HttpServer::Impl::before(const httplib::Request& request,
                                                          httplib::Response& response) const {
  const RequestHead& head = Connection::current()->head();
  try {
    // The routes' patterns take stack by the character.
    if (request.path.size() > most_path_bytes)
      throw ApiError(404, "invalid_request_error", "not_found",
                     fmt::format("no {} here", shortened(request.path)));
    const std::string* encoding = head.find("content-encoding");
    if (encoding && head.has_body() && !equal_ignoring_case(*encoding, "identity"))
      throw ApiError(415, "invalid_request_error", "unsupported_encoding",
                     "a request's body must not be compressed");
    check_access(head, access,
                 is_read(request.method) && (request.path == "/health" || is_page(request.path)));
    return httplib::Server::HandlerResponse::Unhandled;
  } catch (const ApiError& error) {
    if (error.status() == 401) response.set_header("WWW-Authenticate", "Bearer");
    answer(response, error);
    return httplib::Server::HandlerResponse::Handled;
  }
}

// Errors that httplib finds itself have no body yet.
void HttpServer::Impl::describe_error(const httplib::Request& request,
                                      httplib::Response& response) const {
  if (!response.body.empty()) return;
  const auto describe = [&](const char* code, const std::string& message) {
    answer(response, ApiError(response.status, "invalid_request_error", code, message));
  };
  if (response.status != 404) return describe("bad_request", "the request cannot be answered");
  const std::string allowed = allowed_methods(request.path);
  if (allowed.empty())
    return describe("not_found", fmt::format("no {} {} here; docs/http-api.md lists what there is",
                                             shortened(request.method), shortened(request.path)));
  response.status = 405;
  response.set_header("Allow", allowed);
  describe("method_not_allowed",
           fmt::format("{} is not for {}", shortened(request.method), shortened(request.path)));
}

void HttpServer::Impl::count(const std::string& method, const std::string& path, int status) const {
  // Other paths would make a line each, as many as a client likes.
  metrics.count_request(names_model(path)               ? "/v1/models/NAME"
                        : allowed_methods(path).empty() ? "other"
                                                        : path,
                        status);
  const auto shown = [](const std::string& text) { return text.empty() ? "-" : printable(text); };
  if (options.log) options.log(fmt::format("{} {} {}", shown(method), shown(path), status));
}

void HttpServer::Impl::complete(httplib::Response& response, bool chat) {
  const ServedModel& serving = model();
  // Each request is a party of its own where it names no user.
  const Party party = ++requests;
  CompletionRequest wanted = with_body([&](const Json& json) {
    return chat ? read_chat_completion(json, serving, party)
                : read_completion(json, serving, party);
  });
  const bool stream = wanted.stream;
  const auto running =
      std::make_shared<RunningRequest>(std::move(wanted), serving, *scheduler.load(), unfinished);
  if (stream) {
    response.set_header("Cache-Control", "no-cache");
    // One that is not done has the next piece to wait for.
    const auto next = [events = EventStream(running)](size_t, httplib::DataSink& sink) mutable {
      const std::string text = events.next(patience);
      if (!sink.is_writable() || (!text.empty() && !sink.write(text.data(), text.size())))
        return false;
      if (events.ended()) sink.done();
      return true;
    };
    // Old clients know no chunks: the end of the connection is the end of the answer.
    if (Connection::current()->head().http_1_0)
      response.set_content_provider("text/event-stream", next);
    else
      response.set_chunked_content_provider("text/event-stream", next);
    return;
  }
  while (!running->response().complete()) {
    running->wait(patience);
    if (Connection::current()->closed()) {
      response.status = 499;  // for the log
      Connection::current()->give_up();
      return;
    }
  }
  answer(response, running->response().whole());
}

void HttpServer::Impl::add_routes() {
  server.Get("/health", guarded([this](const auto&, auto& response) {
               model();
               answer(response, Json{{"status", "ok"}});
             }));
  server.Get("/metrics", guarded([this](const auto&, auto& response) {
               response.set_content(metrics.prometheus(), "text/plain; version=0.0.4");
             }));
  server.Get("/v1/models", guarded([this](const auto&, auto& response) {
               answer(response, describe_models(model()));
             }));
  server.Get(std::string(model_route) + "([\\s\\S]+)",  // a '.' would be no line end
             guarded([this](const httplib::Request& request, auto& response) {
               check_model_name(request.matches[1].str(), model());
               answer(response, describe_model(model()));
             }));
  server.Get("/tokenizer_info", guarded([this](const auto&, auto& response) {
               answer(response, describe_tokenizer(model()));
             }));
  server.Post("/tokenize", guarded([this](const auto&, auto& response) {
                const ServedModel& serving = model();
                answer(response,
                       with_body([&](const Json& json) { return tokenize(json, serving); }));
              }));
  server.Post("/detokenize", guarded([this](const auto&, auto& response) {
                const ServedModel& serving = model();
                answer(response,
                       with_body([&](const Json& json) { return detokenize(json, serving); }));
              }));
  for (const bool chat : {false, true})
    server.Post(chat ? "/v1/chat/completions" : "/v1/completions",
                guarded([this, chat](const auto&, auto& response) { complete(response, chat); }));
  for (const PageFile& file : page_files())
    server.Get(as_pattern(file.path), [file](const auto&, httplib::Response& response) {
      response.set_header("Content-Security-Policy", "default-src 'self'");
      // A new program must not meet an old one's files.
      response.set_header("Cache-Control", "no-cache");
      response.set_content(file.content.data(), file.content.size(), std::string(file.type));
    });
}

HttpServer::HttpServer(const HttpOptions& options, Metrics& metrics)
    : impl_(std::make_unique<Impl>(options, metrics)) {
  if (!options.api_key.empty()) require_sendable_key(options.api_key, "the API key");
  httplib::Server& server = impl_->server;
  server.set_tcp_nodelay(true);
  // httplib's default lets a second server listen on the same port, and each would get half of the
  // requests.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  server.set_default_headers({{"X-Content-Type-Options", "nosniff"}});
  server.set_pre_routing_handler([impl = impl_.get()](const auto& request, auto& response) {
    return impl->before(request, response);
  });
  // Outside of a guarded handler there is little that may throw, but memory runs out anywhere.
  server.set_exception_handler(
      [](const auto&, httplib::Response& response, const std::exception_ptr& error) {
        answer(response, api_error_of(error));
      });
  server.set_error_handler(
      httplib::Server::Handler([impl = impl_.get()](const auto& request, auto& response) {
        impl->describe_error(request, response);
      }));
  // What httplib says about the connection by itself is not what ours do.
  server.set_post_routing_handler([](const auto&, httplib::Response& response) {
    for (const char* name : {"Connection", "Keep-Alive", "Accept-Ranges"})
      response.headers.erase(name);
    if (Connection::current()->closes()) response.set_header("Connection", "close");
  });
  server.set_logger([impl = impl_.get()](const auto& request, const auto& response) {
    impl->count(request.method, request.path, response.status);
  });
  impl_->add_routes();
}

HttpServer::~HttpServer() {
  stop();
}

int HttpServer::start() {
  const HttpOptions& options = impl_->options;
  const int port = options.port == 0 ? impl_->server.bind_to_any_port(options.host)
                   : impl_->server.bind_to_port(options.host, options.port) ? options.port
                                                                            : -1;
  if (port < 0)
    fail(
        "cannot listen on {}:{}: the port is taken, needs other rights, or the host is not this "
        "machine; choose others with --host and --port",
        options.host, options.port);
  impl_->start();
  return port;
}

void HttpServer::Impl::start() {
  access = {options.api_key, server.bound_to_loopback(), options.host};
  server.open(
      options.threads,
      [](const RequestHead& head) { return is_read(head.method) && head.path == "/health"; },
      [this](const RequestHead& head, int status) { count(head.method, head.path, status); });
  try {
    thread = std::thread([this] {
      server.listen_after_bind();
      listening = false;
    });
  } catch (const std::system_error&) {
    fail(
        "the system gives no thread to listen on; raise its limit of processes or of memory "
        "(ulimit -u, ulimit -v, or the container's)");
  }
}

void HttpServer::serve(const ServedModel& served, Scheduler& scheduler) {
  impl_->scheduler = &scheduler;
  impl_->served = &served;
}

bool HttpServer::listening() const {
  return impl_->listening;
}

void HttpServer::refuse() {
  impl_->refusing = true;
  impl_->server.end_reading();
}

void HttpServer::stop() {
  if (!impl_->thread.joinable()) return;
  // stop() does nothing before listening has begun.
  while (listening() && !impl_->server.is_running())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  // httplib cuts off what is still being sent: the last words of requests that were given up.
  for (int i = 0; i < 100 && impl_->unfinished > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  impl_->server.stop();
  impl_->thread.join();
  impl_->server.close_connections();
}

}  // namespace sol
