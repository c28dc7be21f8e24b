// Which frame of a recorded call stack is the user's.

#ifndef PLUMBLINE_RECORD_CALL_STACK_H_
#define PLUMBLINE_RECORD_CALL_STACK_H_

#include <string>
#include <string_view>
#include <vector>

namespace plumbline {

// Whether a frame ("File PATH, line N, in F, ...") is one of PyTorch's dispatch or of a recording
// tool, which says nothing about the model.
bool IsForeignFrame(std::string_view frame);

// The innermost frame that is not foreign, on one line; the innermost frame at all if there is no
// other; empty for an empty stack.
std::string UserFrame(const std::vector<std::string>& stack);

}  // namespace plumbline

#endif  // PLUMBLINE_RECORD_CALL_STACK_H_
