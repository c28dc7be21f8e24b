// Widening of every dtype to float or double, compiled once per CPU target. Included inside a
// target region and inside namespace plumbline::kernels::PL_TARGET; no include guard by design.
//

// Elements of one vector of 32-bit values, zero-extended. Reads exactly kFloatsPerVector elements.
static constexpr size_t kFloatsPerVector = PL_WIDTH / sizeof(float);
static inline VI LoadBytes(const void* from) {
#if PL_WIDTH == 64
  return (VI)_mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(from)));
#elif PL_WIDTH == 32
  return (VI)_mm256_cvtepu8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(from)));
#else
  VI v = {};
  for (size_t i = 0; i < kFloatsPerVector; ++i) v[i] = Load<uint8_t>(from, i);
  return v;
#endif
}
static inline VI LoadShorts(const void* from) {
#if PL_WIDTH == 64
  return (VI)_mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(from)));
#elif PL_WIDTH == 32
  return (VI)_mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(from)));
#else
  VI v = {};
  for (size_t i = 0; i < kFloatsPerVector; ++i) v[i] = Load<uint16_t>(from, i);
  return v;
#endif
}

// Magnitudes of a small IEEE-like format (`mantissa` stored bits, exponent bias `bias`) as the bits
// of floats. A denormal is made by a subtraction of normal numbers, which is exact and cannot meet
// the slow path or the flush-to-zero mode of a CPU.
template <int mantissa, int bias>
static inline VI MagnitudeToFloatBits(VI magnitude) {
  constexpr int32_t kRebase = (127 - bias) << 23;
  constexpr int32_t kLeastNormal = kRebase + (1 << 23);
  const VI shifted = magnitude << (23 - mantissa);
  const VF least = (VF)(shifted * 0 + kLeastNormal);
  const VI denormal = (VI)((VF)(shifted + kLeastNormal) - least);
  return shifted < (1 << 23) ? denormal : shifted + kRebase;
}

static constexpr int32_t kQuietNaN = 0x7FC00000;
static constexpr int32_t kFloatInfinity = 0x7F800000;
static constexpr int32_t kFloatSign = INT32_MIN;

// One decoder per narrow format: how many bytes an element has, and a vector of them as floats.
// NaN becomes quiet, as hardware conversions do.
struct DecodeBFloat16 {
  static constexpr size_t kBytes = 2;
  static inline VF Decode(const void* from) { return (VF)(LoadShorts(from) << 16); }
};

struct DecodeFloat16 {
  static constexpr size_t kBytes = 2;
  static inline VF Decode(const void* from) {
#if PL_WIDTH == 64
    return (VF)_mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(from)));
#elif PL_WIDTH == 32
    return (VF)_mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(from)));
#else
    const VI half = LoadShorts(from);
    const VI magnitude = half & 0x7FFF;
    VI bits = MagnitudeToFloatBits<10, 15>(magnitude);
    bits = magnitude >= 0x7C00 ? kFloatInfinity | (magnitude << 13) : bits;
    bits = magnitude > 0x7C00 ? bits | kQuietNaN : bits;
    return (VF)(bits | ((half << 16) & kFloatSign));
#endif
  }
};

struct DecodeFloat8E5M2 {
  static constexpr size_t kBytes = 1;
  static inline VF Decode(const void* from) {
    const VI byte = LoadBytes(from);
    const VI magnitude = byte & 0x7F;
    VI bits = MagnitudeToFloatBits<2, 15>(magnitude);
    bits = magnitude >= 0x7C ? kFloatInfinity | (magnitude << 21) : bits;
    bits = magnitude > 0x7C ? bits | kQuietNaN : bits;
    return (VF)(bits | ((byte << 24) & kFloatSign));
  }
};

