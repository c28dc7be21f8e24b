// plumbline._hdf5: operator dumps, written and replayed.

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "errors.h"
#include "file_path.h"
#include "formats/hdf5/hdf5_dump.h"
#include "formats/hdf5/hdf5_handle.h"
#include "load/operator_replay.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

using hdf5::Argument;
using hdf5::TensorValue;
using hdf5::ValueKind;

// A contiguous tensor on the host: address, dtype, sizes, device number. None: without storage.
using HostTensor = std::optional<std::tuple<uintptr_t, std::string, Shape, int32_t>>;

// Arguments of one call. What the views refer to lives as long as this.
class Arguments {
 public:
  void AddTensor(const std::string& name, const HostTensor& tensor) {
    list_.push_back({name, ValueKind::kTensor, ValueOf(tensor)});
  }
  void AddTensors(const std::string& name, const std::vector<HostTensor>& tensors) {
    std::vector<TensorValue> values;
    values.reserve(tensors.size());
    for (const HostTensor& tensor : tensors) values.push_back(ValueOf(tensor));
    list_.push_back({name, ValueKind::kTensorList, std::move(values)});
  }
  void AddIntegers(const std::string& name, int kind, std::vector<int64_t> numbers) {
    list_.push_back({name, static_cast<ValueKind>(kind), std::move(numbers)});
  }
  void AddInteger(const std::string& name, int kind, int64_t number) {
    list_.push_back({name, static_cast<ValueKind>(kind), number});
  }
  void AddBool(const std::string& name, int kind, bool truth) {
    list_.push_back({name, static_cast<ValueKind>(kind), truth});
  }
  void AddReal(const std::string& name, int kind, double real) {
    list_.push_back({name, static_cast<ValueKind>(kind), real});
  }
  void AddDtype(const std::string& name, const std::string& dtype) {
    list_.push_back(
        {name, ValueKind::kScalarType, int64_t{hdf5::DataTypeNumber(DTypeNamed(dtype))}});
  }
  void AddOptions(const std::string& name, int32_t device,
                  const std::optional<std::string>& dtype) {
    hdf5::OptionsValue options{device, std::nullopt, false};
    if (dtype) options.dtype = DTypeNamed(*dtype);
    list_.push_back({name, ValueKind::kTensorOptions, options});
  }
  [[nodiscard]] const std::vector<Argument>& list() const { return list_; }

 private:
  static DType DTypeNamed(const std::string& name) {
    const std::optional<DType> dtype = ParseDType(name);
    if (!dtype) Raise(Error(ErrorCode::kUnsupported, name + ": has no place in an operator dump"));
    return *dtype;
  }
  TensorValue ValueOf(const HostTensor& tensor) {
    if (!tensor) return {{}, hdf5::kCpu, false};
    const auto& [address, dtype, sizes, device] = *tensor;
    const Shape& kept = shapes_.emplace_back(sizes);
    const Shape& strides = shapes_.emplace_back(ContiguousStrides(kept));
    return {{DTypeNamed(dtype), reinterpret_cast<const std::byte*>(address), kept, strides},
            device,
            true};
  }

  std::vector<Argument> list_;
  std::deque<Shape> shapes_;
};

template <class Work>
auto Unlocked(const Work& work) {
  auto result = [&] {
    const nb::gil_scoped_release release;
    return work();
  }();
  return ValueOrRaise(std::move(result));
}

void BindArguments(nb::module_& m) {
  nb::class_<Arguments>(m, "Arguments", "Arguments or results of one operator call.")
      .def(nb::init<>())
      .def("__len__", [](const Arguments& self) { return self.list().size(); })
      .def("tensor", &Arguments::AddTensor, nb::arg("name"), nb::arg("tensor").none(),
           "Address, dtype, sizes and device number of a contiguous tensor on the host, which must "
           "live as long as this; None: a tensor without storage.")
      .def("tensors", &Arguments::AddTensors, nb::arg("name"), nb::arg("tensors"))
      .def("integers", &Arguments::AddIntegers, nb::arg("name"), nb::arg("kind"),
           nb::arg("numbers"))
      .def("integer", &Arguments::AddInteger, nb::arg("name"), nb::arg("kind"), nb::arg("number"))
      .def("truth", &Arguments::AddBool, nb::arg("name"), nb::arg("kind"), nb::arg("value"))
      .def("real", &Arguments::AddReal, nb::arg("name"), nb::arg("kind"), nb::arg("number"))
      .def("dtype", &Arguments::AddDtype, nb::arg("name"), nb::arg("dtype"))
      .def("options", &Arguments::AddOptions, nb::arg("name"), nb::arg("device"),
           nb::arg("dtype").none());
}

