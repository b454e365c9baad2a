// Which part of a training run over several processes this process is, as its launcher says in
// environment variables.
#pragma once

#include <optional>
#include <string>

namespace sol {

struct RankEnvironment {
  int rank = 0, size = 1;              // among all processes of the run
  int local_rank = 0, local_size = 1;  // among those of this machine
  std::string address;                 // of rank 0, where the processes meet
  int port = 0;
  // The launcher's own process listens there, for all ranks: torchrun does so where it is told the
  // meeting place. It outlives a run that it starts again, each attempt with the next number.
  bool launcher_listens = false;
  int attempt = 0;
};

// Reads what torchrun sets (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR,
// MASTER_PORT, TORCHELASTIC_USE_AGENT_STORE, TORCHELASTIC_RESTART_COUNT), else what mpirun sets:
// Open MPI's OMPI_COMM_WORLD_{RANK,SIZE,LOCAL_RANK,LOCAL_SIZE} or MPICH's PMI_{RANK,SIZE} and
// MPI_{LOCALRANKID,LOCALNRANKS}. mpirun names no meeting place: without MASTER_ADDR it is this
// machine, where all processes are on it, and MASTER_PORT is 29500 by default. nullopt when nothing
// is set: a process on its own. Throws Error naming the variable that is missing, no number or out
// of range.
std::optional<RankEnvironment> rank_environment();

// Throws Error, with the system's reason, where the address is no name or number of a machine:
// before anybody tries to reach it for minutes.
void require_known_address(const RankEnvironment& environment);

// Throws Error, listing those that there are, where GLOO_SOCKET_IFNAME names no network interface
// of this machine. It takes one name.
void require_known_interface(const std::string& name);

}  // namespace sol
