#include "operators/output_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <utility>
#include <vector>

#include "base/file/file_bytes.h"
#include "base/memory/digest.h"
#include "base/text/csv.h"
#include "base/text/text_parts.h"
#include "formats/array/npy.h"
#include "formats/pytorch/torch_pt.h"
#include "load/name_mapping.h"
#include "record/run_files.h"
#include "tensor/element_value.h"

namespace plumbline::operators {

namespace {

using Bytes = std::span<const std::byte>;

constexpr size_t kBlockElements = size_t{1} << 18;

// Writes parts and counts their bytes. The first failure stays.
class Counted {
 public:
  explicit Counted(AtomicFile& file) : file_(file) {}

  DumpStatus Write(std::string_view text) { return Add(file_.Write(text), text.size()); }
  DumpStatus Write(Bytes bytes) { return Add(file_.Write(bytes), bytes.size()); }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  DumpStatus Add(const Status& status, size_t size) {
    if (!status) return Failed(DumpCode::kWriteError, status.error());
    bytes_ += size;
    return {};
  }

  AtomicFile& file_;
  uint64_t bytes_ = 0;
};

DumpFailure CannotDecode(const Error& error) {
  return Failed(error.code() == ErrorCode::kUnsupported ? DumpCode::kInvalidDataType
                                                        : DumpCode::kInvalidDumpData,
                error);
}

// Decodes blocks of the elements, so that what is larger than it was stored is never all in memory.
template <class Function>
DumpStatus ForEachBlock(const HostTensor& tensor, const acl::ElementsPlan& plan,
                        const Function& function) {
  static_assert(kBlockElements % 8 == 0);  // a block begins with a byte, whatever the type
  const auto count = static_cast<size_t>(plan.count);
  for (size_t first = 0; first < count; first += kBlockElements) {
    const size_t size = std::min(kBlockElements, count - first);
    const size_t from = first * plan.type->bits / 8, bytes = (size * plan.type->bits + 7) / 8;
    const Result<acl::Elements> block = acl::Decode(
        tensor.data_type, Shape{static_cast<int64_t>(size)}, tensor.bytes.subspan(from, bytes));
    if (!block) return CannotDecode(block.error());
    PL_TRY(function(*block));
  }
  return {};
}

DumpStatus WriteNpy(const HostTensor& tensor, const acl::ElementsPlan& plan, Counted& out) {
  const DType dtype = plan.type->dtype;
  const bool widens = InfoOf(dtype).numpy_descr.empty();
  const Result<std::string> header = npy::MakeHeader(widens ? DType::kFloat32 : dtype, plan.sizes);
  if (!header) return Failed(DumpCode::kInvalidDataType, header.error());
  PL_TRY(out.Write(*header));
  if (plan.type->encoding == acl::Encoding::kPlain && !widens) {
    return out.Write(tensor.bytes.first(plan.stored_bytes));
  }
  return ForEachBlock(tensor, plan, [&](const acl::Elements& block) -> DumpStatus {
    const Result<npy::Contents> contents = npy::MakeContents(block.dtype, block.sizes, block.bytes);
    if (!contents) return Failed(DumpCode::kInvalidDataType, contents.error());
    return out.Write(contents->data);
  });
}

DumpStatus WritePt(const HostTensor& tensor, Counted& out) {
  const Result<acl::Elements> decoded = acl::Decode(tensor.data_type, tensor.sizes, tensor.bytes);
  if (!decoded) return CannotDecode(decoded.error());
  const acl::Elements& elements = *decoded;
  const torch_pt::Frame frame = torch_pt::MakeFrame(elements.dtype, elements.sizes,
                                                    elements.bytes.size(), Crc32(elements.bytes));
  PL_TRY(out.Write(frame.head));
  PL_TRY(out.Write(elements.bytes));
  return out.Write(frame.tail);
}

// As numpy.savetxt prints it: "%.18e", and no sign for NaN.
void AppendReal(double value, std::string& out) {
  if (std::isnan(value)) {
    out += "nan";
  } else {
    fmt::format_to(std::back_inserter(out), "{:.18e}", value);
  }
}

void AppendComplex(std::complex<double> value, std::string& out) {
  out += " (";
  AppendReal(value.real(), out);
  std::string imaginary;
  AppendReal(value.imag(), imaginary);
  if (!imaginary.starts_with('-')) out += '+';
  out += imaginary + "j)";
}

void AppendLine(DType dtype, const std::byte* data, std::string& out) {
  if (dtype == DType::kComplex64) {
    AppendComplex({LoadAs<float>(data), LoadAs<float>(data + sizeof(float))}, out);
  } else if (dtype == DType::kComplex128) {
    AppendComplex({LoadAs<double>(data), LoadAs<double>(data + sizeof(double))}, out);
  } else {
    AppendReal(ElementAsDouble(dtype, data), out);
  }
  out += '\n';
}

DumpStatus WriteTxt(const HostTensor& tensor, const acl::ElementsPlan& plan, Counted& out) {
  const size_t width = InfoOf(plan.type->dtype).size_bytes;
  return ForEachBlock(tensor, plan, [&](const acl::Elements& block) {
    std::string text;
    for (size_t at = 0; at < block.bytes.size(); at += width) {
      AppendLine(block.dtype, block.bytes.data() + at, text);
    }
    return out.Write(text);
  });
}

}  // namespace

DumpResult<uint64_t> WriteTensor(const HostTensor& tensor, OutputKind kind, AtomicFile& file) {
  Counted out(file);
  if (kind == OutputKind::kBin) {
    PL_TRY(out.Write(tensor.bytes));
    return out.bytes();
  }
  const Result<acl::ElementsPlan> plan =
      acl::PlanDecode(tensor.data_type, tensor.sizes, tensor.bytes);
  if (!plan) return CannotDecode(plan.error());
  if (kind == OutputKind::kPt) {
    PL_TRY(WritePt(tensor, out));
  } else if (kind == OutputKind::kTxt) {
    PL_TRY(WriteTxt(tensor, *plan, out));
  } else {
    PL_TRY(WriteNpy(tensor, *plan, out));
  }
  return out.bytes();
}

namespace {

constexpr size_t kLongName = 255;  // from here on upstream gives another one
// A temporary is the name with a point in front and this behind.
constexpr std::string_view kTemporaryEnd = ".tmp";

std::string Dimensions(const Shape& sizes, std::string_view between) {
  return fmt::format("{}", fmt::join(sizes, between));
}

DumpFailure CannotWrite(const Error& error) { return Failed(DumpCode::kWriteError, error); }

Result<bool> HaveSameBytes(const std::string& one, const std::string& other) {
  PL_TRY_ASSIGN(const FileBytes a, FileBytes::Open(one));
  PL_TRY_ASSIGN(const FileBytes b, FileBytes::Open(other));
  return std::ranges::equal(a.bytes(), b.bytes());
}

// MindSpore makes its tables read-only: such a one is replaced by its copy.
Result<File> OpenMapping(const Directory& directory) {
  Result<File> file = File::OpenAppend(directory, run_files::kMappingCsv);
  if (file || directory.KindOf(run_files::kMappingCsv) != PathKind::kFile) return file;
  PL_TRY_ASSIGN(const std::string text,
                ReadFile(JoinPath(directory.path(), run_files::kMappingCsv)));
  PL_TRY(WriteFileAtomically(directory, run_files::kMappingCsv, text, /*durable=*/false));
  return File::OpenAppend(directory, run_files::kMappingCsv);
}

}  // namespace

std::string OutputStem(std::string_view file_name, std::string_view op_name, OutputKind kind) {
  constexpr size_t kOrdinaryParts = 5;
  std::vector<std::string_view> parts = SplitAt(file_name, '.');
  if (kind != OutputKind::kMsNpy || parts.size() != kOrdinaryParts || op_name.empty()) {
    return std::string(file_name);
  }
  const size_t slash = op_name.rfind('/');
  parts[1] = slash == std::string_view::npos ? op_name : op_name.substr(slash + 1);
  return fmt::format("{}", fmt::join(parts, "."));
}

std::string OutputName(std::string_view stem, const HostTensor& tensor, OutputKind kind,
                       bool is_converted) {
  if (kind == OutputKind::kMsNpy || kind == OutputKind::kGraphNpy) {
    return fmt::format("{}.{}.npy", stem, DeviceFormatName(tensor.format));
  }
  if (kind == OutputKind::kBin) {
    const acl::TypeInfo* type = acl::FindType(tensor.data_type);
    const std::string type_name =
        type != nullptr ? std::string(type->file_name) : LowerCase(acl::TypeName(tensor.data_type));
    return fmt::format("{}.{}.{}.{}.bin", stem, Dimensions(tensor.sizes, "_"), type_name,
                       DeviceFormatName(tensor.format));
  }
  if (!is_converted) return fmt::format("{}{}", stem, OutputSuffix(kind));
  return fmt::format("{}.{}{}", stem, Dimensions(tensor.sizes, "x"), OutputSuffix(kind));
}

std::string_view OutputSuffix(OutputKind kind) {
  switch (kind) {
    case OutputKind::kNpy:
    case OutputKind::kMsNpy:
    case OutputKind::kGraphNpy:
      return ".npy";
    case OutputKind::kBin:
      return ".bin";
    case OutputKind::kPt:
      return ".pt";
    case OutputKind::kTxt:
      return ".txt";
  }
  return "";
}

Result<std::string> HashedName(std::string_view name) {
  constexpr std::array<uint8_t, 16> kDns = {0x6b, 0xa7, 0xb8, 0x10, 0x9d, 0xad, 0x11, 0xd1,
                                            0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8};
  std::string text(kDns.begin(), kDns.end());
  text += name;
  PL_TRY_ASSIGN(std::string hex, Md5Hex(std::as_bytes(std::span(text))));
  // Version 3, and the variant in the two highest bits of the ninth byte.
  hex[12] = '3';
  constexpr std::string_view kDigits = "0123456789abcdef";
  hex[16] = kDigits[(kDigits.find(hex[16]) & 0x3) | 0x8];
  return hex;
}

DumpResult<OutputDirectory> OutputDirectory::Open(const std::string& path, IfThere if_there) {
  const Status made = MakeDirectories(path);
  if (!made) return Failed(DumpCode::kInvalidPath, made.error());
  Result<Directory> directory = Directory::Open(path);
  if (!directory) return Failed(DumpCode::kInvalidPath, directory.error());
  Result<load::NameMapping> mapping = load::NameMapping::Read(path);
  if (!mapping) return Failed(DumpCode::kInvalidPath, mapping.error());
  return OutputDirectory(*std::move(directory), *std::move(mapping), if_there);
}

DumpResult<PlacedFile> OutputDirectory::Write(const std::string& name, const Fill& fill,
                                              bool is_read_only) {
  PL_TRY_ASSIGN(const std::string placed, Place(name));
  PL_TRY_ASSIGN(AtomicFile file, Create(placed));
  PL_TRY_ASSIGN(const uint64_t bytes, fill(file));
  if (if_there_ == IfThere::kKeep && directory_.KindOf(placed) == PathKind::kFile) {
    const std::string path = JoinPath(directory_.path(), placed);
    const Result<bool> is_same = HaveSameBytes(file.temporary_path(), path);
    if (!is_same) return CannotWrite(is_same.error());
    if (*is_same) return PlacedFile{path, bytes};
    ++kept_;
    return DumpFailure{DumpCode::kWriteError,
                       fmt::format("{}: is there with other contents, and stays", path)};
  }
  const Status committed = file.Commit(/*durable=*/false);
  if (!committed) return CannotWrite(committed.error());
  if (is_read_only) (void)directory_.MakeReadOnly(placed);
  return PlacedFile{JoinPath(directory_.path(), placed), bytes};
}

DumpResult<std::string> OutputDirectory::Place(const std::string& name) {
  // An operator's name in a file, or a table of names, is anything.
  if (name.find_first_of(std::string_view("/\0", 2)) != std::string::npos) {
    return DumpFailure{DumpCode::kWriteError,
                       fmt::format("{}: \"{}\" is no file name (expected no slash and no NUL)",
                                   directory_.path(), name.substr(0, name.find('\0')))};
  }
  const std::lock_guard lock(mutex_);
  if (!placed_.insert(name).second) {
    return DumpFailure{DumpCode::kWriteError,
                       fmt::format("{}: another dump has an output of this name. Convert them into "
                                   "different directories",
                                   JoinPath(directory_.path(), name))};
  }
  if (name.size() < kLongName) return name;
  const Result<std::string> hashed = HashedName(name);
  if (!hashed) return CannotWrite(hashed.error());
  const std::string placed = *hashed + name.substr(name.rfind('.'));
  const auto added = added_.find(placed);
  if ((added != added_.end() ? added->second : mapping_.Find(placed)) == name) return placed;
  std::string row = placed + ",";
  csv::AppendExactly(name, row);
  Result<File> file = OpenMapping(directory_);
  if (!file) return CannotWrite(file.error());
  const Status written = file->Write(row + "\n");
  if (!written) return CannotWrite(written.error());
  const Status closed = file->Close();
  if (!closed) return CannotWrite(closed.error());
  added_.insert_or_assign(placed, name);
  return placed;
}

DumpResult<AtomicFile> OutputDirectory::Create(const std::string& placed_name) const {
  constexpr size_t kLongestName = 255;
  const bool has_room = placed_name.size() + 1 + kTemporaryEnd.size() <= kLongestName;
  Result<AtomicFile> file = has_room ? AtomicFile::Create(directory_, placed_name)
                                     : AtomicFile::Create(JoinPath(directory_.path(), placed_name));
  if (!file) return CannotWrite(file.error());
  return *std::move(file);
}

}  // namespace plumbline::operators
