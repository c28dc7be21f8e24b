#include "python_program.h"

#include <unistd.h>

#include <cerrno>

#include "base/file/file.h"
#include "precheck/executor_server.h"

namespace plumbline::cli {

Result<std::string> OwnProgram() { return RealPath("/proc/self/exe"); }

Error BecomePython(const std::string& python, const char* program,
                   const std::vector<std::string>& words) {
  const auto found = precheck::FindPython(python);
  if (!found) return found.error();
  std::vector<std::string> call = {*found, "-c", program};
  call.insert(call.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : call) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(pointers.front(), pointers.data());
  return ErrnoError(errno, *found, "run");
}

}  // namespace plumbline::cli
