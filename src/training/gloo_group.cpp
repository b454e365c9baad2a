// The processes of a run, joined by LibTorch's c10d: a TCPStore to meet at, Gloo for the sums. The
// only file that includes c10d's headers. LibTorch's CMake package defines USE_C10D_GLOO where it
// was built with Gloo.
#include "base/fail.h"
#include "training/process_group.h"

#ifdef USE_C10D_GLOO

// clang-format off
#include <ATen/core/ivalue.h>
#include <ATen/ATen.h>
// clang-format on
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/free_port.h"
#include "base/open_files.h"
#include "base/stopwatch.h"
#include "training/liveness.h"

namespace sol {
namespace {

using at::Tensor;
using Store = c10::intrusive_ptr<c10d::Store>;

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

// c10d's messages carry a backtrace after their first line.
std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

[[noreturn]] void fail_to_meet(const RankEnvironment& environment, double seconds,
                               const std::string& why) {
  fail(
      "rank {} of {} cannot meet the other processes at {}:{} within {:.0f} s: {}. Are all of them "
      "started, with the same address and a port that is free there (MASTER_ADDR, MASTER_PORT)? On "
      "a machine with several network interfaces GLOO_SOCKET_IFNAME names the right one",
      environment.rank, environment.size, environment.address, environment.port, seconds, why);
}

[[noreturn]] void fail_to_listen(const std::string& why) {
  fail(
      "rank 0 cannot listen for the other processes: {}. Another program does, or another process "
      "that was started as rank 0, too (RANK); MASTER_PORT names another port",
      why);
}

// The time that all of connecting may take together.
class Deadline {
 public:
  explicit Deadline(double seconds) : seconds_(seconds) {}
  double seconds() const { return seconds_; }
  // Whole seconds, as c10d cuts off fractions, and some time even at the end, so that who gives up
  // is wait_for_all, with a better message.
  double left() const { return std::ceil(std::max(1.0, seconds_ - time_.seconds())); }
  bool over() const { return time_.seconds() >= seconds_; }

