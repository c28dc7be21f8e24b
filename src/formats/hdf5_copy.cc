#include "formats/hdf5_copy.h"

#include <fmt/format.h>

#include <string_view>

#include "base/file.h"
#include "formats/hdf5_handle.h"

namespace plumbline::hdf5 {
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
