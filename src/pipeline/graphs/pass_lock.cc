#include "pipeline/graphs/pass_lock.h"

#include <fmt/format.h>

#include <utility>

#include "record/run_files.h"

namespace plumbline::pipeline {

Result<PassLock> PassLock::Take(const std::string& directory) {
  PL_TRY_ASSIGN(Directory place, Directory::Open(directory));
  PL_TRY_ASSIGN(File file, File::OpenAppend(JoinPath(directory, run_files::kFinishLock)));
  PL_TRY_ASSIGN(const bool is_alone, file.TryLock());
  // A pass that ended in between has removed the file: another may hold one of that name.
  if (is_alone && place.Holds(run_files::kFinishLock, file)) {
    return PassLock(std::move(place), std::move(file));
  }
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: another pass is at work. Try again when it is done", directory));
}

PassLock::PassLock(Directory place, File file) : place_(std::move(place)), file_(std::move(file)) {}

PassLock::~PassLock() {
  // One that stays is taken over as that of a killed pass.
  if (file_.is_open()) static_cast<void>(place_.Remove(run_files::kFinishLock));
}

}  // namespace plumbline::pipeline
