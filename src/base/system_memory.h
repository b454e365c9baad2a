// How much memory there is.
#pragma once

#include <cstdint>
#include <filesystem>

namespace sol {

// Bytes that this process can still get without others being swapped out: what the system says is
// available, less what the control group's limit and its own limit of addresses (ulimit -v) leave
// out.
uint64_t available_memory();

// Of this process, bytes in memory now; mapped files included.
uint64_t resident_memory();

// available_memory() by files as in /proc and /sys/fs/cgroup under `root`, for tests.
uint64_t available_memory_under(const std::filesystem::path& root);

}  // namespace sol