void BindWriter(nb::module_& m) {
  nb::class_<hdf5::DumpWriter>(m, "DumpWriter", "An operator dump that is being written.")
      .def(
          "__init__",
          [](hdf5::DumpWriter* self, const FilePath& path) {
            new (self) hdf5::DumpWriter(ValueOrRaise(hdf5::DumpWriter::Create(path.bytes)));
          },
          nb::arg("path"), "The file appears with the first commit.")
      .def(
          "write",
          [](hdf5::DumpWriter& self, const std::string& operation, int64_t call, bool is_output,
             const Arguments& arguments) {
            const auto side = is_output ? hdf5::Side::kOutput : hdf5::Side::kInput;
            Unlocked([&] { return self.Write({operation, call, side}, arguments.list()); });
          },
          nb::arg("operation"), nb::arg("call"), nb::arg("is_output"), nb::arg("arguments"))
      .def(
          "commit", [](hdf5::DumpWriter& self) { Unlocked([&] { return self.Commit(); }); },
          "What was written survives the process from here on.");
}

// A match and the file it is in.
struct Found {
  load::OperatorReplay* replay;
  load::ReplayMatch match;
};

// Index of the argument, of the member of a list or None, dtype and sizes of a tensor to read.
using Place = std::tuple<size_t, std::optional<size_t>, std::string, Shape>;

std::vector<Place> PlacesOf(const Found& found) {
  std::vector<Place> places;
  for (const load::ReplayTensor& tensor : found.match.tensors) {
    const bool is_narrow = InfoOf(tensor.stored.dtype).kind == DTypeKind::kFloat &&
                           InfoOf(tensor.stored.dtype).size_bytes < sizeof(float);
    const DType dtype = is_narrow ? DType::kFloat32 : tensor.stored.dtype;
    places.emplace_back(tensor.argument, tensor.member, std::string(InfoOf(dtype).name),
                        tensor.stored.sizes);
  }
  return places;
}

nb::list ScalarsOf(const Found& found) {
  nb::list scalars;
  for (const auto& [argument, number] : found.match.scalars) {
    std::visit([&, index = argument](auto value) { scalars.append(nb::make_tuple(index, value)); },
               number);
  }
  return scalars;
}

// Row-major into `size` bytes at `address`.
Status ReadInto(const Found& found, size_t tensor, uintptr_t address, size_t size) {
  PL_TRY_ASSIGN(const hdf5::StoredTensor stored, found.replay->Load(found.match, tensor));
  if (stored.view().size_bytes() != size) {
    return Error(ErrorCode::kInvalidArgument, "the buffer has another size than the tensor");
  }
  CopyContiguous(stored.view(), {reinterpret_cast<std::byte*>(address), size});
  return {};
}

void BindReplay(nb::module_& m) {
  nb::class_<Found>(m, "Match", "The recorded call that stands for a running one.")
      .def_prop_ro("operation", [](const Found& self) { return self.match.place.operation; })
      .def_prop_ro("call", [](const Found& self) { return self.match.place.call; })
      .def_prop_ro("tensors", PlacesOf,
                   "Index of the argument, of the member of a list or None, dtype, sizes.")
      .def_prop_ro("scalars", ScalarsOf, "Index of the argument and its recorded number.")
      .def(
          "read_into",
          [](const Found& self, size_t tensor, uintptr_t address, size_t size) {
            Unlocked([&] { return ReadInto(self, tensor, address, size); });
          },
          nb::arg("tensor"), nb::arg("address"), nb::arg("size"),
          "Elements of one of `tensors` in row-major order.");
  nb::class_<load::OperatorReplay>(m, "OperatorReplay", "An operator dump to replay.")
      .def(
          "__init__",
          [](load::OperatorReplay* self, const FilePath& path) {
            new (self) load::OperatorReplay(ValueOrRaise(load::OperatorReplay::Open(path.bytes)));
          },
          nb::arg("path"))
      .def(
          "match",
          [](load::OperatorReplay& self, const std::string& operation,
             const Arguments& arguments) -> std::optional<Found> {
            auto match = Unlocked([&] { return self.Match(operation, arguments.list()); });
            if (!match) return std::nullopt;
            return Found{&self, *std::move(match)};
          },
          nb::arg("operation"), nb::arg("arguments"), nb::keep_alive<0, 1>(),
          "The first unused recorded call that fits, or None.");
}

using Names = std::map<std::string, std::vector<std::string>>;

Names TableOf(const std::vector<hdf5::NameRow>& rows) {
  Names table;
  for (const auto& [name, others] : rows) {
    table[std::string(name)] = std::vector<std::string>(others.begin(), others.end());
  }
  return table;
}

}  // namespace
}  // namespace plumbline::python

NB_MODULE(_hdf5, m) {
  using namespace plumbline;  // NOLINT: the macro stands outside of namespaces
  m.doc() = "Operator dumps of plumbline.";
  python::ImportErrors();
  python::BindArguments(m);
  python::BindWriter(m);
  python::BindReplay(m);
  m.def(
      "name_maps",
      [] {
        return std::pair(python::TableOf(hdf5::OperatorNames()),
                         python::TableOf(hdf5::ArgumentNames()));
      },
      "Operators and arguments that have another name on another device.");
}
