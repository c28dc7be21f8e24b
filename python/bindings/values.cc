#include "values.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "callback.h"

namespace plumbline::python {
namespace {

constexpr int kMaxDepth = 400;  // deeper containers are written as null (docs/formats/values.md)
// Values inside the containers of one entry; the rest is left out. A list that holds another twice,
// which holds a third twice, and so on, would otherwise fill the disk.
constexpr int64_t kMaxValues = 1'000'000;

bool IsInstance(PyObject* value, PyObject* type) {
  return type != nullptr && PyObject_TypeCheck(value, reinterpret_cast<PyTypeObject*>(type));
}

// "cuda:0"; a device without index gives "cpu:None", as upstream spells it.
std::string DeviceText(PyObject* device) {
  std::string text;
  PyObject* type = PyObject_GetAttrString(device, "type");
  PyObject* index = PyObject_GetAttrString(device, "index");
  if (type != nullptr && index != nullptr) text = StrOf(type) + ":" + StrOf(index);
  if (PyErr_Occurred() != nullptr) DropError();
  Py_XDECREF(type);
  Py_XDECREF(index);
  return text;
}

// "contiguous_format" of torch.contiguous_format.
std::string LastSegment(std::string text) {
  const size_t dot = text.rfind('.');
  return dot == std::string::npos ? text : text.substr(dot + 1);
}

// Decimal digits of an int; empty if there are more than sys.get_int_max_str_digits().
std::string DigitsOf(PyObject* number) {
  // int's own text: a subclass may have another, or one that raises.
  PyObject* text = PyNumber_ToBase(number, 10);
  std::string digits;
  if (text != nullptr) digits = TextOf(text);
  DropError();
  Py_XDECREF(text);
  return digits;
}

// False: the number is too long for decimal text, and null was packed.
bool PackInt(PyObject* value, EntryPacker& out) {
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow == 0) {
    out.Int(number);
    return true;
  }
  const std::string digits = DigitsOf(value);
  if (digits.empty()) {
    out.Null();
  } else {
    out.Big(digits);
  }
  return !digits.empty();
}

}  // namespace

std::string KeyText(PyObject* key) {
  if (PyUnicode_Check(key)) return TextCopyOf(key);
  if (key == Py_None) return "null";
  if (PyBool_Check(key)) return key == Py_True ? "true" : "false";
  std::string text;
  if (PyLong_Check(key)) {
    text = DigitsOf(key);
  } else if (PyFloat_CheckExact(key) && !std::isfinite(PyFloat_AS_DOUBLE(key))) {
    const double value = PyFloat_AS_DOUBLE(key);
    return std::isnan(value) ? "NaN" : (value > 0 ? "Infinity" : "-Infinity");
  } else {
    text = StrOf(key);
  }
  return text.empty() ? fmt::format("<{}>", TypeNameOf(key)) : text;
}

std::string_view TextOf(PyObject* text) {
  Py_ssize_t length = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(text, &length);
  if (bytes == nullptr) {
    DropError();
    return {};
  }
  return {bytes, static_cast<size_t>(length)};
}

std::string TextCopyOf(PyObject* text) {
  Py_ssize_t length = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(text, &length);
  if (bytes != nullptr) return {bytes, static_cast<size_t>(length)};
  DropError();  // lone surrogates: each in three bytes, as the writer of JSON takes them
  PyObject* encoded = PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass");
  std::string copy;
  if (encoded != nullptr) {
    copy.assign(PyBytes_AS_STRING(encoded), static_cast<size_t>(PyBytes_GET_SIZE(encoded)));
  }
  DropError();
  Py_XDECREF(encoded);
  return copy;
}

std::string StrOf(PyObject* object) {
  PyObject* text = PyObject_Str(object);
  if (text == nullptr) {
    DropError();
    return {};
  }
  std::string result = TextCopyOf(text);
  Py_DECREF(text);
  return result;
}

ValueWalker::Step::Step(ValueWalker& walker, std::string_view segment)
    : walker_(walker), size_(walker.path_.size()) {
  if (!walker_.with_paths_) return;
  if (size_ > 0) walker_.path_ += '.';
  walker_.path_ += segment;
}

ValueWalker::Step::Step(ValueWalker& walker, Py_ssize_t index)
    : walker_(walker), size_(walker.path_.size()) {
  if (!walker_.with_paths_) return;
  if (size_ > 0) walker_.path_ += '.';
  walker_.path_ += std::to_string(index);
}

void ValueWalker::Fail() {
  DropError();
  ++failures_;
}

void ValueWalker::List(std::string_view key, std::string_view part, PyObject* const* values,
                       Py_ssize_t count, EntryPacker& out) {
  out.Key(key);
  out.BeginList();
  const Step in_part(*this, part);
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Step at(*this, i);
    Walk(values[i], {}, 1, out);
  }
  out.EndList();
}

