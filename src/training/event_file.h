// TensorBoard's event files: TFRecord frames (tensorflow/core/lib/io/record_writer.h) around Event
// messages (tensorflow/core/util/event.proto), of which only scalars, histograms and the mark of a
// session's start are written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace sol {

struct EventScalar {
  std::string tag;
  double value = 0;  // written as float32
};

// Counts of values that are a few known numbers.
struct EventHistogram {
  std::string tag;
  std::vector<double> values;  // ascending
  std::vector<double> counts;  // as many
};

// A frame: the length (64 bits), its masked CRC-32C, the data, theirs; little-endian.
std::string tfrecord(std::string_view data);

class EventFile {
 public:
  // Begins DIR/events.out.tfevents.TIME.STEP.sol, TIME in seconds since 1970: TensorBoard reads
  // the files of a directory in the order of their names. Events of earlier files at `first_step`
  // and beyond are void: a resumed run makes them again. Throws Error when it cannot be written.
  EventFile(const std::filesystem::path& dir, int64_t first_step);

  // One event with all of them, visible to readers when this returns. Throws Error naming the file.
  void append(int64_t step, const std::vector<EventScalar>& scalars,
              const std::vector<EventHistogram>& histograms);

  const std::filesystem::path& path() const { return path_; }

 private:
  void write(std::string_view frames, bool create = false);
  std::filesystem::path path_;
};

// Deletes the event files in `dir` that EventFile has written, for a run that begins anew.
void remove_event_files(const std::filesystem::path& dir);

}  // namespace sol
