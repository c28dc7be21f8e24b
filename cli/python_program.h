// Commands whose work is a program in Python that belongs to the package.

#ifndef PLUMBLINE_CLI_PYTHON_PROGRAM_H_
#define PLUMBLINE_CLI_PYTHON_PROGRAM_H_

#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::cli {

// Path of the running program, for those who call it again.
Result<std::string> OwnProgram();

// This process goes on as `python -c program words...`, in the same directory, with the same
// environment and streams. Returns only where that is not possible: kNotFound, kIo.
// `python`: the interpreter; empty: as of precheck::FindPython().
Error BecomePython(const std::string& python, const char* program,
                   const std::vector<std::string>& words);

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_PYTHON_PROGRAM_H_
