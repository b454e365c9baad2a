// A connection without manners: any bytes, at any pace, closed in any way.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>

namespace sol::load {

class RawConnection {
 public:
  // To this port of the loopback address. Throws Error when it cannot be made.
  explicit RawConnection(int port, int receive_buffer = 0);
  ~RawConnection();
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  // Whether all of it was taken in that time.
  bool send(std::string_view bytes, std::chrono::milliseconds patience = std::chrono::seconds{30});
  // Everything up to the server's end of the connection. False when it takes longer.
  bool read_to_end(std::string& text, std::chrono::milliseconds patience);
  // Waits for the first byte of an answer.
  bool wait_for_answer(std::chrono::milliseconds patience) const;
  // Closes it as a program does that dies: what was not read is answered with a reset.
  void reset();

 private:
  int socket_ = -1;
};

struct RawAnswer {
  int status = 0;                              // 0: none came
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  bool ended = false;  // the server closed the connection
};

// Sends these bytes and reads to the end of the connection.
RawAnswer exchange(int port, std::string_view bytes,
                   std::chrono::milliseconds patience = std::chrono::seconds{60});

}  // namespace sol::load