 private:
  const double seconds_;
  Stopwatch time_;
};

// Not libuv, which PyTorch has since 2.1 and takes by default since 2.4, whether it was built with
// it or not; what is said over the connection is the same.
template <typename Options>
void choose_plain_sockets(Options& options) {
  if constexpr (requires { options.useLibUV; }) options.useLibUV = false;
}

// A connection to the store; values of an earlier attempt, which a launcher's store may still hold,
// are not seen.
Store open_store(const RankEnvironment& environment, bool listen, const Deadline& deadline) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(environment.port);
  options.isServer = listen;
  options.numWorkers = static_cast<size_t>(environment.size);
  options.waitWorkers = false;  // it would give up without saying so; wait_for_all does it
  choose_plain_sockets(options);
  options.timeout = milliseconds(deadline.left());
  try {
    return c10::make_intrusive<c10d::PrefixStore>(
        fmt::format("sol/{}", environment.attempt),
        c10::make_intrusive<c10d::TCPStore>(environment.address, options));
  } catch (const std::exception& e) {
    if (listen && first_line(e).find("ddress already in use") != std::string::npos)
      fail_to_listen("Address already in use");
    fail_to_meet(environment, deadline.seconds(), first_line(e));
  }
}

std::string read_text(c10d::Store& store, const std::string& key) {
  const std::vector<uint8_t> value = store.get(key);
  return {value.begin(), value.end()};
}

void write_text(c10d::Store& store, const std::string& key, const std::string& text) {
  store.set(key, std::vector<uint8_t>(text.begin(), text.end()));
}

// Who is missing, when the time is over; and whether all mean the same run.
void wait_for_all(const RankEnvironment& environment, const Store& store,
                  const Deadline& deadline) {
  const auto key = [](int rank) { return fmt::format("here/{}", rank); };
  const std::string mine = fmt::format("{} {}", environment.size, std::random_device()());
  try {
    write_text(*store, key(environment.rank), mine);
    for (int rank = 0; rank < environment.size; ++rank) {
      while (!store->check({key(rank)})) {
        if (deadline.over())
          fail_to_meet(environment, deadline.seconds(), fmt::format("rank {} has not come", rank));
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      const std::string other = read_text(*store, key(rank));
      if (const std::string size = other.substr(0, other.find(' '));
          size != std::to_string(environment.size))
        fail(
            "rank {} was started as one of {} processes and rank {} as one of {}; give all of them "
            "the same number (WORLD_SIZE)",
            environment.rank, environment.size, rank, size);
      if (rank == environment.rank && other != mine)
        fail("another process says that it is rank {}, too; give each a number of its own (RANK)",
             rank);
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    fail_to_meet(environment, deadline.seconds(), first_line(e));
  }
}

// Beforehand, as c10d would log its own words about it first.
void require_place_to_listen(const RankEnvironment& environment) {
  try {
    require_free_port(environment.port);
  } catch (const Error& e) {
    fail_to_listen(e.what());
  }
}

// The network interface that the user wants, or null.
const char* named_interface() {
  const char* const name = std::getenv("GLOO_SOCKET_IFNAME");
  return name && *name ? name : nullptr;
}

Store meet(const RankEnvironment& environment, const Deadline& deadline) {
  require_known_address(environment);
  if (const char* const interface = named_interface()) require_known_interface(interface);
  const bool listen = environment.rank == 0 && !environment.launcher_listens;
  if (listen) require_place_to_listen(environment);
  Store store = open_store(environment, listen, deadline);
  wait_for_all(environment, store, deadline);
  return store;
}

class StoreBoard : public SharedBoard {
 public:
  StoreBoard(Store store, double patience) : store_(std::move(store)) {
    store_->setTimeout(milliseconds(patience));
  }
  void set(const std::string& key, const std::string& value) override {
    write_text(*store_, key, value);
  }
  bool has(const std::string& key) override { return store_->check({key}); }
  std::string get(const std::string& key) override { return read_text(*store_, key); }

 private:
  Store store_;
};

class Gloo : public c10d::ProcessGroupGloo {
 public:
  using ProcessGroupGloo::ProcessGroupGloo;
  // How long calls wait for other ranks, which may compute for hours in between: it is not for
  // calls to find out that one is gone (training/liveness.h). While connecting patience is shorter.
  void wait_without_end() {
    for (const auto& context : contexts_) context->setTimeout(std::chrono::hours(24 * 365));
  }
};

c10::intrusive_ptr<Gloo> make_gloo(const RankEnvironment& environment, const Store& store,
                                   const Deadline& deadline) {
  auto options = c10d::ProcessGroupGloo::Options::create(milliseconds(deadline.left()));
  try {
    if (const char* const interface = named_interface())
      options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForInterface(interface));
    else if (is_loopback(environment.address))
      options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
    else
      options->devices.push_back(c10d::ProcessGroupGloo::createDefaultDevice());
    options->threads = 2;
    auto gloo = c10::make_intrusive<Gloo>(c10::make_intrusive<c10d::PrefixStore>("gloo", store),
                                          environment.rank, environment.size, options);
    gloo->wait_without_end();
    return gloo;
  } catch (const std::exception& e) {
    fail_to_meet(environment, deadline.seconds(), first_line(e));
  }
}

class GlooGroup : public ConnectedGroup {
 public:
  GlooGroup(const RankEnvironment& environment, const GroupOptions& options,
            const Deadline& deadline)
      : rank_(environment.rank),
        size_(environment.size),
        store_(meet(environment, deadline)),
        gloo_(make_gloo(environment, store_, deadline)),
        // A connection of its own: the store's calls exclude each other, and some wait.
        liveness_(std::make_unique<Liveness>(
            std::make_unique<StoreBoard>(open_store(environment, false, deadline),
                                         options.silence_seconds),
            rank_, size_, LivenessOptions{.silence_seconds = options.silence_seconds})) {}

  ~GlooGroup() override {
    liveness_.reset();
    // A call that was given up never ends, and destroying the group would wait for it.
    if (given_up_) (void)gloo_.release();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::stop_token failure() const override { return liveness_->failure(); }
  void report_failure(const std::string& why) noexcept override { liveness_->report(why); }

  std::vector<std::string> all_gather(std::string_view mine) override {
    const std::vector<Tensor> lengths =
        gather(at::full({1}, static_cast<int64_t>(mine.size()), at::kLong));
    int64_t longest = 1;  // Gloo takes no empty tensor
    for (const Tensor& length : lengths) longest = std::max(longest, length.item<int64_t>());
    const Tensor padded = at::zeros({longest}, at::kByte);
    std::memcpy(padded.data_ptr(), mine.data(), mine.size());
    const std::vector<Tensor> all = gather(padded);
    std::vector<std::string> out;
    for (size_t r = 0; r < all.size(); ++r)
      out.emplace_back(static_cast<const char*>(all[r].data_ptr()),
                       static_cast<size_t>(lengths[r].item<int64_t>()));
    return out;
  }

  // Each rank sums one piece of everybody's values, then all pieces go to everybody: as many bytes
  // as a ring moves, but in an order of summation that we choose.
  void sum(std::span<float> values) override {
    if (values.empty()) return;
    const int64_t count = static_cast<int64_t>(values.size());
    const int64_t piece = (count + size_ - 1) / size_;
    Tensor mine = at::empty({size_ * piece}, at::kFloat), received = at::empty_like(mine);
    float* data = mine.data_ptr<float>();
    std::memcpy(data, values.data(), values.size_bytes());
    std::fill(data + count, data + size_ * piece, 0.0f);
    std::vector<int64_t> counts(static_cast<size_t>(size_), piece);
    finish([&] { return gloo_->alltoall_base(received, mine, counts, counts); });
    const float* rows = received.data_ptr<float>();
    std::vector<Tensor> pieces = gather(sum_by_halves(
        0, size_,
        [&](int r) {
          const Tensor row = at::empty({piece}, at::kFloat);
          std::memcpy(row.data_ptr(), rows + r * piece, sizeof(float) * static_cast<size_t>(piece));
          return row;
        },
        [](Tensor& left, const Tensor& right) { left.add_(right); }));
    for (int r = 0; r < size_; ++r) {
      const int64_t begin = std::min(count, r * piece), end = std::min(count, begin + piece);
      std::memcpy(values.data() + begin, pieces[static_cast<size_t>(r)].data_ptr(),
                  sizeof(float) * static_cast<size_t>(end - begin));
    }
  }

  void broadcast(std::span<float> values) override {
    if (values.empty()) return;
    broadcast_bytes(values.data(), values.size_bytes());
  }

  void broadcast(std::string& text) override {
    int64_t length = static_cast<int64_t>(text.size());
    broadcast_bytes(&length, sizeof(length));
    text.resize(static_cast<size_t>(length));
    if (length > 0) broadcast_bytes(text.data(), text.size());
  }

 private:
  std::vector<Tensor> gather(const Tensor& mine) {
    std::vector<Tensor> inputs{mine};
    std::vector<std::vector<Tensor>> outputs(1);
    for (int r = 0; r < size_; ++r) outputs[0].push_back(at::empty_like(mine));
    finish([&] { return gloo_->allgather(outputs, inputs); });
    return outputs[0];
  }

  // The tensor is a copy: a call that is given up may still write to it.
  void broadcast_bytes(void* data, size_t bytes) {
    std::vector<Tensor> tensors{at::empty({static_cast<int64_t>(bytes)}, at::kByte)};
    std::memcpy(tensors[0].data_ptr(), data, bytes);
    finish([&] { return gloo_->broadcast(tensors); });
    std::memcpy(data, tensors[0].data_ptr(), bytes);
  }

  // Waits for a call's end or for the news that it will not come.
  template <typename Start>
  void finish(const Start& start) {
    require_all_well();
    try {
      const auto work = start();
      for (int polls = 0; !work->isCompleted(); ++polls) {
        if (liveness_->failure().stop_requested()) {
          given_up_ = true;
          require_all_well();
        }
        std::this_thread::sleep_for(std::chrono::microseconds(polls < 200 ? 20 : 500));
      }
      work->wait();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& e) {
      // A peer that fails reports why before it closes its connection.
      liveness_->look_for_report(0.3);
      require_all_well();
      fail(
          "the connection to another process of the run is lost ({}): it was killed, ran out of "
          "memory or its machine is gone",
          first_line(e));
    }
  }

  void require_all_well() const {
    if (const std::string why = liveness_->why(); !why.empty())
      fail("another process of the run has failed: {}", why);
  }

  int rank_, size_;
  Store store_;
  c10::intrusive_ptr<Gloo> gloo_;
  std::unique_ptr<Liveness> liveness_;
  bool given_up_ = false;
};

}  // namespace

std::unique_ptr<ConnectedGroup> connect_processes(const RankEnvironment& environment,
                                                  const GroupOptions& options) {
  // Rank 0 has two connections to the store from each process, each process one to every other; the
  // store's and Gloo's threads end the program where one more cannot be opened.
  ensure_open_files(64 + 4 * static_cast<uint64_t>(environment.size));
  return std::make_unique<GlooGroup>(environment, options, Deadline(options.connect_seconds));
}

}  // namespace sol

#else

namespace sol {

std::unique_ptr<ConnectedGroup> connect_processes(const RankEnvironment&, const GroupOptions&) {
  fail(
      "the LibTorch that this program was built with has no Gloo, by which processes would train "
      "together; Debian's libtorch-dev has it");
}

}  // namespace sol

#endif
