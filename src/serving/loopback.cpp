#include "serving/loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>

#include "serving/request_head.h"

namespace sol {
namespace {

bool is_loopback(const in_addr& address) {
  return ntohl(address.s_addr) >> 24 == 127;
}

bool is_loopback(const in6_addr& address) {
  if (IN6_IS_ADDR_LOOPBACK(&address)) return true;
  return IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == 127;
}

}  // namespace

bool is_loopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET)
    return is_loopback(reinterpret_cast<const sockaddr_in&>(address).sin_addr);
  if (address.ss_family == AF_INET6)
    return is_loopback(reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  return false;
}

bool is_loopback_name(const std::string& name) {
  if (equal_ignoring_case(name, "localhost")) return true;
  in_addr four{};
  if (inet_pton(AF_INET, name.c_str(), &four) == 1) return is_loopback(four);
  if (!name.starts_with('[') || !name.ends_with(']')) return false;
  in6_addr six{};
  return inet_pton(AF_INET6, name.substr(1, name.size() - 2).c_str(), &six) == 1 &&
         is_loopback(six);
}

}  // namespace sol
