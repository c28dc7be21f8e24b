#include "python_program.h"

#include <unistd.h>

#include <cerrno>

#include "base/file/file.h"
#include "precheck/executor_server.h"

namespace plumbline::cli {

Result<std::string> OwnProgram() { return RealPath("/proc/self/exe"); }

Error BecomePython(const std::string& python, const PythonModule& module,
                   const std::vector<std::string>& words) {
  // What lies in the working directory is none of the package.
  constexpr const char* kProgram =
      "import importlib, sys\n"
      "sys.path = [path for path in sys.path if path]\n"
      "name, complaint, status = sys.argv[1:4]\n"
      "del sys.argv[1:4]\n"
      "try:\n"
      "    module = importlib.import_module(name)\n"
      "except ImportError as error:\n"
      "    print(complaint.format(sys.executable, error), file=sys.stderr)\n"
      "    sys.exit(int(status))\n"
      "sys.exit(module.main())\n";
  const auto found = precheck::FindPython(python);
  if (!found) return found.error();
  std::vector<std::string> call = {
      *found, "-c", kProgram, module.name, module.complaint, std::to_string(module.status)};
  call.insert(call.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : call) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(pointers.front(), pointers.data());
  return ErrnoError(errno, *found, "run");
}

}  // namespace plumbline::cli
