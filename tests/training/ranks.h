// Several ranks as threads of one test, joined as processes are.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "sol/error.h"
#include "training/process_group.h"

namespace sol::test {

// A port that was free a moment ago.
inline int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  ::bind(socket, reinterpret_cast<sockaddr*>(&address), length);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
  ::close(socket);
  return ntohs(address.sin_port);
}

// Runs `body` on every rank; returns what each threw, empty where nothing.
inline std::vector<std::string> run_ranks(int size,
                                          const std::function<void(ConnectedGroup&)>& body,
                                          const GroupOptions& options = {.connect_seconds = 60}) {
  const int port = free_port();
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const auto group = connect_processes({.rank = rank,
                                              .size = size,
                                              .local_rank = rank,
                                              .local_size = size,
                                              .address = "127.0.0.1",
                                              .port = port},
                                             options);
        try {
          body(*group);
        } catch (const Error& e) {
          group->report_failure(e.what());
          throw;
        }
      } catch (const Error& e) {
        errors[static_cast<size_t>(rank)] = e.what();
      }
    });
  }
  return errors.empty() ? errors : (threads.clear(), errors);
}

}  // namespace sol::test
