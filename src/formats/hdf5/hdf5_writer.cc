// The part of hdf5_dump.h that writes and copies: apart from the rest, which the program uses
// without loading the HDF5 library.

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "formats/hdf5/hdf5_dump.h"
#include "formats/hdf5/hdf5_handle.h"
#include "tensor/element_value.h"

namespace plumbline::hdf5 {

namespace {

// What becomes a dataset: its type in the file, its shape and its bytes.
struct Contents {
  ValueKind kind = ValueKind::kTensor;
  int32_t data_type = 0;  // 0: no attribute
  Handle type;
  std::optional<std::vector<int64_t>> sizes;  // nothing: a scalar
  std::span<const std::byte> bytes;
  bool has_bytes = true;
};

template <class T>
std::span<const std::byte> BytesOf(const T& number) {
  return std::as_bytes(std::span(&number, 1));
}

bool IsName(std::string_view name) {
  return !name.empty() && name != "." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

}  // namespace

struct DumpWriter::State {
  CommitFile storage;
  Handle file;
  Handle link_access;  // makes the groups in between
  std::string path;
  int64_t calls = 0;             // groups of operator calls
  std::optional<Error> failure;  // nothing may be committed any more
  std::string last_call;         // "{operation}/{call}" that was counted last

  explicit State(CommitFile file_bytes) : storage(std::move(file_bytes)) {}

  Error Failed(std::string_view object) {
    return LastError(ErrorCode::kIo, path, fmt::format("{} cannot be written", object));
  }

  template <class T>
  Status AddAttribute(hid_t object, const char* name, hid_t file_type, std::span<const T> values) {
    const bool is_scalar = values.size() == 1 && std::string_view(name) != "Stride";
    const hsize_t size = values.size();
    const Handle space(is_scalar ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &size, nullptr));
    const Handle made(H5Acreate2(object, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT));
    if (!made.is_open()) return Failed(name);
    if (!values.empty() && H5Awrite(made, file_type, values.data()) < 0) return Failed(name);
    return {};
  }
  Status AddNumber(hid_t object, const char* name, int32_t value) {
    return AddAttribute<int32_t>(object, name, H5T_STD_I32LE, {{value}});
  }

  Result<Handle> AddDataset(const std::string& where, std::string_view relative,
                            const Contents& contents) {
    std::vector<hsize_t> sizes;
    if (contents.sizes) sizes.assign(contents.sizes->begin(), contents.sizes->end());
    const bool is_scalar = !contents.sizes || sizes.empty();
    const Handle space(
        is_scalar ? H5Screate(H5S_SCALAR)
                  : H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr));
    Handle made(H5Dcreate2(file, where.c_str(), contents.type, space, link_access, H5P_DEFAULT,
                           H5P_DEFAULT));
    if (!made.is_open()) return Failed(where);
    if (!contents.bytes.empty() &&
        H5Dwrite(made, contents.type, H5S_ALL, H5S_ALL, H5P_DEFAULT, contents.bytes.data()) < 0) {
      return Failed(where);
    }
    PL_TRY(AddNumber(made, "Type", static_cast<int32_t>(contents.kind)));
    if (contents.data_type != 0) PL_TRY(AddNumber(made, "DataType", contents.data_type));
    const std::vector<int64_t> shape = contents.sizes.value_or(std::vector<int64_t>());
    const uint32_t checksum =
        ChecksumOf(relative, contents.kind, contents.data_type, shape, contents.bytes);
    PL_TRY(AddAttribute<uint32_t>(made, kChecksum, H5T_STD_U32LE, {{checksum}}));
    return made;
  }

