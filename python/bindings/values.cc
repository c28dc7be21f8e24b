#include "values.h"

#include <cstring>

namespace plumbline::python {
namespace {

constexpr int kMaxDepth = 400;  // deeper values are written as null (docs/formats/dump_json.md)

bool IsInstance(PyObject* value, PyObject* type) {
  return type != nullptr && PyObject_TypeCheck(value, reinterpret_cast<PyTypeObject*>(type));
}

std::string_view TypeName(PyObject* value) {
  const char* name = Py_TYPE(value)->tp_name;
  const char* dot = std::strrchr(name, '.');
  return dot == nullptr ? name : dot + 1;
}

// "cuda:0"; a device without index gives "cpu:None", as upstream spells it.
std::string DeviceText(PyObject* device) {
  std::string text;
  PyObject* type = PyObject_GetAttrString(device, "type");
  PyObject* index = PyObject_GetAttrString(device, "index");
  if (type != nullptr && index != nullptr) text = StrOf(type) + ":" + StrOf(index);
  if (PyErr_Occurred() != nullptr) PyErr_Clear();
  Py_XDECREF(type);
  Py_XDECREF(index);
  return text;
}

// "contiguous_format" of torch.contiguous_format.
std::string LastSegment(std::string text) {
  const size_t dot = text.rfind('.');
  return dot == std::string::npos ? text : text.substr(dot + 1);
}

void PackInt(PyObject* value, EntryPacker& out) {
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow == 0) {
    out.Int(number);
    return;
  }
  // int.__repr__ refuses numbers of more than 4300 digits (ValueError); StrOf then gives "".
  PyObject* plain = PyNumber_Index(value);
  const std::string digits = plain == nullptr ? std::string() : StrOf(plain);
  Py_XDECREF(plain);
  if (PyErr_Occurred() != nullptr) PyErr_Clear();
  if (digits.empty()) {
    out.Null();
  } else {
    out.Big(digits);
  }
}

}  // namespace

std::string_view TextOf(PyObject* text) {
  Py_ssize_t length = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(text, &length);
  if (bytes == nullptr) {
    PyErr_Clear();
    return {};
  }
  return {bytes, static_cast<size_t>(length)};
}

std::string StrOf(PyObject* object) {
  PyObject* text = PyObject_Str(object);
  if (text == nullptr) {
    PyErr_Clear();
    return {};
  }
  std::string result(TextOf(text));
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
  PyErr_Clear();
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
    const std::string_view name = TextOf(PyTuple_GET_ITEM(names, i));
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
  if (depth > kMaxDepth) {
    ++failures_;
    out.Null();
  } else if (value == Py_None) {
    out.Null();
  } else if (IsInstance(value, types_.tensor)) {
    sink_.PackTensor(value, path_, out);
  } else if (WalkFrameworkObject(value, key, out) || WalkScalar(value, out)) {
    return;
  } else if (PyTuple_CheckExact(value) || PyList_CheckExact(value)) {
    WalkSequence(value, depth, out);
  } else if (PyDict_CheckExact(value)) {
    WalkDict(value, depth, out);
  } else {
    WalkDescribed(value, depth, out);
  }
}

bool ValueWalker::WalkScalar(PyObject* value, EntryPacker& out) {
  if (PyBool_Check(value)) {
    out.BeginTyped("bool");
    out.Bool(value == Py_True);
  } else if (PyLong_Check(value)) {
    out.BeginTyped(TypeName(value));
    PackInt(value, out);
  } else if (PyFloat_CheckExact(value)) {
    out.BeginTyped("float");
    out.Float(PyFloat_AS_DOUBLE(value));
  } else if (PyUnicode_Check(value)) {
    out.BeginTyped(TypeName(value));
    out.String(TextOf(value));
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
    out.BeginTyped("torch.dtype");
    out.String(StrOf(value));
  } else if (IsInstance(value, types_.device)) {
    out.BeginTyped("torch.device");
    out.String(DeviceText(value));
  } else if (key == "device" && PyUnicode_Check(value)) {
    out.BeginTyped("torch.device");
    out.String(TextOf(value));
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
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence); ++i) {
    PyObject* item = Py_NewRef(PySequence_Fast_GET_ITEM(sequence, i));
    {
      const Step at(*this, i);
      Walk(item, {}, depth + 1, out);
    }
    Py_DECREF(item);
  }
  out.EndList();
}

