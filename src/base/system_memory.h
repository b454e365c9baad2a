// How much memory there is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace sol {

// Bytes that this process can still get without others being swapped out: what the system says is
// available, less what the control group's limit and its own limit of addresses (ulimit -v) leave
// out.
uint64_t available_memory();

// Of this process, bytes in memory now; mapped files included.
uint64_t resident_memory();

// Throws Error naming the limit where this process may not have so many bytes of addresses (ulimit
// -v) or of data (ulimit -d): for libraries that would wait or end without a message. `who` needs
// them.
void require_addresses(uint64_t bytes, const std::string& who);

// available_memory() by files as in /proc and /sys/fs/cgroup under `root`, for tests.
uint64_t available_memory_under(const std::filesystem::path& root);

}  // namespace sol