  Status AddTensor(const std::string& where, std::string_view relative, const TensorValue& value) {
    if (!value.has_storage) return AddGroup(where, ValueKind::kTensor, 0);
    std::span<const std::byte> bytes(value.view.data, value.view.size_bytes());
    std::vector<std::byte> floats;
    if (NarrowFormatOf(value.view.dtype) != nullptr) {
      bytes = floats = StoredAsFloats(value.view.dtype, bytes);
    }
    PL_TRY_ASSIGN(Handle type, FileTypeOf(value.view.dtype));
    Contents contents{ValueKind::kTensor, DataTypeNumber(value.view.dtype), std::move(type),
                      std::vector(value.view.sizes.begin(), value.view.sizes.end()), bytes};
    PL_TRY_ASSIGN(const Handle made, AddDataset(where, relative, contents));
    PL_TRY(AddNumber(made, "DeviceType", value.device));
    PL_TRY(AddNumber(made, "FormatType", 0));
    return AddAttribute<int64_t>(made, "Stride", H5T_STD_I64LE,
                                 ContiguousStrides(value.view.sizes));
  }

  Status AddGroup(const std::string& where, ValueKind kind, size_t members) {
    const Handle made(H5Gcreate2(file, where.c_str(), link_access, H5P_DEFAULT, H5P_DEFAULT));
    if (!made.is_open()) return Failed(where);
    PL_TRY(AddNumber(made, "Type", static_cast<int32_t>(kind)));
    return AddNumber(made, kMembers, static_cast<int32_t>(members));
  }

  // A side of a call, which has one or both.
  Status AddSide(const std::string& call, const std::string& side, size_t members) {
    const Handle made(H5Gcreate2(file, side.c_str(), link_access, H5P_DEFAULT, H5P_DEFAULT));
    if (!made.is_open()) return Failed(side);
    PL_TRY(AddNumber(made, kMembers, static_cast<int32_t>(members)));
    const Handle group(H5Gopen2(file, call.c_str(), H5P_DEFAULT));
    if (!group.is_open()) return Failed(call);
    if (H5Aexists(group, kMembers) <= 0) return AddNumber(group, kMembers, 1);
    const Handle attribute(H5Aopen(group, kMembers, H5P_DEFAULT));
    const int32_t both = 2;
    if (!attribute.is_open() || H5Awrite(attribute, H5T_NATIVE_INT32, &both) < 0)
      return Failed(call);
    return {};
  }

  Status AddList(const std::string& where, std::string_view relative, const Argument& argument) {
    const auto& members = std::get<std::vector<TensorValue>>(argument.data);
    PL_TRY(AddGroup(where, ValueKind::kTensorList, members.size()));
    for (size_t i = 0; i < members.size(); ++i) {
      const std::string member = fmt::format("/{}_{}", argument.name, i);
      PL_TRY(AddTensor(where + member, fmt::format("{}{}", relative, member), members[i]));
    }
    return {};
  }

  Status AddOptions(const std::string& where, std::string_view relative,
                    const OptionsValue& options) {
    Contents contents{ValueKind::kTensorOptions,
                      options.dtype ? DataTypeNumber(*options.dtype) : 0,
                      Handle(H5Tcopy(H5T_IEEE_F32LE)),
                      std::nullopt,
                      {}};
    PL_TRY_ASSIGN(const Handle made, AddDataset(where, relative, contents));
    PL_TRY(AddNumber(made, "DeviceType", options.device));
    return AddNumber(made, "RequiresGrad", options.requires_grad ? 1 : 0);
  }

  Status AddScalar(const std::string& where, std::string_view relative, ValueKind kind, hid_t type,
                   std::span<const std::byte> bytes) {
    const Contents contents{kind, 0, Handle(H5Tcopy(type)), std::nullopt, bytes};
    PL_TRY(AddDataset(where, relative, contents));
    return {};
  }

  Status AddNumbers(const std::string& where, std::string_view relative, const Argument& argument) {
    if (const auto* list = std::get_if<std::vector<int64_t>>(&argument.data)) {
      const Contents contents{argument.kind, 0, Handle(H5Tcopy(H5T_STD_I64LE)),
                              std::vector{static_cast<int64_t>(list->size())},
                              std::as_bytes(std::span(*list))};
      PL_TRY(AddDataset(where, relative, contents));
      return {};
    }
    if (const auto* real = std::get_if<double>(&argument.data)) {
      return AddScalar(where, relative, argument.kind, H5T_IEEE_F64LE, BytesOf(*real));
    }
    if (const auto* truth = std::get_if<bool>(&argument.data)) {
      return AddScalar(where, relative, argument.kind, H5T_STD_I8LE, BytesOf(*truth));
    }
    const int64_t number = std::get<int64_t>(argument.data);
    if (argument.kind == ValueKind::kScalarType || argument.kind == ValueKind::kMemoryFormat) {
      return AddScalar(where, relative, argument.kind, H5T_STD_I32LE,
                       BytesOf(static_cast<int32_t>(number)));
    }
    return AddScalar(where, relative, argument.kind, H5T_STD_I64LE, BytesOf(number));
  }

