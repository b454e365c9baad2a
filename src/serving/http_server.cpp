#include "serving/http_server.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "base/fail.h"
#include "serving/api_key.h"
#include "serving/connection.h"
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

// Takes as long for a wrong key whatever it has in common with the right one.
bool same_secret(const std::string& a, const std::string& b) {
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size() && !b.empty(); ++i)
    difference |= static_cast<unsigned char>(a[i] ^ b[i % b.size()]);
  return difference == 0;
}

bool is_page(const std::string& path) {
  return std::ranges::any_of(page_files(), [&](const PageFile& file) { return file.path == path; });
}

constexpr std::string_view model_route = "/v1/models/";  // and a name

bool is_route(const std::string& path) {
  static const std::set<std::string> routes{
      "/health",   "/metrics",    "/v1/models",      "/tokenizer_info",
      "/tokenize", "/detokenize", "/v1/completions", "/v1/chat/completions"};
  return routes.contains(path) || is_page(path) || path.starts_with(model_route);
}

bool takes_json(const httplib::Request& request) {
  static const std::set<std::string> paths{"/tokenize", "/detokenize", "/v1/completions",
                                           "/v1/chat/completions"};
  return request.method == "POST" && paths.contains(request.path);
}

std::string host_name(const std::string& host_header) {
  const size_t colon = host_header.rfind(':');
  const bool port = colon != std::string::npos && host_header.find(']', colon) == std::string::npos;
  return port ? host_header.substr(0, colon) : host_header;
}

// For logs, where a line must stay one.
std::string printable(std::string text) {
  for (char& c : text)
    if ((c >= 0 && c < ' ') || c == 0x7f) c = '?';
  return text;
}

}  // namespace

struct HttpServer::Impl {
  Impl(const HttpOptions& http_options, Metrics& server_metrics)
      : options(http_options), metrics(server_metrics), server(limits()) {}

  ConnectionLimits limits() const {
    ConnectionLimits all;
    all.request = std::chrono::milliseconds(static_cast<int64_t>(options.request_seconds * 1e3));
    all.request_bytes = options.body_limit + 64 * 1024;  // headers too
    return all;
  }
  using Handler = std::function<void(const httplib::Request&, httplib::Response&)>;
  // A handler whose exceptions become errors in JSON.
  Handler guarded(Handler handler) {
    return [this, handler = std::move(handler)](const httplib::Request& request,
                                                httplib::Response& response) {
      try {
        handler(request, response);
      } catch (const ApiError& error) {
        answer(response, error);
      } catch (const std::exception& error) {
        answer(response, server_error(error));
      }
    };
  }
  void add_routes();
  void complete(const httplib::Request& request, httplib::Response& response, bool chat);
  httplib::Server::HandlerResponse before(const httplib::Request& request,
                                          httplib::Response& response) const;
  void describe_error(const httplib::Request& request, httplib::Response& response) const;

  const ServedModel& model() const {
    const ServedModel* loaded = served.load();
    if (!loaded)
      throw ApiError(503, "server_error", "loading", "the model is being loaded; try again soon");
    if (refusing)
      throw ApiError(503, "server_error", "shutting_down", "the server is shutting down");
    return *loaded;
  }
  static Json body_of(const httplib::Request& request);