struct DecodeFloat8E4M3FN {
  static constexpr size_t kBytes = 1;
  static inline VF Decode(const void* from) {
    const VI byte = LoadBytes(from);
    const VI magnitude = byte & 0x7F;
    VI bits = MagnitudeToFloatBits<3, 7>(magnitude);
    bits = magnitude == 0x7F ? magnitude * 0 + kQuietNaN : bits;
    return (VF)(bits | ((byte << 24) & kFloatSign));
  }
};

template <int mantissa, int bias>
struct DecodeFloat8FNUZ {
  static constexpr size_t kBytes = 1;
  static inline VF Decode(const void* from) {
    const VI byte = LoadBytes(from);
    const VI bits = MagnitudeToFloatBits<mantissa, bias>(byte & 0x7F) | ((byte << 24) & kFloatSign);
    return (VF)(byte == 0x80 ? byte * 0 + kQuietNaN : bits);
  }
};

template <class Format>
static void WidenNarrow(const void* data, size_t count, float* out) {
  const char* in = static_cast<const char*>(data);
  size_t i = 0;
  for (; i + kFloatsPerVector <= count; i += kFloatsPerVector, in += sizeof(VF) / 4 * Format::kBytes) {
    const VF wide = Format::Decode(in);
    Prefetch(in);
    __builtin_memcpy(out + i, &wide, sizeof(wide));
  }
  if (i == count) return;
  char last[kFloatsPerVector * Format::kBytes] = {};
  __builtin_memcpy(last, in, (count - i) * Format::kBytes);
  const VF wide = Format::Decode(last);
  __builtin_memcpy(out + i, &wide, (count - i) * sizeof(float));
}

template <class In, class Out>
static void WidenPlain(const void* in, size_t count, Out* out) {
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<Out>(Load<In>(in, i));
}

template <class Out>
static void WidenBool(const void* in, size_t count, Out* out) {
  for (size_t i = 0; i < count; ++i) out[i] = Load<uint8_t>(in, i) != 0 ? Out{1} : Out{0};
}

// |re + i im|. Infinite when a part is, even if the other is NaN (C99 Annex G). Scaling by powers
// of two keeps the squares of float64 parts in range; those of float32 parts always are.
template <class Part>
static inline double Modulus(Part re, Part im) {
  const double a = __builtin_fabs(static_cast<double>(re));
  const double b = __builtin_fabs(static_cast<double>(im));
  const double large = a > b ? a : b;
  double modulus = 0;
  if constexpr (sizeof(Part) == 4) {
    modulus = __builtin_sqrt(a * a + b * b);
  } else {
    const bool huge = large > 0x1p+500;
    const bool tiny = large < 0x1p-500;
    const double scale = huge ? 0x1p-600 : (tiny ? 0x1p+600 : 1.0);
    const double back = huge ? 0x1p+600 : (tiny ? 0x1p-600 : 1.0);
    const double x = a * scale;
    const double y = b * scale;
    modulus = __builtin_sqrt(x * x + y * y) * back;
  }
  return a == __builtin_inf() || b == __builtin_inf() ? __builtin_inf() : modulus;
}

template <class Part, class Out>
static void WidenComplex(const void* in, size_t count, Out* out) {
  for (size_t i = 0; i < count; ++i) {
    out[i] = static_cast<Out>(Modulus(Load<Part>(in, 2 * i), Load<Part>(in, 2 * i + 1)));
  }
}

static inline size_t ElementBytes(DType dtype) {
  switch (dtype) {
    case DType::kUInt16:
    case DType::kInt16:
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
    case DType::kUInt32:
    case DType::kInt32:
    case DType::kFloat32:
      return 4;
    case DType::kUInt64:
    case DType::kInt64:
    case DType::kFloat64:
    case DType::kComplex64:
      return 8;
    case DType::kComplex128:
      return 16;
    default:
      return 1;
  }
}

static inline bool IsInteger(DType dtype) { return dtype <= DType::kInt64; }
static inline bool IsSigned(DType dtype) {
  return dtype >= DType::kInt8 && dtype <= DType::kInt64;
}
static inline bool IsHalfOrLess(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype >= DType::kFloat8E4M3FN;
}

