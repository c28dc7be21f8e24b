#include "load/isolated_dump.h"

#include <bit>

#include "base/memory/bytes.h"
#include "base/process/isolated_run.h"
#include "formats/hdf5/hdf5_crash.h"
#include "tensor/strided_copy.h"

namespace plumbline::load {
namespace {

using hdf5::StoredTensor;
using hdf5::StoredValue;

// From the fork to this process: numbers of eight bytes, texts and lists behind their lengths.
void Append(int64_t number, std::string& out) { AppendU64(static_cast<uint64_t>(number), out); }

void Append(std::string_view text, std::string& out) {
  AppendU64(text.size(), out);
  out += text;
}

void Append(std::span<const int64_t> numbers, std::string& out) {
  AppendU64(numbers.size(), out);
  for (const int64_t number : numbers) Append(number, out);
}

void Append(const StoredValue& value, std::string& out) {
  Append(std::string_view(value.name), out);
  for (const int64_t number : {static_cast<int64_t>(value.kind), int64_t{value.has_data},
                               static_cast<int64_t>(value.dtype), int64_t{value.has_dtype},
                               int64_t{value.device}, int64_t{value.requires_grad}}) {
    Append(number, out);
  }
  Append(value.sizes, out);
  Append(value.strides, out);
  const auto* real = std::get_if<double>(&value.number);
  Append(int64_t{real != nullptr}, out);
  if (real != nullptr) return AppendU64(std::bit_cast<uint64_t>(*real), out);
  Append(std::get<std::vector<int64_t>>(value.number), out);
}

Result<int64_t> Number(ByteReader& in) {
  PL_TRY_ASSIGN(const uint64_t number, in.ReadU64());
  return static_cast<int64_t>(number);
}

Result<std::string> Text(ByteReader& in) {
  PL_TRY_ASSIGN(const uint64_t size, in.ReadU64());
  PL_TRY_ASSIGN(const std::string_view text, in.ReadText(size));
  return std::string(text);
}

Result<std::vector<int64_t>> Numbers(ByteReader& in) {
  PL_TRY_ASSIGN(const uint64_t count, in.ReadU64());
  std::vector<int64_t> numbers;
  for (uint64_t i = 0; i < count; ++i) {
    PL_TRY_ASSIGN(const int64_t number, Number(in));
    numbers.push_back(number);
  }
  return numbers;
}

Result<StoredValue> Value(ByteReader& in) {
  StoredValue value;
  PL_TRY_ASSIGN(value.name, Text(in));
  int64_t facts[6];
  for (int64_t& fact : facts) {
    PL_TRY_ASSIGN(fact, Number(in));
  }
  value.kind = static_cast<hdf5::ValueKind>(facts[0]);
  value.has_data = facts[1] != 0;
  value.dtype = static_cast<DType>(facts[2]);
  value.has_dtype = facts[3] != 0;
  value.device = static_cast<int32_t>(facts[4]);
  value.requires_grad = facts[5] != 0;
  PL_TRY_ASSIGN(value.sizes, Numbers(in));
  PL_TRY_ASSIGN(value.strides, Numbers(in));
  PL_TRY_ASSIGN(const int64_t is_real, Number(in));
  if (is_real != 0) {
    PL_TRY_ASSIGN(const uint64_t bits, in.ReadU64());
    value.number = std::bit_cast<double>(bits);
  } else {
    PL_TRY_ASSIGN(value.number, Numbers(in));
  }
  return value;
}

// In the fork: every call with its arguments, or why they cannot be read.
Result<std::string> IndexOf(const std::string& path) {
  PL_TRY_ASSIGN(const hdf5::DumpReader reader, hdf5::DumpReader::Open(path));
  std::string out;
  for (const auto& [operation, ids] : reader.calls()) {
    for (const int64_t id : ids) {
      const auto values = reader.Values({operation, id, hdf5::Side::kInput});
      Append(std::string_view(operation), out);
      Append(id, out);
      Append(values ? int64_t{-1} : static_cast<int64_t>(values.error().code()), out);
      if (!values) {
        Append(std::string_view(values.error().message()), out);
        continue;
      }
      AppendU64(values->size(), out);
      for (const StoredValue& value : *values) Append(value, out);
    }
  }
  return out;
}

// In the fork: types, sizes, and the elements in row-major order.
Result<std::string> TensorOf(const std::string& path, const hdf5::CallPlace& place,
                             const StoredValue& value) {
  PL_TRY_ASSIGN(const hdf5::DumpReader reader, hdf5::DumpReader::Open(path));
  PL_TRY_ASSIGN(const StoredTensor tensor, reader.Load(place, value));
  std::string out;
  Append(static_cast<int64_t>(tensor.dtype), out);
  Append(static_cast<int64_t>(tensor.recorded_dtype), out);
  Append(tensor.sizes, out);
  const size_t start = out.size();
  out.resize(start + tensor.view().size_bytes());
  CopyContiguous(tensor.view(), std::as_writable_bytes(std::span(out)).subspan(start));
  return out;
}

}  // namespace

Result<IsolatedDump> IsolatedDump::Open(const std::string& path) {
  const auto index = RunIsolatedFor([&] { return IndexOf(path); });
  if (!index) return hdf5::CrashOn(path, index.error());
  if (!*index) return index->error();
  IsolatedDump dump(path);
  PL_TRY(dump.Take(**index));
  return dump;
}

Status IsolatedDump::Take(std::span<const std::byte> index) {
  ByteReader in(index);
  while (in.remaining() > 0) {
    PL_TRY_ASSIGN(const std::string operation, Text(in));
    PL_TRY_ASSIGN(const int64_t id, Number(in));
    calls_[operation].push_back(id);
    const std::pair call(operation, id);
    PL_TRY_ASSIGN(const int64_t code, Number(in));
    if (code >= 0) {
      PL_TRY_ASSIGN(std::string message, Text(in));
      values_.emplace(call, Error(static_cast<ErrorCode>(code), std::move(message)));
      continue;
    }
    PL_TRY_ASSIGN(const uint64_t count, in.ReadU64());
    std::vector<StoredValue> values;
    for (uint64_t i = 0; i < count; ++i) {
      PL_TRY_ASSIGN(StoredValue value, Value(in));
      values.push_back(std::move(value));
    }
    values_.emplace(call, std::move(values));
  }
  return {};
}

Result<StoredTensor> IsolatedDump::Load(const hdf5::CallPlace& place,
                                        const StoredValue& value) const {
  const auto bytes = RunIsolatedFor([&] { return TensorOf(path_, place, value); });
  if (!bytes) return hdf5::CrashOn(path_, bytes.error());
  if (!*bytes) return bytes->error();
  ByteReader in(**bytes);
  StoredTensor tensor;
  PL_TRY_ASSIGN(const int64_t dtype, Number(in));
  PL_TRY_ASSIGN(const int64_t recorded, Number(in));
  tensor.dtype = static_cast<DType>(dtype);
  tensor.recorded_dtype = static_cast<DType>(recorded);
  PL_TRY_ASSIGN(tensor.sizes, Numbers(in));
  tensor.strides = ContiguousStrides(tensor.sizes);
  PL_TRY_ASSIGN(const auto elements, in.ReadBytes(in.remaining()));
  tensor.bytes.assign(elements.begin(), elements.end());
  return tensor;
}

}  // namespace plumbline::load
