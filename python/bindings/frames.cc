#include "frames.h"

#if PY_VERSION_HEX < 0x030b0000
#include <frameobject.h>  // later ones have what is needed of it in Python.h
#endif

#include <string_view>

#include "callback.h"

namespace plumbline::python {
namespace {

std::string_view Utf8(PyObject* text) {
  Py_ssize_t length = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(text, &length);
  if (bytes == nullptr) {
    DropError();  // lone surrogates in a path: no text
    return {};
  }
  return {bytes, static_cast<size_t>(length)};
}

int InstructionOf(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030b0000
  return PyFrame_GetLasti(frame);
#else
  return frame->f_lasti * 2;
#endif
}

// An attribute of a code object that is a text; empty if it has surrogates.
std::string AttributeText(PyCodeObject* code, const char* name) {
  PyObject* text = PyObject_GetAttrString(reinterpret_cast<PyObject*>(code), name);
  const std::string copy(text == nullptr ? std::string_view() : Utf8(text));
  if (text == nullptr) DropError();
  Py_XDECREF(text);
  return copy;
}

// Source line `number` of the file of `code`, stripped; empty if there is none.
std::string SourceLine(PyCodeObject* code, int number) {
  std::string line;
  PyObject* module = PyImport_ImportModule("linecache");
  PyObject* path = PyObject_GetAttrString(reinterpret_cast<PyObject*>(code), "co_filename");
  PyObject* text = module == nullptr || path == nullptr
                       ? nullptr
                       : PyObject_CallMethod(module, "getline", "Oi", path, number);
  PyObject* stripped = text == nullptr ? nullptr : PyObject_CallMethod(text, "strip", nullptr);
  if (stripped != nullptr) line = Utf8(stripped);
  if (PyErr_Occurred() != nullptr) DropError();
  Py_XDECREF(stripped);
  Py_XDECREF(text);
  Py_XDECREF(path);
  Py_XDECREF(module);
  return line;
}

}  // namespace

StackTable::~StackTable() {
  for (const auto& [code, info] : codes_) Py_DECREF(reinterpret_cast<PyObject*>(code));
}

const StackTable::CodeInfo& StackTable::InfoOf(PyCodeObject* code) {
  const auto found = codes_.find(code);
  if (found != codes_.end()) return found->second;
  Py_INCREF(reinterpret_cast<PyObject*>(code));
  const std::string path = AttributeText(code, "co_filename");
  const std::string name = AttributeText(code, "co_name");
  CodeInfo info;
  info.is_own = !own_directory_.empty() && path.starts_with(own_directory_);
  info.is_recompute_function =
      name == "recompute_fn" && path.ends_with("torch/utils/checkpoint.py");
  info.is_backward_function = name == "backward" || name == "checkpoint_function_backward";
  info.is_autograd_function_file = path.ends_with("torch/autograd/function.py");
  return codes_.emplace(code, info).first->second;
}

StackInfo StackTable::Current() {
  scratch_.clear();
  size_t hash = 0;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame != nullptr) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const int instruction = InstructionOf(frame);
    scratch_.push_back({code, instruction});
    hash = (hash ^ reinterpret_cast<size_t>(code) ^ static_cast<size_t>(instruction)) *
           size_t{0x9e3779b97f4a7c15};
    hash ^= hash >> 29;
    PyFrameObject* outer = PyFrame_GetBack(frame);
    // The frame chain is alive while this thread stands here, and so are its code objects.
    Py_DECREF(reinterpret_cast<PyObject*>(code));
    Py_DECREF(reinterpret_cast<PyObject*>(frame));
    frame = outer;
  }
  return Intern(hash);
}

StackInfo StackTable::Intern(size_t hash) {
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const Stack& stack = stacks_[it->second - 1];
    if (stack.keys == scratch_) return {it->second, stack.is_recompute};
  }
  Stack stack;
  stack.keys = scratch_;
  for (size_t i = 0; i < stack.keys.size(); ++i) {
    const CodeInfo info = InfoOf(stack.keys[i].code);
    stack.is_recompute |= info.is_recompute_function;
    for (size_t outer = i + 1; info.is_backward_function && outer <= i + 2; ++outer) {
      if (outer < stack.keys.size()) {
        stack.is_recompute |= InfoOf(stack.keys[outer].code).is_autograd_function_file;
      }
    }
    if (info.is_own) continue;
    const std::string& text = TextOf(stack.keys[i]);
    if (!text.empty()) stack.frames.push_back(text);
  }
  stacks_.push_back(std::move(stack));
  const auto id = static_cast<uint32_t>(stacks_.size());
  by_hash_.emplace(hash, id);
  return {id, stacks_.back().is_recompute};
}

const std::string& StackTable::TextOf(const Key& key) {
  auto& lines = texts_[key.code];
  const auto found = lines.find(key.instruction);
  if (found != lines.end()) return found->second;
  const int line = PyCode_Addr2Line(key.code, key.instruction);
  std::string text;
  const std::string source = SourceLine(key.code, line);
  if (!source.empty()) {
    text = "File ";
    text += AttributeText(key.code, "co_filename");
    text += ", line " + std::to_string(line) + ", in ";
    text += AttributeText(key.code, "co_name");
    text += ", \n ";
    text += source;
  }
  return lines.emplace(key.instruction, std::move(text)).first->second;
}

}  // namespace plumbline::python
