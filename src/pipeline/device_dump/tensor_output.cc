#include "pipeline/device_dump/tensor_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>

#include "base/digest.h"
#include "formats/npy.h"
#include "formats/torch_pt.h"
#include "tensor/element_value.h"

namespace plumbline::pipeline {
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

}  // namespace plumbline::pipeline