  Status Add(const std::string& side, std::string_view side_name, const Argument& argument) {
    if (!IsName(argument.name)) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: {} has an argument \"{}\", which is no name", path, side,
                               argument.name));
    }
    const std::string where = fmt::format("{}/{}", side, argument.name);
    const std::string relative = fmt::format("{}/{}", side_name, argument.name);
    if (const auto* tensor = std::get_if<TensorValue>(&argument.data)) {
      return AddTensor(where, relative, *tensor);
    }
    if (std::holds_alternative<std::vector<TensorValue>>(argument.data)) {
      return AddList(where, relative, argument);
    }
    if (const auto* options = std::get_if<OptionsValue>(&argument.data)) {
      return AddOptions(where, relative, *options);
    }
    return AddNumbers(where, relative, argument);
  }

  Status WriteFacts() {
    const Handle type(H5Tcopy(H5T_C_S1));
    static constexpr std::string_view kWriter = "plumbline";
    if (H5Tset_size(type, kWriter.size()) < 0) return Failed(kWriterAttribute);
    const Handle space(H5Screate(H5S_SCALAR));
    const Handle writer(H5Acreate2(file, kWriterAttribute, type, space, H5P_DEFAULT, H5P_DEFAULT));
    if (!writer.is_open() || H5Awrite(writer, type, kWriter.data()) < 0) {
      return Failed(kWriterAttribute);
    }
    return AddAttribute<int64_t>(file, kCallsAttribute, H5T_STD_I64LE, {{calls}});
  }

  Status UpdateCalls() {
    const Handle attribute(H5Aopen(file, kCallsAttribute, H5P_DEFAULT));
    if (!attribute.is_open() || H5Awrite(attribute, H5T_NATIVE_INT64, &calls) < 0) {
      return Failed(kCallsAttribute);
    }
    return {};
  }
};

DumpWriter::DumpWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
DumpWriter::DumpWriter(DumpWriter&&) noexcept = default;
DumpWriter::~DumpWriter() = default;

Result<DumpWriter> DumpWriter::Create(const std::string& path) {
  Silence();
  PL_TRY_ASSIGN(CommitFile bytes, CommitFile::Create(path));
  auto state = std::make_unique<State>(std::move(bytes));
  state->path = path;
  PL_TRY_ASSIGN(const Handle access, AccessThrough(state->storage));
  state->link_access = Handle(H5Pcreate(H5P_LINK_CREATE));
  if (H5Pset_create_intermediate_group(state->link_access, 1) < 0) return state->Failed("a group");
  state->file = Handle(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access));
  if (!state->file.is_open()) return state->Failed("the file");
  PL_TRY(state->WriteFacts());
  return DumpWriter(std::move(state));
}

Status DumpWriter::Write(const CallPlace& place, std::span<const Argument> arguments) {
  Silence();
  if (state_->failure) return *state_->failure;
  if (!IsName(place.operation)) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{}: \"{}\" is no name of an operator",
                                                          state_->path, place.operation));
  }
  const std::string call = fmt::format("{}/{}", place.operation, place.call);
  const std::string side = fmt::format("/{}/{}", call, SideName(place.side));
  // Also where there are no arguments: the call took place.
  Status status = state_->AddSide("/" + call, side, arguments.size());
  for (size_t i = 0; status && i < arguments.size(); ++i) {
    status = state_->Add(side, SideName(place.side), arguments[i]);
  }
  if (!status) {
    state_->failure = status.error();
    return status;
  }
  if (call != state_->last_call) ++state_->calls;
  state_->last_call = call;
  return {};
}

