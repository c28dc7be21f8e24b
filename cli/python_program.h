// Commands whose work is a program in Python that belongs to the package.

#ifndef PLUMBLINE_CLI_PYTHON_PROGRAM_H_
#define PLUMBLINE_CLI_PYTHON_PROGRAM_H_

#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::cli {

// Path of the running program, for those who call it again.
Result<std::string> OwnProgram();

// A module of the package, whose main() reads sys.argv and returns the exit status.
struct PythonModule {
  std::string name;       // "plumbline.demo"
  std::string complaint;  // where it cannot be imported; {0}: the interpreter, {1}: why
  int status = 0;         // of the process then
};

// This process goes on as that module's main() with these words, in the same directory, with the
// same environment and streams. Returns only where that is not possible: kNotFound, kIo.
// `python`: the interpreter; empty: as of precheck::FindPython().
Error BecomePython(const std::string& python, const PythonModule& module,
                   const std::vector<std::string>& words);

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_PYTHON_PROGRAM_H_
