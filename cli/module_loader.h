// Parts of `plumb` that need libraries of their own lie in modules beside it, which only the
// commands that use them load: a library that is linked takes its time at every start.

#ifndef PLUMBLINE_CLI_MODULE_LOADER_H_
#define PLUMBLINE_CLI_MODULE_LOADER_H_

#include "plumbline/result.h"

namespace plumbline::cli {

struct ModuleName {
  const char* file;     // "plumb_hdf5": the file is plumb_hdf5-<version>.so
  const char* symbol;   // of the variable that it exports
  const char* subject;  // what cannot be done without it: ".h5 files: the part of plumb that ..."
  const char* library;  // "the HDF5 library"
};

// The variable of that name in the module, which lies where the program's run path says
// (cli/CMakeLists.txt) and carries the program's version in its name: one of another version is not
// found. It stays loaded. kUnsupported: the module or a library that it needs is missing.
Result<const void*> LoadModule(const ModuleName& name);

// kUnsupported: `subject` was left out when plumb was built, by that option of CMake.
Error NotInThisBuild(const char* subject, const char* option);

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_MODULE_LOADER_H_