Status DumpWriter::Commit() {
  Silence();
  if (state_->failure) return *state_->failure;
  Status status = state_->UpdateCalls();
  if (status && H5Fflush(state_->file, H5F_SCOPE_GLOBAL) < 0) status = state_->Failed("the file");
  if (status) status = state_->storage.Commit();
  if (!status) state_->failure = status.error();
  return status;
}

namespace {

// Without slashes at the end; "/" for the root.
std::string Trimmed(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return std::string(path);
}

// Whether there is an object at `path`, and every group above it.
bool Exists(hid_t file, const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (part != "/" && H5Lexists(file, part.c_str(), H5P_DEFAULT) <= 0) return false;
    if (end == std::string::npos) return true;
  }
}

struct OpenFile {
  CommitFile storage;
  Handle file;
};

Result<OpenFile> OpenInput(const std::string& path) {
  PL_TRY_ASSIGN(CommitFile storage, CommitFile::OpenRead(path));
  return OpenFile{std::move(storage), Handle()};
}

Result<OpenFile> OpenOutput(const std::string& path, bool exists) {
  PL_TRY_ASSIGN(CommitFile storage,
                exists ? CommitFile::OpenUpdate(path) : CommitFile::Create(path));
  return OpenFile{std::move(storage), Handle()};
}

Status CopyOne(const OpenFile& from, const OpenFile& to, const ObjectCopy& copy) {
  const std::string source = Trimmed(copy.source), destination = Trimmed(copy.destination);
  const std::string& input = from.storage.path();
  const std::string& output = to.storage.path();
  if (!Exists(from.file, source)) {
    return Error(ErrorCode::kNotFound, fmt::format("{}: has no object {}", input, source));
  }
  if (Exists(to.file, destination)) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: has {} already. Choose another destination", output, destination));
  }
  const Handle links(H5Pcreate(H5P_LINK_CREATE));
  if (copy.makes_parents) {
    H5Pset_create_intermediate_group(links, 1);
  } else if (const size_t above = destination.rfind('/');
             above != 0 && above != std::string::npos &&
             !Exists(to.file, destination.substr(0, above))) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: has no group {} (expected it, or -p to make it)", output,
                             destination.substr(0, above)));
  }
  if (H5Ocopy(from.file, source.c_str(), to.file, destination.c_str(), H5P_DEFAULT, links) < 0) {
    return LastError(ErrorCode::kCorrupt, input, fmt::format("{} cannot be copied", source));
  }
  return {};
}

}  // namespace

Status CopyObjects(const std::string& input, const std::string& output,
                   std::span<const ObjectCopy> copies) {
  Silence();
  const bool exists = KindOf(output) == PathKind::kFile;
  PL_TRY_ASSIGN(OpenFile from, OpenInput(input));
  if (exists) {
    PL_TRY_ASSIGN(const FileIdentity one, IdentityOf(input));
    PL_TRY_ASSIGN(const FileIdentity other, IdentityOf(output));
    if (one == other) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: is input and output. Choose another output", input));
    }
  }
  PL_TRY_ASSIGN(const Handle from_access, AccessThrough(from.storage));
  from.file = Handle(H5Fopen(input.c_str(), H5F_ACC_RDONLY, from_access));
  if (!from.file.is_open()) {
    return LastError(ErrorCode::kCorrupt, input, "is no readable HDF5 file");
  }
  PL_TRY_ASSIGN(OpenFile to, OpenOutput(output, exists));
  PL_TRY_ASSIGN(const Handle to_access, AccessThrough(to.storage));
  to.file = Handle(exists ? H5Fopen(output.c_str(), H5F_ACC_RDWR, to_access)
                          : H5Fcreate(output.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, to_access));
  if (!to.file.is_open()) return LastError(ErrorCode::kCorrupt, output, "is no readable HDF5 file");
  for (const ObjectCopy& copy : copies) PL_TRY(CopyOne(from, to, copy));
  if (H5Fflush(to.file, H5F_SCOPE_GLOBAL) < 0) {
    return LastError(ErrorCode::kIo, output, "cannot be written");
  }
  return to.storage.Commit();
}

}  // namespace plumbline::hdf5
