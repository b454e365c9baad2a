#include "training/event_file.h"

#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>

#include "base/crc32c.h"
#include "base/fail.h"

namespace sol {
namespace {

namespace fs = std::filesystem;

// TensorBoard reads files whose names begin so; the end tells ours from other programs'.
constexpr std::string_view name_start = "events.out.tfevents.", name_end = ".sol";

// Protocol buffers' encoding of the few types that are needed.
class Message {
 public:
  void number(int field, uint64_t value) {
    tag(field, 0);
    varint(value);
  }
  void number(int field, double value) {
    tag(field, 1);
    fixed(std::bit_cast<uint64_t>(value));
  }
  void number(int field, float value) {
    tag(field, 5);
    fixed(std::bit_cast<uint32_t>(value));
  }
  void bytes(int field, std::string_view value) {
    tag(field, 2);
    varint(value.size());
    out_ += value;
  }
  void packed(int field, const std::vector<double>& values) {
    Message list;
    for (const double value : values) list.fixed(std::bit_cast<uint64_t>(value));
    bytes(field, list.out_);
  }
  template <typename T>
  void fixed(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) out_ += static_cast<char>(value >> (8 * i) & 0xFF);
  }
  const std::string& text() const { return out_; }

 private:
  void tag(int field, unsigned type) { varint(static_cast<uint64_t>(field) << 3 | type); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }
  std::string out_;
};

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Event: wall_time = 1, step = 2.
Message event(int64_t step) {
  Message message;
  message.number(1, now());
  message.number(2, static_cast<uint64_t>(step));
  return message;
}

// HistogramProto: min = 1, max, num, sum, sum_squares, bucket_limit = 6, bucket = 7. A bucket ends
// half-way to the next value.
Message histogram_message(const EventHistogram& histogram) {
  const std::vector<double>& v = histogram.values;
  double count = 0, sum = 0, squares = 0;
  std::vector<double> limits;
  for (size_t i = 0; i < v.size(); ++i) {
    count += histogram.counts[i];
    sum += histogram.counts[i] * v[i];
    squares += histogram.counts[i] * v[i] * v[i];
    limits.push_back(i + 1 < v.size() ? (v[i] + v[i + 1]) / 2 : v[i]);
  }
  Message message;
  message.number(1, v.front());
  message.number(2, v.back());
  message.number(3, count);
  message.number(4, sum);
  message.number(5, squares);
  message.packed(6, limits);
  message.packed(7, histogram.counts);
  return message;
}

uint32_t masked(uint32_t crc) {
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

}  // namespace

std::string tfrecord(std::string_view data) {
  Message length;
  length.fixed(uint64_t{data.size()});
  Message record = length;
  record.fixed(masked(crc32c(length.text())));
  std::string frame = record.text();
  frame += data;
  Message end;
  end.fixed(masked(crc32c(data)));
  return frame + end.text();
}

EventFile::EventFile(const fs::path& dir, int64_t first_step) {
  for (auto time = static_cast<int64_t>(now());; ++time) {
    path_ = dir / fmt::format("{}{:010}.{:010}{}", name_start, time, first_step, name_end);
    std::error_code error;
    if (!fs::exists(path_, error)) break;
  }
  Message version;  // of the format: file_version = 3
  version.number(1, now());
  version.bytes(3, "brain.Event:2");
  Message session;  // SessionLog: status = 1, of which START is 1
  session.number(1, uint64_t{1});
  Message start = event(first_step);
  start.bytes(7, session.text());
  write(tfrecord(version.text()) + tfrecord(start.text()), true);
}

// Summary.Value: tag = 1, simple_value = 2, histo = 5. Event: summary = 5.
void EventFile::append(int64_t step, const std::vector<EventScalar>& scalars,
                       const std::vector<EventHistogram>& histograms) {
  Message summary;
  for (const EventScalar& scalar : scalars) {
    Message value;
    value.bytes(1, scalar.tag);
    value.number(2, static_cast<float>(scalar.value));
    summary.bytes(1, value.text());
  }
  for (const EventHistogram& histogram : histograms) {
    if (histogram.values.empty()) continue;
    Message value;
    value.bytes(1, histogram.tag);
    value.bytes(5, histogram_message(histogram).text());
    summary.bytes(1, value.text());
  }
  Message whole = event(step);
  whole.bytes(5, summary.text());
  write(tfrecord(whole.text()));
}

void EventFile::write(std::string_view frames, bool create) {
  std::ofstream out(path_, std::ios::binary | (create ? std::ios::trunc : std::ios::app));
  out.write(frames.data(), static_cast<std::streamsize>(frames.size()));
  out.close();
  if (!out) fail("{}: cannot be written: {}", path_.string(), std::strerror(errno));
}

void remove_event_files(const fs::path& dir) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator entries(dir, error); !error && entries != fs::directory_iterator();
       entries.increment(error))
    if (const std::string name = entries->path().filename().string();
        name.starts_with(name_start) && name.ends_with(name_end))
      found.push_back(entries->path());
  for (const fs::path& path : found)
    if (!error) fs::remove(path, error);
  if (error)
    fail("{}: the event files of an earlier run cannot be removed: {}", dir.string(),
         error.message());
}

}  // namespace sol
