// LibTorch's threads are ours.
#pragma once

namespace sol {

// LibTorch shares our thread runtime: what it is told holds for the whole program, so it is told
// for the time of a call: as many threads as thread_count() says, or one, so that sums do not
// depend on how many there are. Unless told a number it would leave the program with one thread.
class TorchThreads {
 public:
  explicit TorchThreads(bool one = false);
  ~TorchThreads();
  TorchThreads(const TorchThreads&) = delete;
  TorchThreads& operator=(const TorchThreads&) = delete;

 private:
  int before_;
};

}  // namespace sol
