// Widening of every dtype to float or double, compiled once per CPU target. Included inside a
// target region and inside namespace plumbline::kernels::PL_TARGET; no include guard by design.
//
// Plain loops that both compilers vectorise; intrinsics only for float16, which has instructions.

// Element `i` of an array that need not be aligned. A copy of known size is one load.
template <class T>
static inline T Load(const void* data, size_t i) {
  T value;
  __builtin_memcpy(&value, static_cast<const char*>(data) + i * sizeof(T), sizeof(T));
  return value;
}

static inline uint32_t BitsOf(float value) { return __builtin_bit_cast(uint32_t, value); }
static inline float FromBits(uint32_t bits) { return __builtin_bit_cast(float, bits); }

// Small IEEE-like formats, as the bits of a float. `mantissa` stored bits, exponent bias `bias`,
// magnitudes of `special` or more are not finite numbers. A denormal is made by a subtraction of
// normal numbers, which is exact and cannot meet the slow path or the flush-to-zero mode of a CPU.
template <int mantissa, int bias>
static inline uint32_t MagnitudeToFloatBits(uint32_t magnitude) {
  constexpr uint32_t kRebase = static_cast<uint32_t>(127 - bias) << 23;
  constexpr uint32_t kLeastNormal = kRebase + (1u << 23);
  const uint32_t shifted = magnitude << (23 - mantissa);
  const uint32_t normal = shifted + kRebase;
  const uint32_t denormal = BitsOf(FromBits(shifted + kLeastNormal) - FromBits(kLeastNormal));
  return shifted < (1u << 23) ? denormal : normal;
}

static void WidenBFloat16(const void* in, size_t count, float* out) {
    for (size_t i = 0; i < count; ++i) {
      out[i] = FromBits(static_cast<uint32_t>(Load<uint16_t>(in, i)) << 16);
    }
}

static inline uint32_t Float16ToFloatBits(uint32_t half) {
  const uint32_t magnitude = half & 0x7FFFu;
  uint32_t bits = MagnitudeToFloatBits<10, 15>(magnitude);
  const uint32_t special = 0x7F800000u | (magnitude << 13);
  bits = magnitude >= 0x7C00u ? special : bits;
  bits = magnitude > 0x7C00u ? (bits | 0x400000u) : bits;  // NaN becomes quiet, as in hardware
  return bits | ((half & 0x8000u) << 16);
}

static void WidenFloat16(const void* in, size_t count, float* out) {
  size_t i = 0;
#if PL_USE_F16C
  for (; i + 8 <= count; i += 8) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(static_cast<const char*>(in) + 2 * i));
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(half));
  }
#endif
    for (; i < count; ++i) out[i] = FromBits(Float16ToFloatBits(Load<uint16_t>(in, i)));
}

static void WidenFloat8E5M2(const void* in, size_t count, float* out) {
    for (size_t i = 0; i < count; ++i) {
    const uint32_t byte = Load<uint8_t>(in, i);
    const uint32_t magnitude = byte & 0x7Fu;
    uint32_t value = MagnitudeToFloatBits<2, 15>(magnitude);
    value = magnitude >= 0x7Cu ? (0x7F800000u | (magnitude << 21)) : value;
    value = magnitude > 0x7Cu ? (value | 0x400000u) : value;
    out[i] = FromBits(value | ((byte & 0x80u) << 24));
  }
}

static void WidenFloat8E4M3FN(const void* in, size_t count, float* out) {
    for (size_t i = 0; i < count; ++i) {
    const uint32_t byte = Load<uint8_t>(in, i);
    const uint32_t magnitude = byte & 0x7Fu;
    uint32_t value = MagnitudeToFloatBits<3, 7>(magnitude);
    value = magnitude == 0x7Fu ? 0x7FC00000u : value;
    out[i] = FromBits(value | ((byte & 0x80u) << 24));
  }
}

template <int mantissa, int bias>
static void WidenFloat8FNUZ(const void* in, size_t count, float* out) {
    for (size_t i = 0; i < count; ++i) {
    const uint32_t byte = Load<uint8_t>(in, i);
    const uint32_t value = MagnitudeToFloatBits<mantissa, bias>(byte & 0x7Fu);
    out[i] = FromBits(byte == 0x80u ? 0x7FC00000u : (value | ((byte & 0x80u) << 24)));
  }
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
// of two keeps the squares of float64 parts in range.
static inline double Modulus(double re, double im) {
  const double a = __builtin_fabs(re);
  const double b = __builtin_fabs(im);
  const double large = a > b ? a : b;
  double scale = large > 0x1p+500 ? 0x1p-600 : 1.0;
  scale = large < 0x1p-500 ? 0x1p+600 : scale;
  const double x = a * scale;
  const double y = b * scale;
  const double modulus = __builtin_sqrt(x * x + y * y) / scale;
  const bool infinite = a == __builtin_inf() || b == __builtin_inf();
  return infinite ? __builtin_inf() : modulus;
}

template <class Part, class Out>
static void WidenComplex(const void* in, size_t count, Out* out) {
  for (size_t i = 0; i < count; ++i) {
    out[i] = static_cast<Out>(Modulus(static_cast<double>(Load<Part>(in, 2 * i)),
                                      static_cast<double>(Load<Part>(in, 2 * i + 1))));
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
      return WidenFloat16(data, count, out);
    case DType::kBFloat16:
      return WidenBFloat16(data, count, out);
    case DType::kFloat8E4M3FN:
      return WidenFloat8E4M3FN(data, count, out);
    case DType::kFloat8E5M2:
      return WidenFloat8E5M2(data, count, out);
    case DType::kFloat8E4M3FNUZ:
      return WidenFloat8FNUZ<3, 8>(data, count, out);
    case DType::kFloat8E5M2FNUZ:
      return WidenFloat8FNUZ<2, 16>(data, count, out);
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
