// The files of a gradient probe, written in the background:
//
//   {dump_path}/rank{R}/grad_summary_{step}.csv
//   {dump_path}/rank{R}/step{step}/{parameter}.npy      signs, a byte per element
//   {dump_path}/rank{R}/step{step}/signs.plumb          or packed, a bit per element

#ifndef PLUMBLINE_WATCH_GRADIENTS_GRADIENT_FILES_H_
#define PLUMBLINE_WATCH_GRADIENTS_GRADIENT_FILES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "formats/table/grad_summary.h"
#include "plumbline/result.h"
#include "store/tensor_writer.h"

namespace plumbline::gradients {

// Signs of a gradient as in formats/array/sign_pack.h, shared by those who write and who may write
// them again.
struct Signs {
  std::shared_ptr<uint8_t[]> bits;
  size_t bytes = 0;
};

// What is written of a step.
struct Step {
  int64_t number = 0;
  std::vector<grad_summary::Row> rows;
  std::vector<Signs> signs;  // of each row; empty at level L0
};

// The directory of one rank. A step's csv file appears when all of its files are there, and the
// directory of its signs only whole: a killed process leaves whole steps. Thread-compatible.
class GradientFiles {
 public:
  // Makes {dump_path}/rank{R} and holds it. Steps of an earlier run in it are moved aside with it,
  // to rank{R}_earlier{n}, with a warning. Where another process holds it, rank{R}_{pid} is taken,
  // with a warning. kIo.
  static Result<std::unique_ptr<GradientFiles>> Create(const std::string& dump_path, int rank,
                                                       grad_summary::Columns columns, bool packed);
  // Waits for what is queued.
  ~GradientFiles();
  GradientFiles(const GradientFiles&) = delete;
  GradientFiles& operator=(const GradientFiles&) = delete;

  // Queues a step, which may be one written before with more in it. Waits while the one before is
  // still to be written.
  void Write(Step step);
  void Drain() { writer_.Drain(); }

  [[nodiscard]] const std::string& path() const { return directory_.path(); }

 private:
  GradientFiles(Directory directory, File lock, grad_summary::Columns columns, bool packed)
      : directory_(std::move(directory)),
        lock_(std::move(lock)),
        columns_(std::move(columns)),
        packed_(packed),
        writer_("plumb-grad") {}

  // On the writer's thread.
  Status WriteStep(const Step& step);
  Status WriteSigns(const Step& step, const std::string& directory) const;

  const Directory directory_;
  File lock_;
  const grad_summary::Columns columns_;
  const bool packed_;
  uint64_t lost_ = 0;  // steps that could not be written; of the writer's thread
  Worker writer_;      // last: its thread uses the rest
};

}  // namespace plumbline::gradients

#endif  // PLUMBLINE_WATCH_GRADIENTS_GRADIENT_FILES_H_
