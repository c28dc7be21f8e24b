#include "formats/array/npy.h"

#include <fmt/format.h>

#include <charconv>

#include "base/memory/bytes.h"
#include "tensor/element_value.h"

namespace plumbline::npy {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;
constexpr size_t kMaxHeaderV1 = 65535;
// NumPy's own limit of dimensions is 64.
constexpr size_t kMaxRank = 64;

constexpr size_t kGrowthDigits = 21;

struct Header {
  std::string_view descr;
  bool fortran_order = false;
  Shape sizes;
};

Error Damaged(std::string_view what) {
  return Error(ErrorCode::kCorrupt, fmt::format("the header is damaged: {}", what));
}

// Reads the header's Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : text_(text) {}

  Result<Header> Read() {
    Header header;
    bool has_descr = false, has_order = false, has_shape = false;
    PL_TRY(Expect('{'));
    while (!Take('}')) {
      PL_TRY_ASSIGN(const std::string_view key, Text());
      PL_TRY(Expect(':'));
      if (key == "descr") {
        has_descr = true;
        PL_TRY_ASSIGN(header.descr, Descr());
      } else if (key == "fortran_order") {
        has_order = true;
        PL_TRY_ASSIGN(header.fortran_order, Bool());
      } else if (key == "shape") {
        has_shape = true;
        PL_TRY_ASSIGN(header.sizes, Sizes());
      } else {
        return Damaged(fmt::format("unknown key {}", key));
      }
      if (!Take(',') && Peek() != '}') return Damaged("a comma is missing");
    }
    if (!has_descr || !has_order || !has_shape) return Damaged("a key is missing");
    if (Peek() != '\0') return Damaged("text after the closing brace");
    return header;
  }

 private:
  // The next character that is no blank; 0 at the end.
  char Peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool Take(char c) {
    if (Peek() != c) return false;
    ++at_;
    return true;
  }

  Status Expect(char c) {
    if (Take(c)) return {};
    return Damaged(fmt::format("expected {} at byte {}", c, at_));
  }

  Result<std::string_view> Text() {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return Damaged(fmt::format("no text at byte {}", at_));
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return Damaged("a text never ends");
    const std::string_view text = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return text;
  }

  Result<std::string_view> Descr() {
    if (Peek() == '[') {
      return Error(ErrorCode::kUnsupported, "array of records (expected numbers)");
    }
    return Text();
  }

  Result<bool> Bool() {
    Peek();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    return Damaged("fortran_order is neither True nor False");
  }

  Result<Shape> Sizes() {
    Shape sizes;
    PL_TRY(Expect('('));
    while (!Take(')')) {
      Peek();
      int64_t size = 0;
      const char* const begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0) return Damaged("shape holds something that is no size");
      at_ += static_cast<size_t>(end - begin);
      Take('L');  // written by Python 2
      sizes.push_back(size);
      if (sizes.size() > kMaxRank) return Damaged("shape has more than 64 dimensions");
      if (!Take(',') && Peek() != ')') return Damaged("shape is no tuple");
    }
    return sizes;
  }

  std::string_view text_;
  size_t at_ = 0;
};

struct ElementType {
  DType dtype;
  bool is_big_endian;
};

Result<ElementType> ParseDescr(std::string_view descr) {
  if (descr.size() >= 2 && descr[1] == 'O') {
    return Error(ErrorCode::kUnsupported,
                 "array of Python objects (expected numbers). Such files can run code and are "
                 "never loaded");
  }
  if (descr.size() >= 2) {
    for (int i = 0; i < kDTypeCount; ++i) {
      const DTypeInfo& info = InfoOf(static_cast<DType>(i));
      const std::string_view known = info.numpy_descr;
      const bool same_type = known.size() >= 2 && known.substr(1) == descr.substr(1);
      if (same_type && std::string_view("<>=|").find(descr[0]) != std::string_view::npos) {
        return ElementType{info.dtype, descr[0] == '>' && info.size_bytes > 1};
      }
    }
  }
  return Error(ErrorCode::kUnsupported,
               fmt::format("element type {} (expected bool, integer, float or complex)", descr));
}

std::vector<int64_t> FortranStrides(const Shape& sizes) {
  const Shape reversed(sizes.rbegin(), sizes.rend());
  const std::vector<int64_t> strides = ContiguousStrides(reversed);
  return {strides.rbegin(), strides.rend()};
}