void ValueWalker::Keywords(std::string_view key, PyObject* names, PyObject* const* values,
                           EntryPacker& out) {
  out.Key(key);
  out.BeginMap();
  const Py_ssize_t count = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  const Step in_part(*this, "kwargs");
  for (Py_ssize_t i = 0; i < count; ++i) {
    const std::string name = KeyText(PyTuple_GET_ITEM(names, i));
    out.Key(name);
    const Step at(*this, name);
    Walk(values[i], name, 1, out);
  }
  out.EndMap();
}

void ValueWalker::Dict(std::string_view key, std::string_view part, PyObject* dict,
                       EntryPacker& out) {
  out.Key(key);
  if (dict == nullptr || dict == Py_None) {
    out.BeginMap();
    out.EndMap();
    return;
  }
  const Step in_part(*this, part);
  WalkDict(dict, 0, out);
}

void ValueWalker::Result(std::string_view key, std::string_view part, PyObject* value,
                         EntryPacker& out) {
  if (!PyTuple_Check(value) || IsInstance(value, types_.size)) {
    List(key, part, &value, 1, out);
    return;
  }
  out.Key(key);
  const Step in_part(*this, part);
  if (PyObject_HasAttrString(value, "_fields")) {
    WalkDescribed(value, 0, out);  // a named tuple: an object of its fields
  } else {
    WalkSequence(value, 0, out);
  }
}

void ValueWalker::Walk(PyObject* value, std::string_view key, int depth, EntryPacker& out) {
  if (value == Py_None) {
    out.Null();
  } else if (IsInstance(value, types_.tensor)) {
    sink_.PackTensor(value, path_, out);
  } else if (WalkFrameworkObject(value, key, out) || WalkScalar(value, out)) {
    return;
  } else if (depth > kMaxDepth || IsInside(value)) {
    Fail();
    out.Null();
  } else {
    const Container here{value, innermost_};
    innermost_ = &here;
    if (PyTuple_CheckExact(value) || PyList_CheckExact(value)) {
      WalkSequence(value, depth, out);
    } else if (PyDict_CheckExact(value)) {
      WalkDict(value, depth, out);
    } else {
      WalkDescribed(value, depth, out);
    }
    innermost_ = here.outer;
  }
}

bool ValueWalker::IsInside(PyObject* value) const {
  const Container* at = innermost_;
  while (at != nullptr && at->value != value) at = at->outer;
  return at != nullptr;
}

bool ValueWalker::Spend() {
  if (++walked_ <= kMaxValues) return true;
  if (walked_ == kMaxValues + 1) Fail();
  return false;
}

bool ValueWalker::WalkScalar(PyObject* value, EntryPacker& out) {
  if (PyBool_Check(value)) {
    out.BeginTyped("bool");
    out.Bool(value == Py_True);
  } else if (PyLong_Check(value)) {
    out.BeginTyped(TypeNameOf(value));
    if (!PackInt(value, out)) Fail();
  } else if (PyFloat_CheckExact(value)) {
    out.BeginTyped("float");
    out.Float(PyFloat_AS_DOUBLE(value));
  } else if (PyUnicode_Check(value)) {
    out.BeginTyped(TypeNameOf(value));
    out.String(TextCopyOf(value));
  } else if (value == Py_Ellipsis) {
    out.BeginTyped("ellipsis");
    out.String("...");
  } else if (PySlice_Check(value)) {
    WalkSlice(value, out);
    return true;
  } else {
    return false;
  }
  out.EndMap();
  return true;
}

bool ValueWalker::WalkFrameworkObject(PyObject* value, std::string_view key, EntryPacker& out) {
  const bool is_scalar = PyUnicode_Check(value) || PyLong_Check(value);
  if (IsInstance(value, types_.dtype) || (key == "dtype" && is_scalar)) {
    out.BeginTyped(types_.texts.dtype_type);
    out.String(StrOf(value));
  } else if (IsInstance(value, types_.device)) {
    out.BeginTyped("torch.device");
    out.String(DeviceText(value));
  } else if (types_.texts.tells_device && key == "device" && PyUnicode_Check(value)) {
    out.BeginTyped("torch.device");
    out.String(TextCopyOf(value));
  } else if (IsInstance(value, types_.memory_format)) {
    out.BeginMap();
    out.Key("type");
    out.String("torch.memory_format");
    out.Key("format");
    out.String(LastSegment(StrOf(value)));
  } else if (IsInstance(value, types_.size)) {
    out.BeginTyped("torch.Size");
    out.BeginList();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i) {
      PackJson(PyTuple_GET_ITEM(value, i), 0, out);
    }
    out.EndList();
  } else {
    return false;
  }
  out.EndMap();
  return true;
}

