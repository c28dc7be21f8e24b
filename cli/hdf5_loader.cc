#include "base/process/isolated_run.h"
#include "formats/hdf5/hdf5_crash.h"
#include "hdf5_functions.h"
#include "module_loader.h"

namespace plumbline::cli {
namespace {

constexpr const char* kSubject = ".h5 files: the part of plumb that reads them";

}  // namespace

Result<const Hdf5Functions*> LoadHdf5Functions() {
#ifdef PLUMBLINE_WITHOUT_HDF5
  return NotInThisBuild(kSubject, "PLUMBLINE_HDF5");
#else
  PL_TRY_ASSIGN(const void* functions,
                LoadModule({.file = "plumb_hdf5",
                            .symbol = kHdf5Symbol,
                            .subject = kSubject,
                            .library = "the HDF5 library"}));
  return static_cast<const Hdf5Functions*>(functions);
#endif
}

Result<int> RunOnHdf5(const std::string& paths, const std::function<int()>& work) {
  Result<int> status = RunIsolated(work);
  if (!status) return hdf5::CrashOn(paths, status.error());
  return status;
}

}  // namespace plumbline::cli
