#include <dlfcn.h>
#include <fmt/format.h>

#include "base/process/isolated_run.h"
#include "formats/hdf5/hdf5_crash.h"
#include "hdf5_functions.h"
#include "plumbline/c_api.h"

namespace plumbline::cli {

Result<const Hdf5Functions*> LoadHdf5Functions() {
  void* const module = dlopen("plumb_hdf5-" PLUMBLINE_VERSION ".so", RTLD_NOW | RTLD_LOCAL);
  const void* const functions = module == nullptr ? nullptr : dlsym(module, kHdf5Symbol);
  if (functions != nullptr) return static_cast<const Hdf5Functions*>(functions);
  return Error(ErrorCode::kUnsupported,
               fmt::format(".h5 files: the part of plumb that reads them cannot be loaded ({}). "
                           "Install plumbline and the HDF5 library again",
                           dlerror()));
}

Result<int> RunOnHdf5(const std::string& paths, const std::function<int()>& work) {
  Result<int> status = RunIsolated(work);
  if (!status) return hdf5::CrashOn(paths, status.error());
  return status;
}

}  // namespace plumbline::cli