// True when WidenToFloat() is exact for `dtype`.
static inline bool FitsFloat(DType dtype) {
  switch (dtype) {
    case DType::kUInt32:
    case DType::kUInt64:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kFloat64:
    case DType::kComplex64:
    case DType::kComplex128:
      return false;
    default:
      return true;
  }
}

// The types whose widening is the same code for float and double.
template <class Out>
static void WidenNumber(DType dtype, const void* data, size_t count, Out* out) {
  switch (dtype) {
    case DType::kBool:
      return WidenBool(data, count, out);
    case DType::kUInt8:
      return WidenPlain<uint8_t>(data, count, out);
    case DType::kUInt16:
      return WidenPlain<uint16_t>(data, count, out);
    case DType::kUInt32:
      return WidenPlain<uint32_t>(data, count, out);
    case DType::kUInt64:
      return WidenPlain<uint64_t>(data, count, out);
    case DType::kInt8:
      return WidenPlain<int8_t>(data, count, out);
    case DType::kInt16:
      return WidenPlain<int16_t>(data, count, out);
    case DType::kInt32:
      return WidenPlain<int32_t>(data, count, out);
    case DType::kInt64:
      return WidenPlain<int64_t>(data, count, out);
    case DType::kFloat32:
      return WidenPlain<float>(data, count, out);
    case DType::kFloat64:
      return WidenPlain<double>(data, count, out);
    case DType::kComplex64:
      return WidenComplex<float>(data, count, out);
    case DType::kComplex128:
      return WidenComplex<double>(data, count, out);
    default:
      return;
  }
}

static void WidenToFloat(DType dtype, const void* data, size_t count, float* out) {
  switch (dtype) {
    case DType::kFloat16:
      return WidenNarrow<DecodeFloat16>(data, count, out);
    case DType::kBFloat16:
      return WidenNarrow<DecodeBFloat16>(data, count, out);
    case DType::kFloat8E4M3FN:
      return WidenNarrow<DecodeFloat8E4M3FN>(data, count, out);
    case DType::kFloat8E5M2:
      return WidenNarrow<DecodeFloat8E5M2>(data, count, out);
    case DType::kFloat8E4M3FNUZ:
      return WidenNarrow<DecodeFloat8FNUZ<3, 8>>(data, count, out);
    case DType::kFloat8E5M2FNUZ:
      return WidenNarrow<DecodeFloat8FNUZ<2, 16>>(data, count, out);
    default:
      return WidenNumber(dtype, data, count, out);
  }
}

// Double and 64-bit integers. Integers up to 32 bits are exact in all three.
template <class Wide>
static void WidenToWide(DType dtype, const void* data, size_t count, Wide* out) {
  if (!IsHalfOrLess(dtype)) return WidenNumber(dtype, data, count, out);
  float part[64];
  const size_t element_bytes = ElementBytes(dtype);
  for (size_t i = 0; i < count; i += 64) {
    const size_t n = count - i < 64 ? count - i : 64;
    WidenToFloat(dtype, static_cast<const char*>(data) + i * element_bytes, n, part);
    for (size_t k = 0; k < n; ++k) out[i + k] = static_cast<Wide>(part[k]);
  }
}

// Element `i` as real and imaginary part.
static void LoadComplex(DType dtype, const char* data, size_t i, double* parts) {
  if (dtype == DType::kComplex64) {
    parts[0] = static_cast<double>(Load<float>(data, 2 * i));
    parts[1] = static_cast<double>(Load<float>(data, 2 * i + 1));
  } else if (dtype == DType::kComplex128) {
    parts[0] = Load<double>(data, 2 * i);
    parts[1] = Load<double>(data, 2 * i + 1);
  } else {
    WidenToWide(dtype, data + i * ElementBytes(dtype), 1, parts);
    parts[1] = 0;
  }
}
