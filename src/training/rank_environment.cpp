#include "training/rank_environment.h"

#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>

#include <charconv>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "base/fail.h"

namespace sol {
namespace {

constexpr int default_port = 29500;  // torchrun's
constexpr int most_processes = 65536;

const char* variable(const char* name) {
  const char* text = std::getenv(name);
  return text && *text ? text : nullptr;
}

int number(const char* name, int low, int high) {
  const char* text = variable(name);
  if (!text)
    fail(
        "the environment variable {} is missing: processes of one run are started by torchrun, "
        "mpirun or --processes, which set it",
        name);
  const std::string_view digits = text;
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < low || value > high)
    fail("the environment variable {} = {} must be a whole number from {} to {}", name, digits, low,
         high);
  return value;
}

// The names under which one launcher says the four numbers.
struct Launcher {
  const char *rank, *size, *local_rank, *local_size;
};
constexpr Launcher torchrun{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Launcher open_mpi{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                            "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Launcher mpich{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};

const Launcher* launcher() {
  for (const Launcher* candidate : {&torchrun, &open_mpi, &mpich})
    if (variable(candidate->rank) || variable(candidate->size)) return candidate;
  return nullptr;
}

}  // namespace

std::optional<RankEnvironment> rank_environment() {
  const Launcher* from = launcher();
  if (!from) return std::nullopt;
  RankEnvironment out;
  out.size = number(from->size, 1, most_processes);
  out.rank = number(from->rank, 0, out.size - 1);
  // Started by hand, a process may know its rank among all only: then each is taken to be alone on
  // its machine.
  if (variable(from->local_rank) || variable(from->local_size)) {
    out.local_size = number(from->local_size, 1, out.size);
    out.local_rank = number(from->local_rank, 0, out.local_size - 1);
  }
  if (const char* address = variable("MASTER_ADDR")) {
    out.address = address;
  } else if (out.local_size == out.size) {
    out.address = "127.0.0.1";
  } else {
    fail(
        "the environment variable MASTER_ADDR is missing: with processes on several machines it "
        "names the one that rank 0 runs on");
  }
  out.port = variable("MASTER_PORT") ? number("MASTER_PORT", 1, 65535) : default_port;
  const char* agent = variable("TORCHELASTIC_USE_AGENT_STORE");
  out.launcher_listens = agent && std::string_view(agent) == "True";
  if (variable("TORCHELASTIC_RESTART_COUNT"))
    out.attempt = number("TORCHELASTIC_RESTART_COUNT", 0, std::numeric_limits<int>::max());
  return out;
}

void require_known_address(const RankEnvironment& environment) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(environment.address.c_str(), nullptr, &hints, &found);
  if (error != 0)
    fail(
        "the environment variable MASTER_ADDR = {} names no machine that can be found from here: "
        "{}; it must be a name or address of the machine that rank 0 runs on",
        environment.address, gai_strerror(error));
  freeaddrinfo(found);
}

void require_known_interface(const std::string& name) {
  if (if_nametoindex(name.c_str()) != 0) return;
  std::string known;
  if (struct if_nameindex* const all = if_nameindex()) {
    for (const struct if_nameindex* i = all; i->if_name; ++i)
      known += fmt::format("{}{}", known.empty() ? "" : ", ", i->if_name);
    if_freenameindex(all);
  }
  fail(
      "the environment variable GLOO_SOCKET_IFNAME = {} must be the name of one of this machine's "
      "network interfaces: {}",
      name, known.empty() ? "none can be listed" : known);
}

}  // namespace sol
