// The few vector operations that the float kernels need, at the width of the CPU target
// (PL_WIDTH bytes). Included first inside each target region and namespace.
//
// GNU vector types, which both compilers lower to any width; intrinsics only for AVX-512, where
// g++ 12 makes two or three instructions of a maximum or a counted comparison (measured 1.4x).

typedef float VF __attribute__((vector_size(PL_WIDTH)));
typedef double VD __attribute__((vector_size(PL_WIDTH)));
typedef int32_t VI __attribute__((vector_size(PL_WIDTH)));
typedef int64_t VL __attribute__((vector_size(PL_WIDTH)));
typedef uint64_t VUnsignedLong __attribute__((vector_size(PL_WIDTH)));
typedef float VHalf __attribute__((vector_size(PL_WIDTH / 2)));

// Element `i` of an array that need not be aligned. A copy of known size is one load.
template <class T>
static inline T Load(const void* data, size_t i) {
  T value;
  __builtin_memcpy(&value, static_cast<const char*>(data) + i * sizeof(T), sizeof(T));
  return value;
}

// Vectors that hold kLanes elements.
static constexpr size_t kWide = kLanes * sizeof(double) / PL_WIDTH;
static constexpr size_t kSingle = kLanes * sizeof(float) / PL_WIDTH;
static constexpr size_t kDoublesPerVector = PL_WIDTH / sizeof(double);

#if defined(__clang__)
#define PL_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PL_UNROLL _Pragma("GCC unroll 8")
#endif

template <class T>
struct VectorOf;
template <>
struct VectorOf<float> {
  typedef VF Type;
  typedef VI Counter;
  typedef int32_t Int;
  typedef uint32_t Unsigned;
  static constexpr size_t kVectors = kSingle;
};
template <>
struct VectorOf<double> {
  typedef VD Type;
  typedef VL Counter;
  typedef int64_t Int;
  typedef uint64_t Unsigned;
  static constexpr size_t kVectors = kWide;
};

template <class Vector>
static inline Vector LoadVectorOf(const void* from) {
  Vector v;
  __builtin_memcpy(&v, from, sizeof(v));
  return v;
}
template <class T>
static inline typename VectorOf<T>::Type LoadVector(const void* from) {
  return LoadVectorOf<typename VectorOf<T>::Type>(from);
}
// g++ 12 converts in pieces unless told the instruction.
static inline VD LoadWide(const float* from) {
#if PL_WIDTH == 64
  return (VD)_mm512_cvtps_pd(_mm256_loadu_ps(from));
#elif PL_WIDTH == 32
  return (VD)_mm256_cvtps_pd(_mm_loadu_ps(from));
#else
  VHalf half;
  __builtin_memcpy(&half, from, sizeof(half));
  return __builtin_convertvector(half, VD);
#endif
}
static inline VD LoadWide(const double* from) { return LoadVector<double>(from); }

// As float32, rounded to nearest.
static inline void StoreSingle(VD wide, float* to) {
#if PL_WIDTH == 64
  _mm256_storeu_ps(to, _mm512_cvtpd_ps((__m512d)wide));
#elif PL_WIDTH == 32
  _mm_storeu_ps(to, _mm256_cvtpd_ps((__m256d)wide));
#else
  const VHalf half = __builtin_convertvector(wide, VHalf);
  __builtin_memcpy(to, &half, sizeof(half));
#endif
}

// 32-bit integers, signed or not, as doubles.
static inline VD LoadWide(const int32_t* from) {
#if PL_WIDTH == 64
  return (VD)_mm512_cvtepi32_pd(_mm256_loadu_si256((const __m256i*)from));
#elif PL_WIDTH == 32
  return (VD)_mm256_cvtepi32_pd(_mm_loadu_si128((const __m128i*)from));
#elif defined(__x86_64__)
  return (VD)_mm_cvtepi32_pd(_mm_loadl_epi64((const __m128i*)from));
#else
  VD wide = {};
  for (size_t i = 0; i < kDoublesPerVector; ++i) wide[i] = Load<int32_t>(from, i);
  return wide;
#endif
}
static inline VD LoadWide(const uint32_t* from) {
#if PL_WIDTH == 64
  return (VD)_mm512_cvtepu32_pd(_mm256_loadu_si256((const __m256i*)from));
#else
  VD wide = {};
  for (size_t i = 0; i < kDoublesPerVector; ++i) wide[i] = Load<uint32_t>(from, i);
  return wide;
#endif
}

