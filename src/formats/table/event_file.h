// Event files of TensorBoard: scalars and images over steps. Each record is
//
//   length u64 | masked CRC-32C of it u32 | message Event | masked CRC-32C of it u32
//
// little-endian (tensorflow/core/lib/io/record_writer.h, tensorflow/core/util/event.proto).

#ifndef PLUMBLINE_FORMATS_TABLE_EVENT_FILE_H_
#define PLUMBLINE_FORMATS_TABLE_EVENT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/file/file.h"
#include "base/file/text_file.h"
#include "base/text/protobuf_wire.h"
#include "plumbline/result.h"

namespace plumbline::event_file {

// What the names of such files begin with; TensorBoard shows every file of a directory that has it.
inline constexpr std::string_view kNameStart = "events.out.tfevents.";
inline constexpr std::string_view kUnfinished = "unfinished-events";

// Writes one file, which appears when it is complete. Single-threaded; move-only. Errors are those
// of TextFile.
class Writer {
 public:
  // `wall_time`: of all its events, in seconds since 1970. Until Close() the directory has files
  // whose names begin with kUnfinished or a dot and kUnfinished: TensorBoard shows every file with
  // "tfevents" anywhere in its name.
  static Result<Writer> Create(const std::string& directory, const std::string& name,
                               double wall_time);

  // Tags of one step follow each other, so that they share a record; steps grow.
  Status AddScalar(std::string_view tag, int64_t step, float value);
  Status Close();

 private:
  Writer(TextFile file, std::string unfinished, std::string path, double wall_time)
      : file_(std::move(file)),
        unfinished_(std::move(unfinished)),
        path_(std::move(path)),
        wall_time_(wall_time) {}
  Status EndStep();
  Status WriteRecord(std::string_view event);

  TextFile file_;
  std::string unfinished_, path_;
  double wall_time_;
  int64_t step_ = 0;
  protobuf::MessageWriter summary_;  // of the step
};

// Writes one file that TensorBoard may show meanwhile: each step is there, whole, as soon as it is
// ended. Single-threaded; move-only. kIo.
class LiveWriter {
 public:
  static Result<LiveWriter> Create(const std::string& path, double wall_time);

  void AddScalar(std::string_view tag, float value);
  // `png`: the bytes of a file of that size, in colours without transparency.
  void AddImage(std::string_view tag, std::string_view png, uint32_t width, uint32_t height);
  // Writes what was added.
  Status EndStep(int64_t step, double wall_time);
  Status Close() { return file_.Close(); }
  // Of the steps that were written.
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  explicit LiveWriter(File file) : file_(std::move(file)) {}

  File file_;
  protobuf::MessageWriter summary_;
  std::string records_;  // of the step
  uint64_t bytes_ = 0;
};

}  // namespace plumbline::event_file

#endif  // PLUMBLINE_FORMATS_TABLE_EVENT_FILE_H_
