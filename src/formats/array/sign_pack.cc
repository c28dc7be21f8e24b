#include "formats/array/sign_pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/memory/bytes.h"
#include "base/memory/digest.h"
#include "formats/array/npy.h"

namespace plumbline::sign_pack {
namespace {

constexpr std::string_view kMagic = "PLSIGNS1";
constexpr size_t kFixedBytes = 16;  // magic, bytes of the header, entries
constexpr uint32_t kMaxSignRank = 64;

// The bytes of each value of 8 bits.
constexpr auto kUnpacked = [] {
  std::array<std::array<uint8_t, 8>, 256> table{};
  for (size_t value = 0; value < table.size(); ++value) {
    for (size_t bit = 0; bit < 8; ++bit) {
      table[value][bit] = static_cast<uint8_t>((value >> bit) & 1);
    }
  }
  return table;
}();

Error DamagedSigns(const std::string& path, std::string_view what) {
  return Error(ErrorCode::kCorrupt, fmt::format("{}: {}. Copy the file again", path, what));
}

// The next entry of the header; its bits begin at `*data_at`, which moves behind them.
Result<Entry> ReadEntry(std::span<const std::byte> file, ByteReader& header, size_t* data_at) {
  Entry entry;
  PL_TRY_ASSIGN(const uint32_t name_bytes, header.ReadU32());
  PL_TRY_ASSIGN(const std::string_view name, header.ReadText(name_bytes));
  entry.name = name;
  PL_TRY_ASSIGN(const uint32_t rank, header.ReadU32());
  if (rank > kMaxSignRank) return Error(ErrorCode::kCorrupt, "more than 64 dimensions");
  for (uint32_t i = 0; i < rank; ++i) {
    PL_TRY_ASSIGN(const uint64_t size, header.ReadU64());
    entry.sizes.push_back(static_cast<int64_t>(size));
  }
  PL_TRY_ASSIGN(const uint32_t checksum, header.ReadU32());
  PL_TRY_ASSIGN(const int64_t elements, ElementCount(entry.sizes));
  ByteReader data(file);
  PL_TRY(data.Seek(*data_at));
  PL_TRY_ASSIGN(entry.bits, data.ReadBytes(BytesFor(static_cast<uint64_t>(elements))));
  if (Crc32c(entry.bits) != checksum) {
    return Error(ErrorCode::kCorrupt, fmt::format("the signs of {} are damaged", entry.name));
  }
  *data_at = data.offset();
  return entry;
}

}  // namespace

void Unpack(std::span<const std::byte> bits, std::span<std::byte> out) {
  std::byte* to = out.data();
  for (const std::byte eight : bits) {
    std::memcpy(to, kUnpacked[static_cast<uint8_t>(eight)].data(), 8);
    to += 8;
  }
}

Status WriteNpy(const std::string& path, const Shape& sizes, std::span<const std::byte> bits) {
  PL_TRY_ASSIGN(const std::string header, npy::MakeHeader(DType::kBool, sizes));
  PL_TRY_ASSIGN(const int64_t elements, ElementCount(sizes));
  PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  PL_TRY(file.Write(header));
  std::byte bytes[size_t{64} << 10];
  auto left = static_cast<size_t>(elements);
  while (left > 0) {
    const size_t count = std::min(left, sizeof(bytes));
    const size_t packed = BytesFor(count);
    Unpack(bits.first(packed), bytes);
    PL_TRY(file.Write(std::span<const std::byte>(bytes, count)));
    bits = bits.subspan(packed);
    left -= count;
  }
  return file.Commit(/*durable=*/false);
}

Status Write(std::span<const Entry> entries, AtomicFile& file) {
  std::string body;
  for (const Entry& entry : entries) {
    AppendU32(static_cast<uint32_t>(entry.name.size()), body);
    body += entry.name;
    AppendU32(static_cast<uint32_t>(entry.sizes.size()), body);
    for (const int64_t size : entry.sizes) AppendU64(static_cast<uint64_t>(size), body);
    AppendU32(Crc32c(entry.bits), body);
  }
  std::string header(kMagic);
  AppendU32(static_cast<uint32_t>(kFixedBytes + body.size() + sizeof(uint32_t)), header);
  AppendU32(static_cast<uint32_t>(entries.size()), header);
  header += body;
  AppendU32(Crc32c(std::as_bytes(std::span(header))), header);
  PL_TRY(file.Write(header));
  for (const Entry& entry : entries) PL_TRY(file.Write(entry.bits));
  return {};
}

Result<SignFile> SignFile::Open(const std::string& path) {
  SignFile result;
  PL_TRY_ASSIGN(result.file_, MappedFile::Open(path));
  const std::span<const std::byte> bytes = result.file_->bytes();
  const auto damaged = [&](std::string_view what) { return DamagedSigns(path, what); };
  if (!AsText(bytes).starts_with(kMagic)) return damaged("no file of packed signs");
  ByteReader reader(bytes);
  const bool has_size = reader.Skip(kMagic.size()).has_value();
  const Result<uint32_t> header_bytes = reader.ReadU32();
  const Result<uint32_t> count = reader.ReadU32();
  if (!has_size || !header_bytes || !count || *header_bytes > bytes.size() ||
      *header_bytes < kFixedBytes + sizeof(uint32_t)) {
    return damaged("the header is cut off");
  }
  const auto header = bytes.first(*header_bytes - sizeof(uint32_t));
  ByteReader checksum(bytes);
  PL_TRY(checksum.Seek(header.size()));
  PL_TRY_ASSIGN(const uint32_t expected, checksum.ReadU32());
  if (Crc32c(header) != expected) return damaged("the header is damaged");
  ByteReader entries(header);
  PL_TRY(entries.Seek(kFixedBytes));
  size_t data_at = *header_bytes;
  for (uint32_t i = 0; i < *count; ++i) {
    Result<Entry> entry = ReadEntry(bytes, entries, &data_at);
    if (!entry) return damaged(entry.error().message());
    result.entries_.push_back(*std::move(entry));
  }
  return result;
}

}  // namespace plumbline::sign_pack
