// Several ranks as threads of one test, joined as processes are.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/free_port.h"
#include "sol/error.h"
#include "training/process_group.h"

namespace sol::test {

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
