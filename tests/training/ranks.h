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

// Runs `body` on every rank; returns what each threw, empty where nothing. `meeting` may say where
// they meet: otherwise at a free port of this machine.
inline std::vector<std::string> run_ranks(int size,
                                          const std::function<void(ConnectedGroup&)>& body,
                                          const GroupOptions& options = {.connect_seconds = 60},
                                          RankEnvironment meeting = {.address = "127.0.0.1"}) {
  if (meeting.port == 0) meeting.port = free_port();
  meeting.size = meeting.local_size = size;
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        RankEnvironment mine = meeting;
        mine.rank = mine.local_rank = rank;
        const auto group = connect_processes(mine, options);
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