  HttpOptions options;
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

Json HttpServer::Impl::body_of(const httplib::Request& request) {
  require_json_type(request.get_header_value("Content-Type"));
  return parse_request(request.body);
}

httplib::Server::HandlerResponse HttpServer::Impl::before(const httplib::Request& request,
                                                          httplib::Response& response) const {
  using Result = httplib::Server::HandlerResponse;
  const auto refuse_with = [&](const ApiError& error) {
    answer(response, error);
    // Its body has not been read, and must not be taken for the next request.
    if (Connection* connection = Connection::current()) connection->close_after_answer();
    return Result::Handled;
  };
  if (request.has_header("Content-Encoding"))
    return refuse_with({415, "invalid_request_error", "unsupported_encoding",
                        "a request's body must not be compressed"});
  // A page elsewhere whose name was made to point at this machine would send its own name.
  const bool local =
      options.host == "127.0.0.1" || options.host == "localhost" || options.host == "::1";
  const std::string name = host_name(request.get_header_value("Host"));
  if (local && name != "localhost" && name != "127.0.0.1" && name != "[::1]" && !name.empty())
    return refuse_with(
        {403, "invalid_request_error", "wrong_host",
         fmt::format("this server answers to localhost, not \"{}\"", shortened(name))});
  const bool is_open =
      request.method == "GET" && (request.path == "/health" || is_page(request.path));
  if (!options.api_key.empty() && !is_open &&
      !same_secret(request.get_header_value("Authorization"), "Bearer " + options.api_key))
    return refuse_with({401, "authentication_error", "invalid_api_key",
                        "the request's API key is missing or wrong; send it as "
                        "\"Authorization: Bearer KEY\""});
  // Told before httplib takes the body apart, which has a limit of its own for forms.
  if (const std::string type = request.get_header_value("Content-Type");
      takes_json(request) && !type.empty()) {
    try {
      require_json_type(type);
    } catch (const ApiError& error) {
      return refuse_with(error);
    }
  }
  return Result::Unhandled;
}

// Errors that httplib finds itself have no body yet.
void HttpServer::Impl::describe_error(const httplib::Request& request,
                                      httplib::Response& response) const {
  if (!response.body.empty()) return;
  const auto describe = [&](const char* code, const std::string& message) {
    answer(response, ApiError(response.status, "invalid_request_error", code, message));
  };
  if (Connection::current() && Connection::current()->over_limit()) response.status = 413;
  // Found while the request was being read: what follows on the connection may be the rest of it.
  if (Connection* connection = Connection::current(); connection && response.status != 404)
    connection->close_after_answer();
  switch (response.status) {
    case 404:
      if (is_route(request.path)) {
        response.status = 405;
        return describe(
            "method_not_allowed",
            fmt::format("{} is not for {}", shortened(request.method), shortened(request.path)));
      }
      return describe("not_found",
                      fmt::format("no {} {} here; docs/http-api.md lists what there is",
                                  shortened(request.method), shortened(request.path)));
    case 413:
      return describe(
          "body_too_large",
          fmt::format("a request's body may have {} bytes, and its headers some thousands",
                      options.body_limit));
    case 414:
      return describe("uri_too_long", "the address is too long");
    case 416:
      return describe("invalid_range", "the header Range is malformed; nothing here has ranges");
    case 500:  // thrown while the request was read: memory, and nothing else, runs out there
      response.headers.erase("EXCEPTION_WHAT");
      return answer(response, server_error(std::bad_alloc()));
    default:
      return describe("bad_request", "the request is not well-formed HTTP");
  }
}

void HttpServer::Impl::complete(const httplib::Request& request, httplib::Response& response,
                                bool chat) {
  const ServedModel& serving = model();
  // Each request is a party of its own where it names no user.
  const Party party = ++requests;
  const Json body = body_of(request);
  CompletionRequest wanted =
      chat ? read_chat_completion(body, serving, party) : read_completion(body, serving, party);
  const bool stream = wanted.stream;
  const auto running =
      std::make_shared<RunningRequest>(std::move(wanted), serving, *scheduler.load(), unfinished);
  if (stream) {
    response.set_header("Cache-Control", "no-cache");
    response.set_chunked_content_provider(
        "text/event-stream",
        [events = EventStream(running)](size_t, httplib::DataSink& sink) mutable {
          const std::string text = events.next(patience);
          if (!sink.is_writable() || (!text.empty() && !sink.write(text.data(), text.size())))
            return false;
          if (events.ended()) sink.done();
          return true;
        });
    return;
  }
  while (!running->response().complete()) {
    running->wait(patience);
    if (const Connection* connection = Connection::current(); connection && connection->closed()) {
      response.status = 499;  // nobody reads it; for the log
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
  server.Get(std::string(model_route) + "(.+)",
             guarded([this](const httplib::Request& request, auto& response) {
               check_model_name(request.matches[1].str(), model());
               answer(response, describe_model(model()));
             }));
  server.Get("/tokenizer_info", guarded([this](const auto&, auto& response) {
               answer(response, describe_tokenizer(model()));
             }));
  server.Post("/tokenize", guarded([this](const httplib::Request& request, auto& response) {
                answer(response, tokenize(body_of(request), model()));
              }));
  server.Post("/detokenize", guarded([this](const httplib::Request& request, auto& response) {
                answer(response, detokenize(body_of(request), model()));
              }));
  for (const bool chat : {false, true})
    server.Post(chat ? "/v1/chat/completions" : "/v1/completions",
                guarded([this, chat](const httplib::Request& request, httplib::Response& response) {
                  complete(request, response, chat);
                }));
  for (const PageFile& file : page_files())
    server.Get(std::string(file.path), [file](const auto&, httplib::Response& response) {
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
  const auto threads = static_cast<size_t>(options.threads);
  server.new_task_queue = [threads] { return new httplib::ThreadPool(threads); };
  server.set_payload_max_length(options.body_limit);
  server.set_tcp_nodelay(true);
  // httplib's default lets a second server listen on the same port, and each would get half of the
  // requests.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  server.set_keep_alive_max_count(1000);
  server.set_default_headers({{"X-Content-Type-Options", "nosniff"}});
  server.set_pre_routing_handler([impl = impl_.get()](const auto& request, auto& response) {
    return impl->before(request, response);
  });
  server.set_error_handler(
      httplib::Server::Handler([impl = impl_.get()](const auto& request, auto& response) {
        impl->describe_error(request, response);
      }));
  server.set_logger([impl = impl_.get()](const auto& request, const auto& response) {
    // Other paths would make a line each, as many as a client likes.
    impl->metrics.count_request(is_route(request.path) ? request.path : "other", response.status);
    if (impl->options.log)
      impl->options.log(fmt::format("{} {} {}", printable(request.method), printable(request.path),
                                    response.status));
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
  impl_->server.let_connections_wait();
  impl_->thread = std::thread([impl = impl_.get()] {
    impl->server.listen_after_bind();
    impl->listening = false;
  });
  return port;
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
}

}  // namespace sol