Result<Header> ReadHeader(ByteReader& in) {
  PL_TRY_ASSIGN(const std::string_view magic, in.ReadText(kMagic.size()));
  if (magic != kMagic) {
    return Error(ErrorCode::kCorrupt, "no .npy file (expected it to start with \\x93NUMPY)");
  }
  PL_TRY_ASSIGN(const uint8_t major, in.ReadU8());
  PL_TRY_ASSIGN(const uint8_t minor, in.ReadU8());
  if (major < 1 || major > 3 || minor != 0) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format(".npy version {}.{} (expected 1.0 to 3.0)", major, minor));
  }
  uint32_t size = 0;
  if (major == 1) {
    PL_TRY_ASSIGN(size, in.ReadU16());
  } else {
    PL_TRY_ASSIGN(size, in.ReadU32());
  }
  PL_TRY_ASSIGN(const std::string_view text, in.ReadText(size));
  if (text.empty() || text.back() != '\n') return Damaged("it does not end with a line break");
  return HeaderReader(text).Read();
}

Error NoSuchType(const DTypeInfo& info) {
  return Error(ErrorCode::kUnsupported, fmt::format("NumPy has no {}", info.name));
}

// The whole header around its text, filled up with `least_blanks` or more to a multiple of 64.
std::string Framed(std::string text, size_t least_blanks) {
  const bool small = text.size() + kAlignment <= kMaxHeaderV1;
  const size_t before = kMagic.size() + 2 + (small ? sizeof(uint16_t) : sizeof(uint32_t));
  const size_t past = (before + text.size() + least_blanks + 1) % kAlignment;
  text.append(least_blanks + (kAlignment - past) % kAlignment, ' ');
  text += '\n';
  std::string out(kMagic);
  out += small ? '\1' : '\2';
  out += '\0';
  if (small) {
    AppendU16(static_cast<uint16_t>(text.size()), out);
  } else {
    AppendU32(static_cast<uint32_t>(text.size()), out);
  }
  return out + text;
}

}  // namespace

Result<std::string> MakeHeader(DType dtype, std::span<const int64_t> sizes) {
  const DTypeInfo& info = InfoOf(dtype);
  if (info.numpy_descr.empty()) return NoSuchType(info);
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': (", info.numpy_descr);
  for (size_t i = 0; i < sizes.size(); ++i) {
    text += fmt::format("{}{}", i > 0 ? ", " : "", sizes[i]);
  }
  text += sizes.size() == 1 ? ",), }" : "), }";
  // NumPy leaves room for the first size to grow in place.
  if (!sizes.empty()) text.append(kGrowthDigits - fmt::to_string(sizes[0]).size(), ' ');
  return Framed(std::move(text), /*least_blanks=*/0);
}

Result<std::string> MakeGraphHeader(DType dtype, std::span<const int64_t> sizes) {
  const DTypeInfo& info = InfoOf(dtype);
  if (info.numpy_descr.empty()) return NoSuchType(info);
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': (", info.numpy_descr);
  for (const int64_t size : sizes) text += fmt::format("{},", size);
  return Framed(text + "), }", /*least_blanks=*/1);
}

Result<Contents> MakeContents(DType dtype, std::span<const int64_t> sizes,
                              std::span<const std::byte> data) {
  Contents contents;
  contents.dtype = dtype;
  contents.data = data;
  if (NarrowFormatOf(dtype) != nullptr && InfoOf(dtype).numpy_descr.empty()) {
    contents.dtype = DType::kFloat32;
    contents.widened = StoredAsFloats(dtype, data);
    contents.data = contents.widened;
  }
  PL_TRY_ASSIGN(contents.header, MakeHeader(contents.dtype, sizes));
  return contents;
}

Result<NpyFile> NpyFile::Parse(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  PL_TRY_ASSIGN(Header header, ReadHeader(in));
  PL_TRY_ASSIGN(const ElementType type, ParseDescr(header.descr));
  PL_TRY_ASSIGN(const int64_t count, ElementCount(header.sizes));
  const size_t width = InfoOf(type.dtype).size_bytes;
  if (static_cast<uint64_t>(count) > in.remaining() / width) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("the data ends early (expected {} x {} bytes, got {})", count, width,
                             in.remaining()));
  }
  PL_TRY_ASSIGN(const auto data, in.ReadBytes(static_cast<uint64_t>(count) * width));
  NpyFile file;
  file.dtype_ = type.dtype;
  file.data_ = data.data();
  if (type.is_big_endian) {
    file.converted_.assign(data.begin(), data.end());
    SwapElementBytes(type.dtype, file.converted_);
    file.data_ = file.converted_.data();
  }
  file.strides_ =
      header.fortran_order ? FortranStrides(header.sizes) : ContiguousStrides(header.sizes);
  file.sizes_ = std::move(header.sizes);
  return file;
}

Result<NpyFile> NpyFile::Open(const std::string& path) {
  PL_TRY_ASSIGN(auto mapped, MappedFile::Open(path));
  auto file = Parse(mapped->bytes());
  if (!file) return file.error().In(path);
  file->file_ = std::move(mapped);
  return file;
}

TensorView NpyFile::view() const { return {dtype_, data_, sizes_, strides_}; }

}  // namespace plumbline::npy
