// Call stacks as interned frame walks: one id per distinct stack, text made once per id.

#ifndef PLUMBLINE_PYTHON_BINDINGS_FRAMES_H_
#define PLUMBLINE_PYTHON_BINDINGS_FRAMES_H_

#include "python_api.h"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/call_recorder.h"

namespace plumbline::python {

using capture::StackInfo;

// Table of call stacks. Requires the interpreter lock. Holds the code objects it has seen.
class StackTable {
 public:
  ~StackTable();

  // The stack of the calling thread, without frames of plumbline itself. About 0.05 us per frame.
  // Its number is stable for the life of the table.
  StackInfo Current();

  // Texts of the frames of a stack, innermost first: `File {path}, line {n}, in {function}, \n
  // {source line}`. Frames without source are left out.
  const std::vector<std::string>& FramesOf(uint32_t id) const { return stacks_[id - 1].frames; }

  // Frames whose file lies below this directory are plumbline's own.
  void set_own_directory(std::string directory) { own_directory_ = std::move(directory); }

 private:
  // What is known about a code object, looked up once.
  struct CodeInfo {
    bool is_own = false;
    bool is_recompute_function = false;      // recompute_fn in torch/utils/checkpoint.py
    bool is_backward_function = false;       // named backward or checkpoint_function_backward
    bool is_autograd_function_file = false;  // in torch/autograd/function.py
  };
  struct Key {
    PyCodeObject* code;
    int instruction;
    bool operator==(const Key&) const = default;
  };
  struct Stack {
    std::vector<Key> keys;
    std::vector<std::string> frames;
    bool is_recompute = false;
  };

  const CodeInfo& InfoOf(PyCodeObject* code);
  const std::string& TextOf(const Key& key);
  StackInfo Intern(size_t hash);

  std::string own_directory_;
  std::vector<Key> scratch_;
  std::vector<Stack> stacks_;
  std::unordered_multimap<size_t, uint32_t> by_hash_;
  std::unordered_map<PyCodeObject*, CodeInfo> codes_;  // owns a reference to each key
  std::unordered_map<PyCodeObject*, std::unordered_map<int, std::string>> texts_;
};

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_FRAMES_H_
