// Processes that this program starts: one, or several of one command, as `--processes` asks for.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace sol::app {

// Starts a program in a process group of its own, with these variables ("NAME=value") before those
// of this process' environment; `arguments` begin with the program's name. It ends with this
// process where it calls end_with_parent(). -1, and errno, where it cannot be started.
pid_t start_child(const std::filesystem::path& program, std::vector<std::string> arguments,
                  std::vector<std::string> variables = {});

// Starts this command line `count` times more, each with the environment variables by which
// torchrun tells a process its rank, and waits for all of them. Signals that end this process are
// passed on. Once a process has failed the others have ten seconds to end, which they do by
// themselves (training/process_group.h) unless they are stopped or hang; two minutes where a signal
// has ended it, as they may be writing a checkpoint. Returns 0 or the first
// failure's exit status. Throws Error when a process cannot be started; those that were are ended.
// Throws CancelledQuietly when they have stopped because of such a signal.
int run_processes(int count);

// Whether run_processes has started this process.
bool started_by_run_processes();

// Ends this process with the one that started it, where start_child did.
void end_with_parent();

}  // namespace sol::app