static inline VF Abs(VF x) { return (VF)((VI)x & 0x7FFFFFFF); }
static inline VD Abs(VD x) { return (VD)((VL)x & INT64_MAX); }

// sum + x * y. `exact` products (of two floats) may be fused: the result is the same.
template <bool exact>
static inline VD AddProduct(VD sum, VD x, VD y) {
#if PL_WIDTH == 64
  if constexpr (exact) return (VD)_mm512_fmadd_pd((__m512d)x, (__m512d)y, (__m512d)sum);
#elif PL_WIDTH == 32
  if constexpr (exact) return (VD)_mm256_fmadd_pd((__m256d)x, (__m256d)y, (__m256d)sum);
#endif
  return sum + x * y;
}

#if PL_WIDTH == 64

// The larger (smaller) of x and best; best when x is NaN.
static inline VF Max(VF x, VF best) { return (VF)_mm512_max_ps((__m512)x, (__m512)best); }
static inline VF Min(VF x, VF best) { return (VF)_mm512_min_ps((__m512)x, (__m512)best); }
static inline VD Max(VD x, VD best) { return (VD)_mm512_max_pd((__m512d)x, (__m512d)best); }
static inline VD Min(VD x, VD best) { return (VD)_mm512_min_pd((__m512d)x, (__m512d)best); }

// A truth value per element, and one more in `count` where it holds.
typedef __mmask16 TruthF;
typedef __mmask8 TruthD;
static inline TruthF Equal(VF x, VF y) {
  return _mm512_cmp_ps_mask((__m512)x, (__m512)y, _CMP_EQ_OQ);
}
static inline TruthD Equal(VD x, VD y) {
  return _mm512_cmp_pd_mask((__m512d)x, (__m512d)y, _CMP_EQ_OQ);
}
static inline TruthF Differ(VF x, VF y) {
  return _mm512_cmp_ps_mask((__m512)x, (__m512)y, _CMP_NEQ_UQ);
}
static inline TruthD Differ(VD x, VD y) {
  return _mm512_cmp_pd_mask((__m512d)x, (__m512d)y, _CMP_NEQ_UQ);
}
static inline TruthF Less(VF x, VF y) {
  return _mm512_cmp_ps_mask((__m512)x, (__m512)y, _CMP_LT_OQ);
}
static inline TruthD Less(VD x, VD y) {
  return _mm512_cmp_pd_mask((__m512d)x, (__m512d)y, _CMP_LT_OQ);
}
static inline TruthF Both(TruthF a, TruthF b) { return static_cast<TruthF>(a & b); }
static inline TruthD Both(TruthD a, TruthD b) { return static_cast<TruthD>(a & b); }
static inline TruthD Either(TruthD a, TruthD b) { return static_cast<TruthD>(a | b); }
static inline VI Count(VI count, TruthF where) {
  return (VI)_mm512_mask_sub_epi32((__m512i)count, where, (__m512i)count,
                                   _mm512_set1_epi32(-1));
}
static inline VL Count(VL count, TruthD where) {
  return (VL)_mm512_mask_sub_epi64((__m512i)count, where, (__m512i)count,
                                   _mm512_set1_epi64(-1));
}
static inline VF Select(TruthF where, VF yes, VF no) {
  return (VF)_mm512_mask_blend_ps(where, (__m512)no, (__m512)yes);
}
static inline VD Select(TruthD where, VD yes, VD no) {
  return (VD)_mm512_mask_blend_pd(where, (__m512d)no, (__m512d)yes);
}
static inline bool Any(TruthD where) { return where != 0; }
static constexpr TruthD kNowhere = 0;
// A bit per element, the first one lowest.
static inline uint32_t BitsOf(TruthF where) { return where; }
static inline uint32_t BitsOf(TruthD where) { return where; }

#else

