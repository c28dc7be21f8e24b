#include "module_loader.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string>

#include "plumbline/c_api.h"

namespace plumbline::cli {

Result<const void*> LoadModule(const ModuleName& name) {
  const std::string file = fmt::format("{}-{}.so", name.file, PLUMBLINE_VERSION);
  void* const module = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  const void* const exported = module == nullptr ? nullptr : dlsym(module, name.symbol);
  if (exported != nullptr) return exported;
  return Error(ErrorCode::kUnsupported,
               fmt::format("{} cannot be loaded ({}). Install plumbline and {} again", name.subject,
                           dlerror(), name.library));
}

Error NotInThisBuild(const char* subject, const char* option) {
  return {ErrorCode::kUnsupported,
          fmt::format("{} is not in this build. Build plumbline with -D{}=ON", subject, option)};
}

}  // namespace plumbline::cli
