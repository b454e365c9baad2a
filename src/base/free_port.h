// A port for processes of this machine to meet at.
#pragma once

namespace sol {

// A TCP port of the loopback address that is free now. Another program may take it before the
// caller listens there. Throws Error with the system's reason where there is none.
int free_port();

// Throws Error where no process can listen at this TCP port of this machine's addresses: another
// one does.
void require_free_port(int port);

}  // namespace sol
