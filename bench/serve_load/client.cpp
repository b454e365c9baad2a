#include "serve_load/client.h"

#include <fmt/format.h>
#include <httplib.h>
#include <sys/socket.h>

#include "base/fail.h"

namespace sol::load {
namespace {

constexpr int patience_seconds = 120;

// Notes what a body or an event says.
class AnswerReader {
 public:
  explicit AnswerReader(Answer& answer) : answer_(answer) {}

  void whole(const Json& json) {
    if (json.contains("error"))
      answer_.error = json["error"];
    else
      choices(json, "message");
  }

  // `seconds`: when it came.
  void event(std::string_view text, double seconds) {
    if (text.starts_with(':')) return;  // a sign of life
    if (answer_.done) malformed("something follows [DONE]");
    if (!text.starts_with("data: ")) return malformed("an event without data");
    text.remove_prefix(6);
    if (text == "[DONE]") {
      answer_.done = true;
      return;
    }
    const Json json = parse_json(text, "an event");
    if (json.contains("error")) {
      answer_.error = json["error"];
      return;
    }
    if (id_.is_null()) id_ = json["id"];
    if (json["id"] != id_) malformed("events with different ids");
    if (!json["choices"].empty()) note_time(seconds);
    choices(json, "delta");
  }

 private:
  void malformed(const std::string& what) { answer_.malformed.push_back(what); }

  void note_time(double seconds) {
    answer_.last_event = seconds;
    if (answer_.events++ == 0) answer_.first_event = answer_.last_event;
  }

  // `chat_part`: where a chat has its text.
  void choices(const Json& json, const char* chat_part) {
    for (const Json& part : json.at("choices")) {
      const auto index = part.at("index").get<size_t>();
      if (index >= 1024) fail("a choice with index {}", index);
      if (index >= answer_.choices.size()) answer_.choices.resize(index + 1);
      ChoiceAnswer& choice = answer_.choices[index];
      if (!choice.finish_reason.is_null()) malformed("a choice goes on after its end");
      choice.text += part.contains(chat_part) ? part[chat_part].value("content", std::string())
                                              : part.at("text").get<std::string>();
      choice.finish_reason = part.at("finish_reason");
      note_tokens(part, choice);
      if (!part.contains("sol")) continue;
      if (part["sol"].contains("actions"))
        for (const Json& action : part["sol"]["actions"]) choice.actions.push_back(action);
      if (part["sol"].contains("realised")) choice.sol = part["sol"];
    }
    if (json.contains("usage") && !json["usage"].is_null()) answer_.usage = json["usage"];
  }

  static void note_tokens(const Json& part, ChoiceAnswer& choice) {
    if (!part.contains("logprobs") || part["logprobs"].is_null()) return;
    const Json& log_probs = part["logprobs"];
    for (const Json& token :
         log_probs.contains("content") ? log_probs["content"] : log_probs.at("tokens"))
      choice.tokens.push_back(token);
  }

  Answer& answer_;
  Json id_;
};

// Events are parted by empty lines.
class EventSplitter {
 public:
  template <typename OnEvent>
  void push(std::string_view piece, const OnEvent& on_event) {
    buffer_ += piece;
    for (size_t end; (end = buffer_.find("\n\n")) != std::string::npos; buffer_.erase(0, end + 2))
      on_event(std::string_view(buffer_).substr(0, end));
  }
  bool empty() const { return buffer_.empty(); }

 private:
  std::string buffer_;
};

void set_up(httplib::Client& client, const ClientHooks& hooks) {
  client.set_connection_timeout(patience_seconds);
  client.set_read_timeout(patience_seconds);
  client.set_write_timeout(patience_seconds);
  client.set_tcp_nodelay(true);
  if (hooks.receive_buffer > 0)
    client.set_socket_options([bytes = hooks.receive_buffer](socket_t socket) {
      setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
    });
}

}  // namespace

Answer send(int port, const Request& request, const ClientHooks& hooks) {
  Answer answer;
  AnswerReader reader(answer);
  EventSplitter events;
  std::string body;
  bool streams = false;
  httplib::Client client("127.0.0.1", port);
  set_up(client, hooks);

  const Stopwatch stopwatch;
  std::vector<std::pair<double, std::string>> kept;  // for later
  const auto read_events = [&](std::string_view piece, double seconds) {
    events.push(piece, [&](std::string_view event) { reader.event(event, seconds); });
  };
  httplib::Request sent;
  sent.method = "POST";
  sent.path = request.path;
  sent.set_header("Content-Type", "application/json");
  sent.body = to_text(request.body);
  sent.response_handler = [&](const httplib::Response& response) {
    answer.status = response.status;
    answer.retry_after = std::atoi(response.get_header_value("Retry-After").c_str());
    streams = response.get_header_value("Content-Type").starts_with("text/event-stream");
    return true;
  };
  sent.content_receiver = [&](const char* data, size_t size, uint64_t, uint64_t) {
    if (!streams) {
      body.append(data, size);
      return true;
    }
    if (hooks.read_late) {
      kept.emplace_back(stopwatch.seconds(), std::string(data, size));
      return true;
    }
    read_events({data, size}, stopwatch.seconds());
    answer.disconnected = hooks.on_piece && !hooks.on_piece(answer);
    return !answer.disconnected;
  };
  try {
    httplib::Response response;
    httplib::Error error{};
    if (!client.send(sent, response, error) && !answer.disconnected)
      answer.failure = httplib::to_string(error);
    answer.seconds = stopwatch.seconds();
    for (const auto& [seconds, piece] : kept) read_events(piece, seconds);
    if (answer.failure.empty() && !streams) reader.whole(parse_json(body, "the answer"));
  } catch (const std::exception& error) {
    answer.malformed.push_back(error.what());
  }
  if (streams && !events.empty() && !answer.disconnected)
    answer.malformed.push_back("the stream ends within an event");
  return answer;
}

Fetched fetch(int port, const std::string& path) {
  httplib::Client client("127.0.0.1", port);
  set_up(client, {});
  const httplib::Result result = client.Get(path);
  return result ? Fetched{result->status, result->body} : Fetched{};
}

}  // namespace sol::load
