// Work that may crash, such as that of a library on damaged files, in a process of its own.

#ifndef PLUMBLINE_BASE_PROCESS_ISOLATED_RUN_H_
#define PLUMBLINE_BASE_PROCESS_ISOLATED_RUN_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline {

// Runs `work` in a fork of this process and waits for it; the exit status that `work` returned.
// What it changes in memory is lost, what it prints and writes to files is not. It ends with this
// process, and this process with it where somebody interrupts or terminates the work. Requires:
// this process has no other thread that holds locks which `work` needs.
// kCorrupt: the work crashed or was killed; the message says by which signal ("ended by signal 11
// (Segmentation fault)") and has no path. kIo: no process could be made.
Result<int> RunIsolated(const std::function<int()>& work);

// The same for work that makes bytes, which are handed over, or its own error. kIo also: there is
// no memory for the bytes.
Result<Result<std::vector<std::byte>>> RunIsolatedFor(
    const std::function<Result<std::string>()>& work);

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_PROCESS_ISOLATED_RUN_H_
