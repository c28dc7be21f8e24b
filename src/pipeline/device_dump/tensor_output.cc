#include "pipeline/device_dump/tensor_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>

#include "base/digest.h"
#include "formats/npy.h"
#include "formats/torch_pt.h"
#include "tensor/half.h"

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

// Blocks of the elements, so that widened ones are never all in memory.
template <class Function>
DumpStatus ForEachBlock(const acl::Elements& elements, const Function& function) {
  const size_t block = kBlockElements * InfoOf(elements.dtype).size_bytes;
  for (size_t at = 0; at < elements.bytes.size(); at += block) {
    PL_TRY(function(elements.bytes.subspan(at, std::min(block, elements.bytes.size() - at))));
  }
  return {};
}

DumpStatus WriteNpy(const acl::Elements& elements, Counted& out) {
  const bool widens = InfoOf(elements.dtype).numpy_descr.empty();
  const Result<std::string> header =
      npy::MakeHeader(widens ? DType::kFloat32 : elements.dtype, elements.sizes);
  if (!header) return Failed(DumpCode::kInvalidDataType, header.error());
  PL_TRY(out.Write(*header));
  if (!widens) return out.Write(elements.bytes);
  return ForEachBlock(elements, [&](Bytes block) -> DumpStatus {
    const Shape count{static_cast<int64_t>(block.size() / InfoOf(elements.dtype).size_bytes)};
    const Result<npy::Contents> wide = npy::MakeContents(elements.dtype, count, block);
    if (!wide) return Failed(DumpCode::kInvalidDataType, wide.error());
    return out.Write(wide->data);
  });
}

DumpStatus WritePt(const acl::Elements& elements, Counted& out) {
  const torch_pt::Frame frame = torch_pt::MakeFrame(elements.dtype, elements.sizes,
                                                    elements.bytes.size(), Crc32(elements.bytes));
  PL_TRY(out.Write(frame.head));
  PL_TRY(out.Write(elements.bytes));
  return out.Write(frame.tail);
}

template <class T>
T Load(const std::byte* data) {
  T value;
  std::memcpy(&value, data, sizeof(value));
  return value;
}

// As numpy.savetxt prints it: "%.18e", and no sign for NaN.
void AppendReal(double value, std::string& out) {
  if (std::isnan(value)) {
    out += "nan";
  } else {
    fmt::format_to(std::back_inserter(out), "{:.18e}", value);
  }
}

double RealOf(DType dtype, const std::byte* data) {
  if (const NarrowFormat* narrow = NarrowFormatOf(dtype)) {
    const bool is_byte = InfoOf(dtype).size_bytes == 1;
    return double{NarrowToFloat(*narrow, is_byte ? Load<uint8_t>(data) : Load<uint16_t>(data))};
  }
  switch (dtype) {
    case DType::kBool:
    case DType::kUInt8:
      return Load<uint8_t>(data);
    case DType::kUInt16:
      return Load<uint16_t>(data);
    case DType::kUInt32:
      return Load<uint32_t>(data);
    case DType::kUInt64:
      return static_cast<double>(Load<uint64_t>(data));
    case DType::kInt8:
      return Load<int8_t>(data);
    case DType::kInt16:
      return Load<int16_t>(data);
    case DType::kInt32:
      return Load<int32_t>(data);
    case DType::kInt64:
      return static_cast<double>(Load<int64_t>(data));
    case DType::kFloat32:
      return double{Load<float>(data)};
    default:
      return Load<double>(data);
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
    AppendComplex({Load<float>(data), Load<float>(data + sizeof(float))}, out);
  } else if (dtype == DType::kComplex128) {
    AppendComplex({Load<double>(data), Load<double>(data + sizeof(double))}, out);
  } else {
    AppendReal(RealOf(dtype, data), out);
  }
  out += '\n';
}

DumpStatus WriteTxt(const acl::Elements& elements, Counted& out) {
  const size_t width = InfoOf(elements.dtype).size_bytes;
  return ForEachBlock(elements, [&](Bytes block) {
    std::string text;
    for (size_t at = 0; at < block.size(); at += width) {
      AppendLine(elements.dtype, block.data() + at, text);
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
  const Result<acl::Elements> elements = acl::Decode(tensor.data_type, tensor.sizes, tensor.bytes);
  if (!elements) {
    return Failed(elements.error().code() == ErrorCode::kUnsupported ? DumpCode::kInvalidDataType
                                                                     : DumpCode::kInvalidDumpData,
                  elements.error());
  }
  if (kind == OutputKind::kPt) {
    PL_TRY(WritePt(*elements, out));
  } else if (kind == OutputKind::kTxt) {
    PL_TRY(WriteTxt(*elements, out));
  } else {
    PL_TRY(WriteNpy(*elements, out));
  }
  return out.bytes();
}

}  // namespace plumbline::pipeline
