// plumb overflow DIR --grade.

#ifndef PLUMBLINE_CLI_COMMANDS_OVERFLOW_GRADE_H_
#define PLUMBLINE_CLI_COMMANDS_OVERFLOW_GRADE_H_

#include <string>

namespace plumbline::cli {

struct GradeArguments {
  std::string path;
  std::string output;  // directory
  int threads = 0;
  bool fails_on_anomaly = false;
  bool allows_partial = false;
  bool is_machine = false;  // JSON on stdout
};

// Prints the answer; the exit status.
int RunOverflowGrade(const GradeArguments& arguments);

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_COMMANDS_OVERFLOW_GRADE_H_
