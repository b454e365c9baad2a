#include "engine_torch/torch_threads.h"

#include <ATen/Parallel.h>

#include "base/threads.h"

namespace sol {

TorchThreads::TorchThreads(bool one) : before_(thread_count()) {
  at::set_num_threads(one ? 1 : before_);
}

TorchThreads::~TorchThreads() {
  set_thread_count(before_);
}

}  // namespace sol