void ValueWalker::WalkSequence(PyObject* sequence, int depth, EntryPacker& out) {
  out.BeginList();
  // Items are looked up one by one: a user object read on the way may change the list.
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence) && Spend(); ++i) {
    PyObject* item = Py_NewRef(PySequence_Fast_GET_ITEM(sequence, i));
    {
      const Step at(*this, i);
      Walk(item, {}, depth + 1, out);
    }
    Py_DECREF(item);
  }
  out.EndList();
}

void ValueWalker::WalkDict(PyObject* dict, int depth, EntryPacker& out) {
  PyObject* items = PyDict_Items(dict);
  if (items == nullptr) {
    Fail();
    out.Null();
    return;
  }
  WalkPairs(items, depth, out);
  Py_DECREF(items);
}

void ValueWalker::WalkPairs(PyObject* pairs, int depth, EntryPacker& out) {
  out.BeginMap();
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pairs) && Spend(); ++i) {
    PyObject* pair = PyList_GET_ITEM(pairs, i);
    if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2) continue;
    const std::string key = KeyText(PyTuple_GET_ITEM(pair, 0));
    out.Key(key);
    const Step at(*this, key);
    Walk(PyTuple_GET_ITEM(pair, 1), key, depth + 1, out);
  }
  out.EndMap();
}

void ValueWalker::WalkSlice(PyObject* slice, EntryPacker& out) {
  out.BeginTyped("slice");
  out.BeginList();
  for (const char* name : {"start", "stop", "step"}) {
    PyObject* part = PyObject_GetAttrString(slice, name);
    const bool is_none = part == Py_None;
    // Integer tensors and NumPy integers convert to int; anything else is null.
    PyObject* number = part == nullptr || is_none ? nullptr : PyNumber_Index(part);
    Py_XDECREF(part);
    if (number == nullptr) {
      if (!is_none) Fail();
      out.Null();
      continue;
    }
    if (!PackInt(number, out)) Fail();
    Py_DECREF(number);
  }
  out.EndList();
  out.EndMap();
}

// describe() answers with one of
//   ("value", json)                   a JSON-like object, packed as it is
//   ("list", [value, ...])            walked
//   ("map", [(key, value), ...])      walked
//   ("array", tensor, dtype text)     a NumPy array as a tensor over its memory
void ValueWalker::WalkDescribed(PyObject* value, int depth, EntryPacker& out) {
  PyObject* answer = PyObject_CallOneArg(types_.describe, value);
  if (answer == nullptr || !PyTuple_Check(answer) || PyTuple_GET_SIZE(answer) < 2) {
    Fail();
    Py_XDECREF(answer);
    out.BeginTyped(TypeNameOf(value));
    out.Null();
    out.EndMap();
    return;
  }
  const std::string_view kind = TextOf(PyTuple_GET_ITEM(answer, 0));
  PyObject* content = PyTuple_GET_ITEM(answer, 1);
  if (kind == "array" && PyTuple_GET_SIZE(answer) == 3) {
    sink_.PackArray(content, TextOf(PyTuple_GET_ITEM(answer, 2)), path_, out);
  } else if (kind == "list" && PyList_Check(content)) {
    WalkSequence(content, depth, out);
  } else if (kind == "map" && PyList_Check(content)) {
    WalkPairs(content, depth, out);
  } else {
    PackJson(content, depth, out);
  }
  Py_DECREF(answer);
}

void PackJsonMembers(PyObject* dict, int depth, EntryPacker& out) {
  PyObject* name = nullptr;
  PyObject* member = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &name, &member) != 0;) {
    out.Key(KeyText(name));
    PackJson(member, depth + 1, out);
  }
}

void PackJson(PyObject* value, int depth, EntryPacker& out) {
  if (depth > kMaxDepth || value == Py_None) {
    out.Null();
  } else if (PyBool_Check(value)) {
    out.Bool(value == Py_True);
  } else if (PyLong_Check(value)) {
    PackInt(value, out);
  } else if (PyFloat_Check(value)) {
    out.Float(PyFloat_AS_DOUBLE(value));
  } else if (PyUnicode_Check(value)) {
    out.String(TextCopyOf(value));
  } else if (PyList_Check(value) || PyTuple_Check(value)) {
    out.BeginList();
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
      PackJson(PySequence_Fast_GET_ITEM(value, i), depth + 1, out);
    }
    out.EndList();
  } else if (PyDict_Check(value)) {
    out.BeginMap();
    PackJsonMembers(value, depth, out);
    out.EndMap();
  } else {
    out.String(StrOf(value));
  }
}

}  // namespace plumbline::python
