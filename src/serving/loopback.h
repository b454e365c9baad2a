// Which addresses and names only this machine has.
#pragma once

#include <sys/socket.h>

#include <string>

namespace sol {

// 127.0.0.0/8, ::1, and the former as IPv6 addresses.
bool is_loopback(const sockaddr_storage& address);

// A name as it stands in "Host", without the port: "localhost" or one of those addresses, IPv6 in
// brackets.
bool is_loopback_name(const std::string& name);

}  // namespace sol