std::string ValueWalker::KeyText(PyObject* key) {
  if (PyUnicode_Check(key)) return std::string(TextOf(key));
  if (key == Py_None) return "null";
  if (PyBool_Check(key)) return key == Py_True ? "true" : "false";
  return StrOf(key);
}

void ValueWalker::WalkDict(PyObject* dict, int depth, EntryPacker& out) {
  out.BeginMap();
  PyObject* items = PyDict_Items(dict);
  const Py_ssize_t count = items == nullptr ? 0 : PyList_GET_SIZE(items);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* pair = PyList_GET_ITEM(items, i);
    const std::string key = KeyText(PyTuple_GET_ITEM(pair, 0));
    out.Key(key);
    const Step at(*this, key);
    Walk(PyTuple_GET_ITEM(pair, 1), key, depth + 1, out);
  }
  Py_XDECREF(items);
  if (PyErr_Occurred() != nullptr) Fail();
  out.EndMap();
}

void ValueWalker::WalkSlice(PyObject* slice, EntryPacker& out) {
  auto* parts = reinterpret_cast<PySliceObject*>(slice);
  out.BeginTyped("slice");
  out.BeginList();
  for (PyObject* part : {parts->start, parts->stop, parts->step}) {
    // Tensors and NumPy integers convert to int; anything else is null.
    PyObject* number = part == Py_None ? nullptr : PyNumber_Long(part);
    if (number == nullptr) {
      if (part != Py_None) Fail();
      out.Null();
      continue;
    }
    PackInt(number, out);
    Py_DECREF(number);
  }
  out.EndList();
  out.EndMap();
}

// describe() answers with one of
//   None                              not describable: null
//   ("value", json)                   a JSON-like object, packed as it is
//   ("list", [value, ...])            walked
//   ("map", [(key, value), ...])      walked
//   ("array", tensor, dtype text)     a NumPy array as a tensor over its memory
void ValueWalker::WalkDescribed(PyObject* value, int depth, EntryPacker& out) {
  PyObject* answer = PyObject_CallOneArg(types_.describe, value);
  if (answer == nullptr || !PyTuple_Check(answer) || PyTuple_GET_SIZE(answer) < 2) {
    if (answer == nullptr) Fail();
    Py_XDECREF(answer);
    out.Null();
    return;
  }
  const std::string_view kind = TextOf(PyTuple_GET_ITEM(answer, 0));
  PyObject* content = PyTuple_GET_ITEM(answer, 1);
  if (kind == "array" && PyTuple_GET_SIZE(answer) == 3) {
    sink_.PackArray(content, TextOf(PyTuple_GET_ITEM(answer, 2)), path_, out);
  } else if (kind == "list" && PyList_Check(content)) {
    WalkSequence(content, depth, out);
  } else if (kind == "map" && PyList_Check(content)) {
    out.BeginMap();
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(content); ++i) {
      PyObject* pair = PyList_GET_ITEM(content, i);
      const std::string name = KeyText(PyTuple_GET_ITEM(pair, 0));
      out.Key(name);
      const Step at(*this, name);
      Walk(PyTuple_GET_ITEM(pair, 1), name, depth + 1, out);
    }
    out.EndMap();
  } else {
    PackJson(content, depth, out);
  }
  Py_DECREF(answer);
}

void ValueWalker::PackJson(PyObject* value, int depth, EntryPacker& out) {
  if (depth > kMaxDepth || value == Py_None) {
    out.Null();
  } else if (PyBool_Check(value)) {
    out.Bool(value == Py_True);
  } else if (PyLong_Check(value)) {
    PackInt(value, out);
  } else if (PyFloat_Check(value)) {
    out.Float(PyFloat_AS_DOUBLE(value));
  } else if (PyUnicode_Check(value)) {
    out.String(TextOf(value));
  } else if (PyList_Check(value) || PyTuple_Check(value)) {
    out.BeginList();
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
      PackJson(PySequence_Fast_GET_ITEM(value, i), depth + 1, out);
    }
    out.EndList();
  } else if (PyDict_Check(value)) {
    out.BeginMap();
    PyObject* name = nullptr;
    PyObject* member = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(value, &at, &name, &member) != 0;) {
      out.Key(KeyText(name));
      PackJson(member, depth + 1, out);
    }
    out.EndMap();
  } else {
    out.String(StrOf(value));
  }
}

}  // namespace plumbline::python
