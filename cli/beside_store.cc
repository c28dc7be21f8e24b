#include "beside_store.h"

#include <string_view>

#include "base/file/object_store.h"
#include "python_program.h"
#include "terminal.h"

namespace plumbline::cli {

std::vector<std::string> StoredPaths(const std::vector<std::string>& words) {
  std::vector<std::string> paths;
  for (const std::string& word : words) {
    const std::string_view path = object_store::NamedBy(word);
    if (!path.empty()) paths.emplace_back(path);
  }
  return paths;
}

Error RunBesideStore(const std::vector<std::string>& words, const std::vector<std::string>& paths) {
  PL_TRY_ASSIGN(const std::string self, OwnProgram());
  std::vector<std::string> all = {"--"};
  all.insert(all.end(), paths.begin(), paths.end());
  all.insert(all.end(), {"--", self});
  all.insert(all.end(), words.begin(), words.end());
  return BecomePython("",
                      {"plumbline.objects",
                       "plumb: {0}: {1} (a path in a store needs a Python with "
                       "plumbline; PLUMBLINE_PYTHON names it)",
                       ExitStatus(ErrorCode::kInvalidArgument)},
                      all);
}

}  // namespace plumbline::cli
