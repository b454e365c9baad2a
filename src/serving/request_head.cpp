#include "serving/request_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "serving/api_error.h"

namespace sol {
namespace {

ApiError too_large(const std::string& what) {
  return {431, "invalid_request_error", "headers_too_large", what};
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_letter_or_digit(char c) {
  return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z');
}

// RFC 9110, 5.6.2.
bool is_token(std::string_view text) {
  constexpr std::string_view others = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return is_letter_or_digit(c) || others.find(c) != others.npos;
  });
}

bool is_visible(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
}

// RFC 3986, 3.2: a name or an address, and a port.
bool is_authority(std::string_view text) {
  constexpr std::string_view others = "-._~!$&'()*+,;=%:[]";
  return std::ranges::all_of(
      text, [&](char c) { return is_letter_or_digit(c) || others.find(c) != others.npos; });
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t";
  const size_t first = text.find_first_not_of(blanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// Up to its CRLF, which is taken away too.
std::string_view take_line(std::string_view& text) {
  const size_t end = text.find("\r\n");
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(text.size(), end == text.npos ? text.size() : end + 2));
  return line;
}

void read_target(std::string_view target, RequestHead& head) {
  if (target.size() > most_target_bytes)
    throw ApiError(414, "invalid_request_error", "uri_too_long",
                   fmt::format("an address may have {} bytes", most_target_bytes));
  if (!is_visible(target) || target.find('#') != target.npos)
    throw malformed("the address holds characters that must be escaped");
  // The form that proxies are sent.
  if (constexpr std::string_view scheme = "http://";
      equal_ignoring_case(target.substr(0, scheme.size()), scheme)) {
    target.remove_prefix(scheme.size());
    const size_t end = std::min(target.find_first_of("/?"), target.size());
    head.host = target.substr(0, end);
    target.remove_prefix(end);
    if (head.host.empty() || !is_authority(head.host)) throw malformed("the address has no host");
    if (target.empty() || target.front() == '?') target = "/";
  }
  if (!target.starts_with('/') && !(target == "*" && head.method == "OPTIONS"))
    throw malformed("the address must begin with \"/\"");
  head.path = target.substr(0, target.find('?'));
}

void read_request_line(std::string_view line, RequestHead& head) {
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == line.npos || first == last || line.find(' ', first + 1) != last)
    throw malformed("it must begin with method, address and version, a blank between them");
  head.method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!is_token(head.method)) throw malformed("the method is no word");
  if (version.size() != 8 || !version.starts_with("HTTP/") || !is_digit(version[5]) ||
      version[6] != '.' || !is_digit(version[7]))
    throw malformed("the version must be HTTP/1.1");
  if (version[5] != '1')
    throw ApiError(505, "invalid_request_error", "version_not_supported",
                   "this server speaks HTTP/1.1");
  head.http_1_0 = version[7] == '0';
  constexpr std::array<std::string_view, 7> methods{"GET",   "HEAD",   "POST",   "PUT",
                                                    "PATCH", "DELETE", "OPTIONS"};
  if (std::ranges::find(methods, head.method) == methods.end())
    throw ApiError(501, "invalid_request_error", "method_not_implemented",
                   "the request's method is not known here");
  read_target(target, head);
}

void read_field(std::string_view line, RequestHead& head) {
  if (head.fields.size() == most_head_fields)
    throw too_large(fmt::format("a request may have {} header fields", most_head_fields));
  const size_t colon = line.find(':');
  // Continued lines (obsolete) and blanks before the colon end here too.
  if (colon == line.npos || !is_token(line.substr(0, colon)))
    throw malformed("a header line must be a name, a colon right behind it, and a value");
  std::string name(line.substr(0, colon));
  std::ranges::transform(name, name.begin(), lower);
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (std::ranges::any_of(value,
                          [](char c) { return (c >= 0 && c < ' ' && c != '\t') || c == 0x7f; }))
    throw malformed(fmt::format("the value of \"{}\" holds control characters", name));
  head.fields.emplace_back(std::move(name), value);
}

// Those that decide who is asked, by whom, and for what: of two values, readers differ in which
// they take.
void reject_repeated_fields(const RequestHead& head) {
  for (const char* name :
       {"host", "content-length", "transfer-encoding", "authorization", "content-type", "expect"})
    if (std::ranges::count(head.fields, name,
                           [](const auto& field) -> const std::string& { return field.first; }) > 1)
      throw malformed(fmt::format("the header \"{}\" is given twice", name));
}

void read_body_length(RequestHead& head) {
  const std::string* length = head.find("content-length");
  const std::string* coding = head.find("transfer-encoding");
  if (length && coding)
    throw malformed("Content-Length and Transfer-Encoding must not be given together");
  if (coding) {
    if (head.http_1_0 || !equal_ignoring_case(*coding, "chunked"))
      throw malformed("Transfer-Encoding may only be \"chunked\", in HTTP/1.1");
    head.chunked = true;
  }
  if (length) {
    if (length->empty() || !std::ranges::all_of(*length, is_digit))
      throw malformed("Content-Length must be a decimal number");
    uint64_t bytes = 0;
    const auto [end, error] =
        std::from_chars(length->data(), length->data() + length->size(), bytes);
    // Larger than any that is read.
    head.content_length = error == std::errc() ? bytes : std::numeric_limits<uint64_t>::max();
  }
}

void read_host(RequestHead& head) {
  const std::string* host = head.find("host");
  if (!host && !head.http_1_0) throw malformed("the header \"Host\" is missing");
  if (host && !is_authority(*host)) throw malformed("the header \"Host\" is no host's name");
  if (host && head.host.empty()) head.host = *host;
}

void read_connection(RequestHead& head) {
  head.close = head.http_1_0;
  for (const auto& [name, value] : head.fields) {
    if (name != "connection") continue;
    for (std::string_view rest = value; !rest.empty();) {
      const size_t comma = std::min(rest.find(','), rest.size());
      if (equal_ignoring_case(trimmed(rest.substr(0, comma)), "close")) head.close = true;
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  const std::string* expected = head.find("expect");
  if (!expected || head.http_1_0) return;
  if (!equal_ignoring_case(*expected, "100-continue"))
    throw ApiError(417, "invalid_request_error", "expectation_failed",
                   "only \"Expect: 100-continue\" is known here");
  head.expects_continue = true;
}

}  // namespace

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

const std::string* RequestHead::find(std::string_view name) const {
  const auto it =
      std::ranges::find_if(fields, [&](const auto& field) { return field.first == name; });
  return it == fields.end() ? nullptr : &it->second;
}

std::optional<size_t> find_head_end(std::string_view bytes, size_t& scanned) {
  while (true) {
    const size_t end = bytes.find('\n', scanned);
    if ((end == bytes.npos ? bytes.size() : end + 1) > most_head_bytes)
      throw too_large(fmt::format("a request's headers may have {} bytes", most_head_bytes));
    if (end == bytes.npos) {
      scanned = bytes.size();
      return std::nullopt;
    }
    if (end == 0 || bytes[end - 1] != '\r') throw malformed("lines must end with CR and LF");
    scanned = end + 1;
    if (bytes.substr(0, end + 1).ends_with("\r\n\r\n")) return end + 1;
  }
}

RequestHead parse_request_head(std::string_view bytes) {
  RequestHead head;
  read_request_line(take_line(bytes), head);
  for (std::string_view line = take_line(bytes); !line.empty(); line = take_line(bytes))
    read_field(line, head);
  reject_repeated_fields(head);
  read_body_length(head);
  read_host(head);
  read_connection(head);
  return head;
}

}  // namespace sol