// The instructions of x86 have exactly this NaN rule; the compilers do not see it in every loop.
#if PL_WIDTH == 32
static inline VF Max(VF x, VF best) { return (VF)_mm256_max_ps((__m256)x, (__m256)best); }
static inline VF Min(VF x, VF best) { return (VF)_mm256_min_ps((__m256)x, (__m256)best); }
static inline VD Max(VD x, VD best) { return (VD)_mm256_max_pd((__m256d)x, (__m256d)best); }
static inline VD Min(VD x, VD best) { return (VD)_mm256_min_pd((__m256d)x, (__m256d)best); }
#elif defined(__x86_64__)
static inline VF Max(VF x, VF best) { return (VF)_mm_max_ps((__m128)x, (__m128)best); }
static inline VF Min(VF x, VF best) { return (VF)_mm_min_ps((__m128)x, (__m128)best); }
static inline VD Max(VD x, VD best) { return (VD)_mm_max_pd((__m128d)x, (__m128d)best); }
static inline VD Min(VD x, VD best) { return (VD)_mm_min_pd((__m128d)x, (__m128d)best); }
#else
template <class V>
static inline V Max(V x, V best) {
  return x > best ? x : best;
}
template <class V>
static inline V Min(V x, V best) {
  return x < best ? x : best;
}
#endif
typedef VI TruthF;
typedef VL TruthD;
static inline TruthF Equal(VF x, VF y) { return x == y; }
static inline TruthD Equal(VD x, VD y) { return x == y; }
static inline TruthF Differ(VF x, VF y) { return x != y; }
static inline TruthD Differ(VD x, VD y) { return x != y; }
static inline TruthF Less(VF x, VF y) { return x < y; }
static inline TruthD Less(VD x, VD y) { return x < y; }
template <class V>
static inline V Both(V a, V b) {
  return a & b;
}
static inline TruthD Either(TruthD a, TruthD b) { return a | b; }
template <class V>
static inline V Count(V count, V where) {
  return count - where;
}
static inline VF Select(TruthF where, VF yes, VF no) { return where ? yes : no; }
static inline VD Select(TruthD where, VD yes, VD no) { return where ? yes : no; }
static inline bool Any(TruthD where) {
#if PL_WIDTH == 32
  return _mm256_movemask_pd((__m256d)where) != 0;
#elif defined(__x86_64__)
  return _mm_movemask_pd((__m128d)where) != 0;
#else
  int64_t any = 0;
  for (size_t i = 0; i < kDoublesPerVector; ++i) any |= where[i];
  return any != 0;
#endif
}
static constexpr TruthD kNowhere = {};
#if PL_WIDTH == 32
static inline uint32_t BitsOf(TruthF where) {
  return static_cast<uint32_t>(_mm256_movemask_ps((__m256)where));
}
static inline uint32_t BitsOf(TruthD where) {
  return static_cast<uint32_t>(_mm256_movemask_pd((__m256d)where));
}
#elif defined(__x86_64__)
static inline uint32_t BitsOf(TruthF where) {
  return static_cast<uint32_t>(_mm_movemask_ps((__m128)where));
}
static inline uint32_t BitsOf(TruthD where) {
  return static_cast<uint32_t>(_mm_movemask_pd((__m128d)where));
}
#else
template <class V>
static inline uint32_t BitsOf(V where) {
  uint32_t bits = 0;
  for (size_t i = 0; i < sizeof(V) / sizeof(where[0]); ++i) bits |= (where[i] != 0 ? 1u : 0u) << i;
  return bits;
}
#endif

#endif

#if PL_WIDTH == 64
typedef __m512i RawVector;
#define PL_INTEGER(name) _mm512_##name
#elif PL_WIDTH == 32
typedef __m256i RawVector;
#define PL_INTEGER(name) _mm256_##name
#endif

// 16-bit products summed by neighbouring pairs into 32 bits.
typedef int16_t VShort __attribute__((vector_size(PL_WIDTH)));
static inline VI PairProducts(VShort x, VShort y) {
#if PL_WIDTH > 16
  return (VI)PL_INTEGER(madd_epi16)((RawVector)x, (RawVector)y);
#elif defined(__x86_64__)
  return (VI)_mm_madd_epi16((__m128i)x, (__m128i)y);
#else
  VI sums;
  for (size_t i = 0; i < PL_WIDTH / sizeof(int32_t); ++i) {
    sums[i] = static_cast<int32_t>(static_cast<uint32_t>(x[2 * i] * y[2 * i]) +
                                   static_cast<uint32_t>(x[2 * i + 1] * y[2 * i + 1]));
  }
  return sums;
#endif
}

// How far ahead of the loops memory is asked for: hides what the hardware prefetcher loses at page
// boundaries (measured 1.2x to 1.9x above 4 MiB; 1 to 4 KiB are alike).
static inline void Prefetch(const void* at) {
  __builtin_prefetch(static_cast<const char*>(at) + 2048);
}
