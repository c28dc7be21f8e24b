// Walking Python arguments into packed entries.

#ifndef PLUMBLINE_PYTHON_BINDINGS_VALUES_H_
#define PLUMBLINE_PYTHON_BINDINGS_VALUES_H_

#include "python_api.h"

#include <string>
#include <string_view>

#include "framework.h"
#include "record/value.h"

namespace plumbline::python {

// Packs one tensor; implemented by the recorder.
class TensorSink {
 public:
  virtual ~TensorSink() = default;
  // `path`: position inside the entry, such as "input.0" or "kwargs.mask" (empty unless files are
  // written).
  virtual void PackTensor(PyObject* tensor, std::string_view path, EntryPacker& out) = 0;
  // A NumPy array, given as a tensor over its memory.
  virtual void PackArray(PyObject* tensor, std::string_view dtype_text, std::string_view path,
                         EntryPacker& out) = 0;
};

// Depth-first walk over arguments and results; the order and form of upstream's recursion
// (docs/formats/dump_json.md, "elements"). Never raises: a value that cannot be read becomes null
// and is counted. Requires the interpreter lock.
class ValueWalker {
 public:
  ValueWalker(const FrameworkTypes& types, TensorSink& sink, bool with_paths)
      : types_(types), sink_(sink), with_paths_(with_paths) {}

  // A list of `values` under the key `key`; `part` starts the paths ("input").
  void List(std::string_view key, std::string_view part, PyObject* const* values, Py_ssize_t count,
            EntryPacker& out);
  // An object of keyword arguments; names[i] belongs to values[i].
  void Keywords(std::string_view key, PyObject* names, PyObject* const* values, EntryPacker& out);
  // The same from a dict (module calls); null stands for no keywords.
  void Dict(std::string_view key, std::string_view part, PyObject* dict, EntryPacker& out);
  // A result: a tuple becomes a list of its items, anything else a list of one.
  void Result(std::string_view key, std::string_view part, PyObject* value, EntryPacker& out);
  // One value, no key.
  void Value(PyObject* value, EntryPacker& out) { Walk(value, {}, 0, out); }

  void set_path(std::string_view path) { path_ = path; }
  // Values that raised while they were read, since construction.
  [[nodiscard]] int failures() const { return failures_; }

 private:
  void Walk(PyObject* value, std::string_view key, int depth, EntryPacker& out);
  bool WalkScalar(PyObject* value, EntryPacker& out);
  bool WalkFrameworkObject(PyObject* value, std::string_view key, EntryPacker& out);
  void WalkSequence(PyObject* sequence, int depth, EntryPacker& out);
  void WalkDict(PyObject* dict, int depth, EntryPacker& out);
  // `pairs`: list of (key, value).
  void WalkPairs(PyObject* pairs, int depth, EntryPacker& out);
  void WalkSlice(PyObject* slice, EntryPacker& out);
  void WalkDescribed(PyObject* value, int depth, EntryPacker& out);
  void Fail();
  // Whether `value` is being walked already: it contains itself.
  [[nodiscard]] bool IsInside(PyObject* value) const;
  // False: one value too many for this entry.
  bool Spend();

  // Extends path_ for one nested value; restores it when destroyed.
  class Step {
   public:
    Step(ValueWalker& walker, std::string_view segment);
    Step(ValueWalker& walker, Py_ssize_t index);
    ~Step() { walker_.path_.resize(size_); }

   private:
    ValueWalker& walker_;
    size_t size_;
  };

  const FrameworkTypes& types_;
  TensorSink& sink_;
  bool with_paths_;
  std::string path_;
  int failures_ = 0;
  // Containers being walked, on the stack of the walk; borrowed.
  struct Container {
    PyObject* value;
    const Container* outer;
  };
  const Container* innermost_ = nullptr;
  int64_t walked_ = 0;
};

// Packs what json.dump would write of `value`: None, bool, int, float, str, lists, dicts. Anything
// else becomes its text. Deeper than 400 levels: null.
void PackJson(PyObject* value, int depth, EntryPacker& out);
// The members of a dict, without the map around them.
void PackJsonMembers(PyObject* dict, int depth, EntryPacker& out);

// Text of a str object; empty (error cleared) if it has no UTF-8 form.
std::string_view TextOf(PyObject* text);
// The same, owned; lone surrogates are kept, in three bytes each.
std::string TextCopyOf(PyObject* text);
// A dict key as json.dumps spells it; a key of another type as its text; failing that, as its type.
std::string KeyText(PyObject* key);
// str(object), empty on failure (error cleared).
std::string StrOf(PyObject* object);

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_VALUES_H_
