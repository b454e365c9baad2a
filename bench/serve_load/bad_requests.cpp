#include "serve_load/bad_requests.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <functional>

#include "base/fail.h"
#include "serve_load/answer_check.h"
#include "serve_load/raw_connection.h"

namespace sol::load {
namespace {

constexpr size_t mib = size_t{1} << 20;

struct BadRequest {
  std::string name;
  std::string bytes;  // of the whole message
  int status = 400;   // 200: it is odd, but must be served
  std::string param;  // the field that the error must name; empty: any
};

constexpr const char* json_type = "Content-Type: application/json\r\n";

std::string head(const std::string& line, const std::string& headers) {
  return line + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers;
}

std::string message(const std::string& line, const std::string& headers, const std::string& body) {
  return head(line, headers) + fmt::format("Content-Length: {}\r\n\r\n", body.size()) + body;
}

std::string post(const std::string& body, const std::string& headers = json_type) {
  return message("POST /v1/completions", headers, body);
}

std::string chunked(const std::string& body, size_t piece) {
  std::string text =
      head("POST /v1/completions", std::string(json_type) + "Transfer-Encoding: chunked\r\n\r\n");
  for (size_t begin = 0; begin < body.size(); begin += piece) {
    const std::string part = body.substr(begin, piece);
    text += fmt::format("{:x}\r\n", part.size()) + part + "\r\n";
  }
  return text + "0\r\n\r\n";
}

std::string gzip(const std::string& text) {
  z_stream stream{};
  constexpr int with_gzip_header = 15 + 16;
  if (deflateInit2(&stream, 9, Z_DEFLATED, with_gzip_header, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    fail("zlib does not start");
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int end = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (end != Z_STREAM_END) fail("zlib cannot compress");
  return packed;
}

std::string repeated(const std::string& text, size_t times) {
  std::string all;
  all.reserve(text.size() * times);
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

// Bodies with a wrong field, by that field's full name.
std::vector<BadRequest> wrong_fields(const TestedServer& server) {
  const std::string beyond = std::to_string(server.vocabulary());
  const std::pair<const char*, std::string> bodies[] = {
      {"colour", R"({"prompt": "a", "colour": 1})"},
      {"prompt", R"({"max_tokens": 4})"},
      {"prompt", R"({"prompt": {"text": "a"}})"},
      {"prompt", R"({"prompt": []})"},
      {"prompt[0][1]", R"({"prompt": [[1, "a"]]})"},
      {"prompt[0]", R"({"prompt": [-1]})"},
      {"prompt[0]", R"({"prompt": [99999999999999999999]})"},
      {"prompt", fmt::format(R"({{"prompt": [{}]}})", beyond)},
      {"max_tokens", R"({"prompt": "a", "max_tokens": 100000000})"},
      {"max_tokens", R"({"prompt": "a", "max_tokens": -1})"},
      {"max_tokens", R"({"prompt": "a", "max_tokens": 1.5})"},
      {"temperature", R"({"prompt": "a", "temperature": "hot"})"},
      {"temperature", R"({"prompt": "a", "temperature": 2.1})"},
      {"top_p", R"({"prompt": "a", "top_p": 0})"},
      {"n", R"({"prompt": "a", "n": 0})"},
      {"n", R"({"prompt": "a", "n": 129})"},
      {"seed", R"({"prompt": "a", "seed": -1})"},
      {"stop[1]", R"({"prompt": "a", "stop": ["b", ""]})"},
      {"logprobs", R"({"prompt": "a", "logprobs": 21})"},
      {"logit_bias", R"({"prompt": "a", "logit_bias": {"1": 5}})"},
      {"echo", R"({"prompt": "a", "echo": true, "stream": true})"},
      {"stream_options", R"({"prompt": "a", "stream_options": {"include_usage": true}})"},
      {"stream_options.x", R"({"prompt": "a", "stream": true, "stream_options": {"x": 1}})"},
      {"reasoning_effort", R"({"prompt": "a", "reasoning_effort": "enormous"})"},
      {"sol.colour", R"({"prompt": "a", "sol": {"colour": 1}})"},
      {"sol.budget", R"({"prompt": "a", "sol": {"budget": 1.5}})"},
      {"sol.budget", R"({"prompt": "a", "sol": {"budget": 1e-9}})"},
      {"sol.keep", R"({"prompt": "a", "sol": {"keep": 0}})"},
      {"sol.bits", R"({"prompt": "a", "sol": {"bits": 17}})"},
      {"sol.fixed", R"({"prompt": "a", "sol": {"fixed": "k000-s070-q8"}})"},
      {"sol.ms_per_token", R"({"prompt": "a", "sol": {"ms_per_token": -1}})"},
      {"sol.policy", R"({"prompt": "a", "sol": {"policy": "wise", "budget": 0.5}})"},
      {"sol", R"({"prompt": "a", "sol": {"budget": 0.5, "ms_per_token": 5}})"},
      {"sol.scored_from", R"({"prompt": "a", "sol": {"scored_from": 2}})"},
  };
  std::vector<BadRequest> all;
  for (const auto& [field, body] : bodies) all.push_back({body, post(body), 400, field});
  return all;
}

std::vector<BadRequest> malformed_messages() {
  const std::string good = R"({"prompt": "The city", "max_tokens": 4, "seed": 1})";
  const std::string type = json_type;
  std::vector<BadRequest> all{
      {"an empty body", post(""), 400, ""},
      {"half of an object", post(R"({"prompt": "a")"), 400, ""},
      {"a list", post("[]"), 400, ""},
      {"bytes that are no text", post("{\"prompt\": \"\xff\xfe\"}"), 400, ""},
      {"half of a surrogate pair", post(R"({"prompt": "\ud800"})"), 400, ""},
      {"a zero byte", post(std::string("{\"prompt\": \"a\"\0}", 16)), 400, ""},
      {"a number without end", post(R"({"prompt": "a", "temperature": 1e999})"), 400, ""},
      {"one key twice", post(R"({"prompt": "a", "prompt": "b"})"), 400, ""},
      {"deep brackets", post(repeated("[", 50000)), 400, ""},
      {"deep objects", post(repeated("{\"a\":", 50000) + "1" + std::string(50000, '}')), 400, ""},
      {"another type", post(good, "Content-Type: text/plain\r\n"), 415, ""},
      {"a form", post("prompt=a", "Content-Type: application/x-www-form-urlencoded\r\n"), 415, ""},
      {"no type", post(good, ""), 415, ""},
      {"another model", post(R"({"prompt": "a", "model": "another"})"), 404, "model"},
      {"no such path", message("POST /v1/nothing", type, good), 404, ""},
      {"no such path, another method", message("DELETE /v1/nothing", type, ""), 404, ""},
      {"another method", message("GET /v1/completions", type, ""), 405, ""},
      {"another method's body", message("PUT /v1/completions", type, good), 405, ""},
      {"no HTTP", "GARBAGE\r\n\r\n", 400, ""},
      {"a piece without a size",
       head("POST /v1/completions",
            type + "Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n"),
       400, ""},
      {"a long address", message("GET /" + std::string(9000, 'a'), "", ""), 414, ""},
      // Another host's request must not bring a second one along in its body.
      {"another host",
       "POST /v1/completions HTTP/1.1\r\nHost: elsewhere.example\r\nContent-Length: 43\r\n\r\n"
       "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n",
       403, ""},
      {"a body in pieces", chunked(good, 7), 200, ""},
      {"a compressed body", post(gzip(good), type + "Content-Encoding: gzip\r\n"), 415, ""},
      {"a range of the answer", post(good, type + "Range: bytes=5-9\r\n"), 200, ""},
  };
  return all;
}

std::vector<BadRequest> oversized(const TestedServer& server) {
  const std::string type = json_type;
  const std::string text = R"({"prompt": ")" + std::string((body_limit_mib + 1) * mib, 'a') + "\"}";
  const std::string prompt =
      R"({"prompt": ")" + repeated("of ", static_cast<size_t>(server.context()) * 2) + "\"}";
  const std::string bomb = gzip(R"({"prompt": ")" + std::string(16 * mib, 'a') + "\"}");
  const std::string headers = repeated("X-Long: " + std::string(4000, 'y') + "\r\n", 1000);
  return {
      {"a long prompt", post(prompt), 400, "prompt"},
      {"a large body", post(text), 413, ""},
      {"a large body in pieces", chunked(text, 65536), 413, ""},
      {"a body that unpacks to 16 MiB", post(bomb, type + "Content-Encoding: gzip\r\n"), 415, ""},
      {"4 MB of headers", head("POST /v1/completions", headers + "\r\n"), 431, ""}};
}

void check(const TestedServer& server, Report& report, const BadRequest& bad) {
  const Stopwatch sw;
  const RawAnswer answer = exchange(server.port(), bad.bytes);
  std::string fault;
  try {
    const Json json = parse_json(answer.body, "the answer");
    if (bad.status == 200 && answer.status == 429) return;  // a flood is on: come back later
    if (answer.status != bad.status)
      fault = fmt::format("status {} instead of {}: {}", answer.status, bad.status, answer.body);
    else if (bad.status != 200) {
      const auto faults = faults_of_error(bad.status, json.value("error", Json()), 0);
      if (!faults.empty())
        fault = faults.front();
      else if (!bad.param.empty() && json["error"]["param"] != bad.param)
        fault = "the error names another field: " + answer.body;
    } else if (!json.contains("choices"))
      fault = "an answer without choices: " + answer.body;
  } catch (const std::exception& error) {
    fault = fmt::format("status {}, and a body that is not one JSON: {}", answer.status,
                        answer.body.substr(0, 300));
  }
  if (!answer.ended) fault += " (the connection was not closed)";
  report.require("malformed, oversized and odd requests get what is documented", fault.empty(),
                 bad.name + ": " + fault);
}

}  // namespace

void send_bad_requests(const TestedServer& server, Report& report, bool large) {
  std::vector<BadRequest> all = malformed_messages();
  std::ranges::move(wrong_fields(server), std::back_inserter(all));
  if (large) std::ranges::move(oversized(server), std::back_inserter(all));
  for (const BadRequest& bad : all) check(server, report, bad);
}

}  // namespace sol::load
